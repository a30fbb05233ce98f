/*
 * cgroup.c - one group per VMM: ark/NNNN-HASH, of slot and ARK_RUN.
 *
 * 1. The group is the last wall in front of the host's memory, processors and
 *    pids: it holds for a guest, and for a VMM that was broken into.
 * 2. Its name is arithmetic on the slot, which is on record before.  Whatever
 *    dies between the two leaves an empty group under a name that only this
 *    ARK_RUN gives, and gc finds it by that name.
 * 3. Only rmdir(2) removes one, which the kernel refuses while anything lives
 *    in it: a name that is mistaken for ours can cost nobody his processes.
 * 4. Limits are set while it is empty, so that nothing ever runs in it without
 *    them.  A file that is not there is a controller that this host does not
 *    give us; a file that cannot be written fails the start.
 * 5. Memory: what is the guest's and what the VMM needs (cgroup_memory).  No
 *    swap: a guest would wear out the host's disk with it, and leave secrets
 *    there.  The whole group dies at once, there is no half VMM.
 * 6. Processors: one more than the vCPUs, for the VMM's own thread.  A guest
 *    never meets that limit, so it is never stopped in the middle of a period;
 *    a VMM that was broken into does.  Among guests, and against the host's own
 *    groups, weight decides: as much for each vCPU.
 */
#include "cgroup.h"
#include "plan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#define TOP "ark"
#define PERIOD_US 100000
#define THREADS 128	  /* of a VMM beside its vCPUs; QEMU's pool is 64 */
#define OOM_SCORE 500	  /* of 1000: before every service of the host */
#define REMOVE_MS 2000	  /* for the last thread of a dead VMM to be gone */
#define GROUP_NAME_MAX 24 /* "001f-89abcdef" */

/* ---- the hierarchy ------------------------------------------------------ */

/* Where version 2 is mounted, alone or beside version 1; -1. */
static int open_hierarchy(void)
{
	static const char *const places[] = {"/sys/fs/cgroup",
					     "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		AUTO_CLOSE int fd =
			open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && fstatfs(fd, &fs) == 0 &&
		    fs.f_type == CGROUP2_SUPER_MAGIC)
			return steal_fd(&fd);
	}
	errno = ENOENT;
	return -1;
}

static int open_top(void)
{
	AUTO_CLOSE int hierarchy = open_hierarchy();

	return hierarchy < 0 ? -1 : open_dir(hierarchy, TOP);
}

/* One write(2): the kernel takes a setting whole. */
static int put(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (; *text; text += strcspn(text, " "), text += strspn(text, " "))
		if (strncmp(text, word, len) == 0 && strchr(" ", text[len]))
			return true;
	return false;
}

/* What the host does not have, or forbids, stays off: the files are missing
 * then, which is how everybody sees it. */
static void enable(int dir)
{
	static const char *const names[] = {"memory", "cpu", "pids", "io"};
	char there[256] = "", on[256] = "", word[16];

	read_value(dir, "cgroup.controllers", there, sizeof(there));
	read_value(dir, "cgroup.subtree_control", on, sizeof(on));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(word, sizeof(word), "+%s", names[i]);
		if (has_word(there, names[i]) && !has_word(on, names[i]))
			put(dir, "cgroup.subtree_control", word);
	}
}

/* The folder of all groups, made when missing; -1: nothing to be had. */
static int make_top(void)
{
	AUTO_CLOSE int hierarchy = open_hierarchy();
	AUTO_CLOSE int top = -1;

	if (hierarchy < 0)
		return -1;
	enable(hierarchy);
	if (mkdirat(hierarchy, TOP, 0755) < 0 && errno != EEXIST)
		return -1;
	top = open_dir(hierarchy, TOP);
	if (top >= 0)
		enable(top);
	return steal_fd(&top);
}

/* "-HASH", the end of the names of an ARK_RUN. */
static int name_end(int run, char end[12])
{
	char path[PATH_MAX];

	if (run_canonical(run, path) < 0)
		return -1;
	snprintf(end, 12, "-%08x", plan_hash(path));
	return 0;
}

static int group_name(int slot, char name[GROUP_NAME_MAX])
{
	AUTO_CLOSE int run = run_open(false);
	char end[12];

	if (run < 0 || name_end(run, end) < 0)
		return -1;
	snprintf(name, GROUP_NAME_MAX, "%04x%s", (unsigned)slot & 0xffff, end);
	return 0;
}

static int open_group(const struct sandbox *s)
{
	AUTO_CLOSE int top = open_top();
	char name[GROUP_NAME_MAX];

	if (top < 0 || !s->slot || group_name(s->slot, name) < 0)
		return -1;
	return open_dir(top, name);
}

/* ---- limits ------------------------------------------------------------- */

