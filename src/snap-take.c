/*
 * snap-take.c - one instant of a sandbox.
 *
 * 1. The keeper pauses the VM for as long as our connection to it lives: if we
 *    are killed at any line below, the VM goes on.
 * 2. Devices, memory and disk are copied while it stands still, in this order;
 *    nothing is synced before it runs again.
 * 3. Then digests, fsync, read-only, manifest, rename: what has a name is
 *    whole, and belongs to root alone, so that no VMM can write to it.
 */
#include "agent.h"
#include "disk.h"
#include "keeper-sock.h"
#include "launch.h"
#include "ram.h"
#include "snap.h"
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/mman.h>
#include <sys/stat.h>

static double ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- while it stands still ---------------------------------------------- */

/* The memfd that the VM runs on.  Its keeper has it; after that one's death
 * the VMM alone does, which can only spoil a snapshot of itself. */
static int open_memory(const struct sandbox *s)
{
	char path[64];
	struct proc keeper;
	long long fd;

	if (read_number(s->run, "ram-fd", 3, INT32_MAX, &fd) == 0 &&
	    proc_read(s->run, "keeper", &keeper) == 0 && proc_alive(&keeper))
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)keeper.pid,
			 (int)fd);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)s->vmm.pid,
			 FD_RAM);
	return open(path, O_RDONLY | O_CLOEXEC);
}

#define STATE_MAX (64 << 20)

static int write_devices(int memory, int stage)
{
	AUTO_FREE char *data = NULL;
	AUTO_CLOSE int file = -1;
	struct stat st;

	if (fstat(memory, &st) < 0 || st.st_size <= 0 || st.st_size > STATE_MAX)
		return fail(EX_DATAERR, "the VMM saved no state, or too much");
	data = malloc((size_t)st.st_size);
	file = openat(stage, "state", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		      0600);
	if (!data || file < 0 ||
	    pread(memory, data, (size_t)st.st_size, 0) != st.st_size ||
	    write_full(file, data, (size_t)st.st_size) < 0)
		return fail_errno(EX_IOERR, "cannot write 'state'");
	return 0;
}

/* The VMM writes into memory and we to the disk: a full disk is then told as
 * what it is, and the VMM never has a file of ours open for writing. */
static int save_devices(const struct sandbox *s, const struct vmm *driver,
			int stage)
{
	AUTO_CLOSE int memory = memfd_create("ark-state", MFD_CLOEXEC);
	AUTO_CLOSE int writer = -1;
	char path[32];
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memory);
	writer = open(path, O_WRONLY | O_CLOEXEC);
	if (memory < 0 || writer < 0)
		return fail_errno(EX_OSERR, "cannot make a memory file");
	r = driver->save(s, writer);
	return r < 0 ? r : write_devices(memory, stage);
}

static int save_memory(const struct sandbox *s, int stage, uint64_t size,
		       struct snap_times *times)
{
	AUTO_CLOSE int base = open_memory(s);
	struct ram_stats stats;
	int r;

	if (base < 0)
		return fail_errno(EX_OSERR, "cannot open the memory of '%s'",
				  s->name);
	r = ram_save(&s->vmm, base, size, stage, "ram", &stats);
	times->memory_bytes = stats.bytes;
	return r;
}

static int copy_running(const struct sandbox *s, const struct vmm *driver,
			int stage, uint64_t memory, struct snap_times *times)
{
	char answer[KEEPER_PACKET];
	AUTO_CLOSE int lease = keeper_connect(s);
	double start = ms_now();
	int r;

	if (lease < 0)
		return lease;
	r = keeper_talk(lease, s, "hold", answer, sizeof(answer));
	if (r < 0)
		return r;
	if (strncmp(answer, "ok", 2) != 0)
		return fail(EX_UNAVAILABLE, "cannot pause sandbox '%s': %s",
			    s->name, answer);
	r = save_devices(s, driver, stage);
	if (r == 0)
		r = save_memory(s, stage, memory, times);
	if (r == 0)
		r = disk_copy(s->dir, "disk", stage, "disk", 0600);
	/* The end of the lease does, when there is nothing to be kept. */
	if (r < 0)
		return r;
	/* A keeper that has died has left the VM to another one, which may
	 * have let it go on under our hands: no answer, no snapshot. */
	r = keeper_talk(lease, s, "release", answer, sizeof(answer));
	times->pause_ms = ms_now() - start;
	return r;
}

/* ---- the manifest ------------------------------------------------------- */

static void read_text(int dir, const char *name, char *out, size_t size)
{
	if (dir < 0 || read_value(dir, name, out, size) < 0)
		out[0] = '\0';
}

/* "qemu 7.2.22" of the slot into its two words. */
static void describe_vmm(const struct sandbox *s, const struct vmm *driver,
			 struct snap_manifest *m)
{
	char text[80], accel[16];
	const char *blank;

	read_text(s->run, "vmm-version", text, sizeof(text));
	blank = strchr(text, ' ');
	snprintf(m->vmm, sizeof(m->vmm), "%s", driver->name);
	snprintf(m->version, sizeof(m->version), "%.31s",
		 blank ? blank + 1 : "");
	read_text(s->run, "accel", accel, sizeof(accel));
	snprintf(m->accel, sizeof(m->accel), "%.7s", accel);
	if (strcmp(accel, "kvm") == 0) {
		snprintf(m->cpu, sizeof(m->cpu), "%s", driver->cpu(ACCEL_KVM));
	} else {
		snprintf(m->cpu, sizeof(m->cpu), "%s", driver->cpu(ACCEL_TCG));
		m->tsc_khz = host_tsc_khz();
	}
}

