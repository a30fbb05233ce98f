/*
 * admit.c - count what is promised to the sandboxes that run.
 *
 * 1. Everybody who takes a slot does so under one lock, from the count to the
 *    record of what he asks for: two that start at once are counted by each
 *    other.
 * 2. A slot counts as long as its keeper or its VMM lives, or somebody holds
 *    it: that is, from before there is a process until after the last one has
 *    gone.  After a kill -9 of all of them it counts no more, whatever its
 *    files say.
 * 3. A clone shares its snapshot's memory until it writes to it, and may write
 *    to all of it: it counts in full.  The shared memory counts once more as
 *    long as one of its clones lives, for it is kept beside their own pages.
 * 4. The lock of a slot is tried only when no process of it lives: trying it
 *    takes it for a moment, and whoever wants to adopt a VM must not be told
 *    then that another one has.
 */
#include "admit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/sysinfo.h>

#define LOCK_MS 60000
#define ID_SIZE 40

/* Snapshots whose memory has been counted. */
struct seen {
	char (*id)[ID_SIZE];
	size_t n;
};

struct count {
	struct promised promised;
	struct seen seen;
};

int admit_lock(int run)
{
	AUTO_CLOSE int fd =
		openat(run, "admit.lock",
		       O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return fail_errno(EX_OSERR, "cannot open admit.lock");
	if (lock_file(fd, LOCK_EX, LOCK_MS) < 0)
		return fail(EX_TEMPFAIL,
			    "too many sandboxes are being started");
	return steal_fd(&fd);
}

/* ---- what is promised --------------------------------------------------- */

static bool in_use(int slot)
{
	struct proc p;

	if (proc_read(slot, "keeper", &p) == 0 && proc_alive(&p))
		return true;
	if (proc_read(slot, "vmm", &p) == 0 && proc_alive(&p))
		return true;
	return lock_file(slot, LOCK_SH, 0) < 0;
}

static bool has_seen(const struct seen *seen, const char *id)
{
	for (size_t i = 0; i < seen->n; i++)
		if (strcmp(seen->id[i], id) == 0)
			return true;
	return false;
}

static int add_seen(struct seen *seen, const char *id)
{
	void *more = realloc(seen->id, (seen->n + 1) * ID_SIZE);

	if (!more)
		return -1;
	seen->id = more;
	snprintf(seen->id[seen->n++], ID_SIZE, "%s", id);
	return 0;
}

static int add_slot(struct count *count, int slot)
{
	char id[ID_SIZE];
	long long memory, cpus;

	if (!in_use(slot) ||
	    read_number(slot, "memory", 1, INT64_MAX, &memory) < 0 ||
	    read_number(slot, "cpus", 1, 255, &cpus) < 0)
		return 0;
	count->promised.sandboxes++;
	count->promised.memory += (uint64_t)memory;
	count->promised.cpus += (uint64_t)cpus;
	if (read_value(slot, "snapshot-id", id, sizeof(id)) < 0 ||
	    has_seen(&count->seen, id))
		return 0;
	count->promised.memory += (uint64_t)memory;
	return add_seen(&count->seen, id);
}

static int count_slots(int run, struct count *count)
{
	AUTO_CLOSE int again = open_dir(run, ".");
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	const struct dirent *entry;
	int r = 0;

	if (!stream)
		return -1;
	steal_fd(&again);
	while (r == 0 && (entry = readdir(stream))) {
		AUTO_CLOSE int slot = -1;

		if (strlen(entry->d_name) != 4)
			continue;
		slot = open_dir(run, entry->d_name);
		if (slot >= 0)
			r = add_slot(count, slot);
	}
	closedir(stream);
	return r;
}

/* ---- what there is ------------------------------------------------------ */

struct host admit_host(void)
{
	struct sysinfo info = {0};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	sysinfo(&info);
	return (struct host){
		.memory = (uint64_t)info.totalram * info.mem_unit,
		.cpus = cpus > 0 ? (unsigned)cpus : 1,
	};
}

bool admit_refuses(const struct promised *promised, const struct demand *demand,
		   unsigned count, bool shared_counted, const struct host *host,
		   const struct conf *conf, char *why, size_t size)
{
	uint64_t memory = demand->memory * count;
	uint64_t cpus = (uint64_t)demand->cpus * count;
	uint64_t room = host->memory * conf->memory_overcommit / 100;
	uint64_t turns = (uint64_t)host->cpus * conf->cpu_overcommit / 100;
	char text[4][16];

	if (demand->snapshot_id && !shared_counted)
		memory += demand->memory;
	format_size(text[0], sizeof(text[0]), promised->memory);
	format_size(text[1], sizeof(text[1]), memory);
	format_size(text[2], sizeof(text[2]), room);
	format_size(text[3], sizeof(text[3]), host->memory);
	if (promised->memory + memory > room) {
		snprintf(why, size,
			 "%u running have %s of memory, %s more exceeds %s, "
			 "which is %u%% of %s (memory_overcommit in ark.conf)",
			 promised->sandboxes, text[0], text[1], text[2],
			 conf->memory_overcommit, text[3]);
		return true;
	}
	if (promised->cpus + cpus <= turns)
		return false;
	snprintf(why, size,
		 "%u running have %llu vCPUs, %llu more exceeds %llu, which is "
		 "%u%% of %u (cpu_overcommit in ark.conf)",
		 promised->sandboxes, (unsigned long long)promised->cpus,
		 (unsigned long long)cpus, (unsigned long long)turns,
		 conf->cpu_overcommit, host->cpus);
	return true;
}

int admit_check(int run, const struct conf *conf, const struct demand *demand,
		unsigned count, const char *what)
{
	struct count all = {0};
	struct host host = admit_host();
	char why[256];
	int r = count_slots(run, &all);

	if (r < 0)
		r = fail_errno(EX_OSERR, "cannot count what runs");
	else if (admit_refuses(&all.promised, demand, count,
			       demand->snapshot_id &&
				       has_seen(&all.seen, demand->snapshot_id),
			       &host, conf, why, sizeof(why)))
		r = fail(EX_TEMPFAIL, "no room for %s: %s", what, why);
	free(all.seen.id);
	return r;
}

int admit_record(int slot, const struct demand *demand)
{
	if (demand->snapshot_id &&
	    write_value(slot, "snapshot-id", "%s", demand->snapshot_id) < 0)
		return -1;
	if (write_value(slot, "cpus", "%u", demand->cpus) < 0)
		return -1;
	return write_value(slot, "memory", "%llu",
			   (unsigned long long)demand->memory);
}