static int limit(int group, const char *file, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int limit(int group, const char *file, const char *fmt, ...)
{
	char text[128];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return put(group, file, text) < 0 && errno != ENOENT ? -1 : 0;
}

/* Page tables of host and processor and the kernel's own accounts of the pages
 * are 0.7 % of the memory they are for, or less. */
uint64_t cgroup_memory(const struct vmm *driver, enum accel accel,
		       uint64_t guest)
{
	return guest + guest / 64 +
	       ((uint64_t)driver->overhead_mib[accel] << 20);
}

/* Limits are of whole disks: "8:0" of a file on 8:1.  -1 for a file system
 * that is on no single one. */
static int disk_of(int dir, char *device, size_t size)
{
	char path[64];
	struct stat st;

	if (fstatat(dir, "disk", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    major(st.st_dev) == 0)
		return -1;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition",
		 major(st.st_dev), minor(st.st_dev));
	snprintf(device, size, "%u:%u", major(st.st_dev), minor(st.st_dev));
	if (access(path, F_OK) < 0)
		return 0;
	snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/../dev",
		 major(st.st_dev), minor(st.st_dev));
	return read_value(AT_FDCWD, path, device, size) < 0 ? -1 : 0;
}

/* The rate that was asked for, bytes per second each way; 0: none. */
static uint64_t io_rate(const struct sandbox *s)
{
	long long rate;

	if (read_number(s->dir, "io-rate", 1, INT64_MAX, &rate) < 0)
		return 0;
	return (uint64_t)rate;
}

/* Not every file system is on a disk: what does not work is told by
 * cgroup_limits_io(). */
static void limit_io(const struct sandbox *s, int group)
{
	unsigned long long rate = io_rate(s);
	char device[32];

	if (rate && disk_of(s->dir, device, sizeof(device)) == 0)
		limit(group, "io.max", "%s rbps=%llu wbps=%llu", device, rate,
		      rate);
}

static int set_limits(const struct sandbox *s, const struct vmm *driver,
		      enum accel accel, int group)
{
	long long memory, cpus;

	if (read_number(s->dir, "memory", 1, INT64_MAX, &memory) < 0 ||
	    read_number(s->dir, "cpus", 1, 255, &cpus) < 0)
		return -1;
	limit_io(s, group);
	if (limit(group, "memory.max", "%llu",
		  (unsigned long long)cgroup_memory(driver, accel,
						    (uint64_t)memory)) < 0 ||
	    limit(group, "memory.swap.max", "0") < 0 ||
	    limit(group, "memory.oom.group", "1") < 0 ||
	    limit(group, "cpu.max", "%lld %d", (cpus + 1) * PERIOD_US,
		  PERIOD_US) < 0 ||
	    limit(group, "cpu.weight", "%lld",
		  cpus < 100 ? cpus * 100 : 10000) < 0 ||
	    limit(group, "pids.max", "%lld", cpus + THREADS) < 0)
		return -1;
	return 0;
}

int cgroup_make(const struct sandbox *s, const struct vmm *driver,
		enum accel accel, int *group, char *why, size_t size)
{
	AUTO_CLOSE int top = make_top();
	AUTO_CLOSE int made = -1;
	char name[GROUP_NAME_MAX];

	*group = -1;
	if (top < 0)
		return 0;
	/* Left over: it may have other limits than ours. */
	if (group_name(s->slot, name) < 0 ||
	    (unlinkat(top, name, AT_REMOVEDIR) < 0 && errno != ENOENT) ||
	    mkdirat(top, name, 0755) < 0 || (made = open_dir(top, name)) < 0 ||
	    set_limits(s, driver, accel, made) < 0) {
		snprintf(why, size, "cannot make its cgroup: %s",
			 strerror(errno));
		return -1;
	}
	*group = steal_fd(&made);
	return 0;
}

int oom_first(pid_t pid)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	snprintf(text, sizeof(text), "%d", OOM_SCORE);
	return put(AT_FDCWD, path, text);
}

/* ---- the end ------------------------------------------------------------ */

/* "KEY NUMBER" in a file of such lines; 0 without it. */
static unsigned long long counter(int group, const char *file, const char *key)
{
	char text[1024];
	size_t len = strlen(key);

	if (read_file(group, file, text, sizeof(text)) < 0)
		return 0;
	for (const char *at = text; at && *at;
	     at = strchr(at, '\n'), at += at != NULL)
		if (strncmp(at, key, len) == 0 && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
	return 0;
}

bool cgroup_oom(const struct sandbox *s, char *why, size_t size)
{
	AUTO_CLOSE int group = open_group(s);
	long long max = 0;
	char text[16];

	if (group < 0 || counter(group, "memory.events", "oom_kill") == 0)
		return false;
	/* `oom` counts what the group's own limit was the cause of. */
	if (counter(group, "memory.events", "oom") == 0 ||
	    read_number(group, "memory.max", 0, INT64_MAX, &max) < 0) {
		snprintf(why, size, "VMM killed: the host is out of memory");
		return true;
	}
	format_size(text, sizeof(text), (uint64_t)max);
	snprintf(why, size, "VMM killed: out of memory, its limit is %s", text);
	return true;
}

void cgroup_remove(int slot)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	uint64_t end = now_ms() + REMOVE_MS;
	AUTO_CLOSE int top = open_top();
	char name[GROUP_NAME_MAX];

	if (top < 0 || group_name(slot, name) < 0)
		return;
	while (unlinkat(top, name, AT_REMOVEDIR) < 0 && errno == EBUSY &&
	       now_ms() < end)
		nanosleep(&pause, NULL);
}