static int describe(const struct sandbox *s, const char *name,
		    struct snap_manifest *m)
{
	long long memory, disk, cpus;

	memset(m, 0, sizeof(*m));
	if (read_number(s->dir, "memory", 1, INT64_MAX, &memory) < 0 ||
	    read_number(s->dir, "disk-size", 1, INT64_MAX, &disk) < 0 ||
	    read_number(s->dir, "cpus", 1, 255, &cpus) < 0)
		return fail_errno(EX_DATAERR, "cannot read sandbox '%s'",
				  s->name);
	new_uuid(m->id);
	format_utc(m->created, time(NULL));
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->source, sizeof(m->source), "%s", s->name);
	read_text(s->dir, "snapshot", m->parent, sizeof(m->parent));
	read_text(s->dir, "image", m->image, sizeof(m->image));
	m->memory_size = (uint64_t)memory;
	m->disk_size = (uint64_t)disk;
	m->cpus = (unsigned)cpus;
	return 0;
}

/* ---- all of it ---------------------------------------------------------- */

/* What holds for a clone as well. */
static int copy_settings(const struct sandbox *s, int stage)
{
	static const char *const names[] = {"policy", "net-rate", "io-rate",
					    "ttl", "publish"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int r;

		if (faccessat(s->dir, names[i], F_OK, 0) < 0)
			continue;
		r = disk_copy(s->dir, names[i], stage, names[i], 0444);
		if (r < 0)
			return r;
	}
	return 0;
}

static int link_image(const struct sandbox *s, int stage)
{
	static const char *const names[] = {"kernel", "initrd", "base"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (linkat(s->dir, names[i], stage, names[i], 0) < 0)
			return fail_errno(EX_OSERR,
					  "cannot link %s of sandbox '%s'",
					  names[i], s->name);
	return 0;
}

/* Read-only, on the disk, recorded. */
static int seal(int stage, struct snap_manifest *m)
{
	int parts = m->memory ? SNAP_FILES : SNAP_RAM;
	int r;

	for (int part = 0; part < parts; part++) {
		const char *file = snapfile_part((enum snap_part)part);
		AUTO_CLOSE int fd = openat(stage, file, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || fchmod(fd, 0444) < 0 || fsync(fd) < 0)
			return fail_errno(EX_IOERR,
					  "cannot seal %s of snapshot '%s'",
					  file, m->name);
		r = snapfile_record(stage, m, (enum snap_part)part);
		if (r < 0)
			return r;
	}
	r = snapfile_digest(stage, m);
	if (r == 0)
		r = snapfile_write(stage, m);
	if (r == 0 && fchmod(stage, 0555) < 0)
		r = fail_errno(EX_IOERR, "cannot seal snapshot '%s'", m->name);
	return r;
}

static int fill(struct sandbox *s, int stage, struct snap_manifest *m,
		struct snap_times *times)
{
	const struct vmm *driver;
	int r;

	m->memory = s->state == VM_RUNNING || s->state == VM_PAUSED;
	if ((r = link_image(s, stage)) < 0 || (r = copy_settings(s, stage)) < 0)
		return r;
	if (!m->memory) {
		r = disk_copy(s->dir, "disk", stage, "disk", 0600);
		return r < 0 ? r : seal(stage, m);
	}
	if (s->starting)
		return fail(EX_UNAVAILABLE, "sandbox '%s' is still starting",
			    s->name);
	r = agent_mend_keeper(s);
	if (r < 0)
		return r;
	driver = vmm_recorded(s, &r);
	if (!driver)
		return r;
	describe_vmm(s, driver, m);
	r = copy_running(s, driver, stage, m->memory_size, times);
	return r < 0 ? r : seal(stage, m);
}

/* All who make up names of this sandbox' snapshots hold its lock. */
static int make_up_name(const struct sandbox *s, char name[NAME_MAX_LEN + 1])
{
	unsigned number;

	return *name ? 0 : free_name("snap", s->name, 1, name, &number);
}

int snap_take(struct sandbox *s, char name[NAME_MAX_LEN + 1],
	      struct snap_times *times)
{
	char temp[STAGE_NAME_MAX];
	struct snap_manifest m;
	double start = ms_now();
	AUTO_CLOSE int snaps = -1;
	AUTO_CLOSE int stage = -1;
	int r = *name ? check_name("snapshot", name) : 0;

	memset(times, 0, sizeof(*times));
	if (r == 0)
		r = sandbox_lock(s);
	if (r == 0)
		r = make_up_name(s, name);
	if (r == 0)
		r = describe(s, name, &m);
	if (r < 0)
		return r;
	snaps = root_open("snap");
	if (snaps < 0)
		return snaps;
	if (snap_exists(name))
		return fail(EX_CANTCREAT, "snapshot '%s' exists", name);
	stage = stage_make(snaps, name, temp);
	if (stage < 0)
		return fail_errno(EX_IOERR, "cannot make snapshot '%s'", name);
	r = fill(s, stage, &m, times);
	if (r == 0 && renameat2(snaps, temp, snaps, name, RENAME_NOREPLACE) < 0)
		r = fail_errno(EX_CANTCREAT, "cannot make snapshot '%s'", name);
	/* Whoever is told its name may count on it after a power failure. */
	if (r == 0 && fsync(snaps) < 0)
		r = fail_errno(EX_IOERR, "cannot write snapshot '%s'", name);
	if (r < 0)
		remove_tree(snaps, temp);
	times->total_ms = ms_now() - start;
	return r;
}