/* ---- gc ----------------------------------------------------------------- */

/* Is there a slot of that number that somebody holds or a VMM lives in? */
static bool slot_in_use(int run, const char *number)
{
	AUTO_CLOSE int slot = open_dir(run, number);
	struct proc vmm;

	if (slot < 0)
		return errno != ENOENT;
	return lock_file(slot, LOCK_EX, 0) < 0 ||
	       (proc_read(slot, "vmm", &vmm) == 0 && proc_alive(&vmm));
}

static int sweep_group(int top, int run, const char *name)
{
	char number[SLOT_NAME_LEN];

	snprintf(number, sizeof(number), "%.4s", name);
	if (slot_in_use(run, number))
		return 0;
	if (unlinkat(top, name, AT_REMOVEDIR) < 0)
		/* Somebody has put a process there: not our business. */
		return errno == EBUSY || errno == ENOENT
			       ? 0
			       : fail_errno(EX_OSERR, "cannot remove cgroup %s",
					    name);
	printf("removed cgroup %s\n", name);
	return 0;
}

static bool is_group(const char *name, const char *end)
{
	return strspn(name, "0123456789abcdef") == 4 &&
	       strcmp(name + 4, end) == 0;
}

int cgroup_gc(int run)
{
	AUTO_CLOSE int top = open_top();
	DIR *stream;
	const struct dirent *entry;
	char end[12];
	int result = 0;

	if (top < 0)
		return 0;
	stream = name_end(run, end) < 0 ? NULL : fdopendir(dup(top));
	if (!stream)
		return fail_errno(EX_OSERR, "cannot list the cgroups");
	while (result == 0 && (entry = readdir(stream)))
		if (is_group(entry->d_name, end))
			result = sweep_group(top, run, entry->d_name);
	closedir(stream);
	return result;
}

/* ---- what holds --------------------------------------------------------- */

/* A number, or null: there is no such limit. */
static json_t *number_of(int group, const char *file)
{
	long long number;

	return read_number(group, file, 0, INT64_MAX, &number) == 0
		       ? json_integer(number)
		       : json_null();
}

/* "200000 100000" is 2.0 processors; "max 100000" is no limit. */
static json_t *cpus_of(int group)
{
	char text[64] = "";
	unsigned long long quota, period;

	if (read_value(group, "cpu.max", text, sizeof(text)) < 0 ||
	    sscanf(text, "%llu %llu", &quota, &period) != 2 || period == 0)
		return json_null();
	return json_real((double)quota / (double)period);
}

/* "8:0 rbps=1048576 wbps=1048576 riops=max wiops=max": bytes per second that
 * hold in both directions. */
static json_t *io_of(int group)
{
	char text[1024];
	const char *read, *write;
	unsigned long long in, out;

	if (read_value(group, "io.max", text, sizeof(text)) <= 0)
		return json_null();
	read = strstr(text, " rbps=");
	write = strstr(text, " wbps=");
	if (!read || !write || sscanf(read, " rbps=%llu", &in) != 1 ||
	    sscanf(write, " wbps=%llu", &out) != 1)
		return json_null();
	return json_integer((json_int_t)(in > out ? in : out));
}

/* The kernel's own word for where the VMM is, against the name that it should
 * have. */
static bool is_inside(const struct proc *vmm, const char *name)
{
	char path[64], text[4096];
	const char *at;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)vmm->pid);
	if (read_file(AT_FDCWD, path, text, sizeof(text)) < 0 ||
	    !proc_alive(vmm))
		return false;
	at = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
	at = at ? strstr(at, "/" TOP "/") : NULL;
	if (!at)
		return false;
	at += strlen("/" TOP "/");
	len = strlen(name);
	return strncmp(at, name, len) == 0 && at[len] == '\n';
}

json_t *cgroup_json(const struct sandbox *s)
{
	AUTO_CLOSE int group = open_group(s);
	char name[GROUP_NAME_MAX];

	if (group < 0 || !s->vmm.pid || group_name(s->slot, name) < 0 ||
	    !is_inside(&s->vmm, name))
		return json_null();
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "cgroup", name,
			 "memory", number_of(group, "memory.max"), "swap",
			 number_of(group, "memory.swap.max"), "cpus",
			 cpus_of(group), "weight",
			 number_of(group, "cpu.weight"), "pids",
			 number_of(group, "pids.max"), "io", io_of(group));
}

bool cgroup_limits_io(const struct sandbox *s)
{
	AUTO_CLOSE int group = open_group(s);
	json_t *holds;
	bool yes;

	if (io_rate(s) == 0)
		return true;
	holds = group < 0 ? json_null() : io_of(group);
	yes = json_is_integer(holds) &&
	      (uint64_t)json_integer_value(holds) <= io_rate(s);
	json_decref(holds);
	return yes;
}
