/*
 * cgroup.c - one cgroup per exec, below /sys/fs/cgroup/ark.
 *
 * 1. Only a cgroup names a whole tree: setsid() and double forks leave a
 *    process group, nothing leaves a cgroup.
 * 2. ark/ has less memory than the guest: a memory bomb hits that limit, not
 *    the kernel or the agent.  memory.oom.group ends the exec that did it as a
 *    whole, so that its result says so instead of a half of it living on.
 * 3. Each exec has at most half of the processes that ark/ may have: a fork
 *    bomb is alone with its bomb.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#define ROOT "/sys/fs/cgroup"
#define RESERVE (8u << 20) /* bytes, and 1/32 of what is free at boot */
#define RESERVE_PIDS 200   /* kernel threads, the agent, an init */
#define PIDS_MAX 32768

static int root = -1;	   /* ark/ */
static char pids_each[24]; /* pids.max of one exec */

int write_to(int dir, const char *name, const char *text)
{
	AUTO_CLOSE int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
	size_t len = strlen(text);

	return fd >= 0 && write(fd, text, len) == (ssize_t)len ? 0 : -1;
}

/* At most size - 1 bytes; what cannot be read is "". */
static void read_text(int dir, const char *name, char *text, size_t size)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n < 0 ? 0 : n] = '\0';
}

static void limit_root(void)
{
	char text[32];
	struct sysinfo info;
	unsigned long long bytes;
	long pids;

	sysinfo(&info);
	bytes = (unsigned long long)info.freeram * info.mem_unit;
	bytes -= bytes / 32 + RESERVE;
	snprintf(text, sizeof(text), "%llu", bytes);
	if (write_to(root, "memory.max", text) < 0)
		say("no memory limit: %s", strerror(errno));
	write_to(root, "memory.swap.max", "0"); /* absent without swap */
	read_text(AT_FDCWD, "/proc/sys/kernel/threads-max", text, sizeof(text));
	pids = strtol(text, NULL, 10);
	pids = (pids > PIDS_MAX ? PIDS_MAX : pids) - RESERVE_PIDS;
	snprintf(text, sizeof(text), "%ld", pids);
	snprintf(pids_each, sizeof(pids_each), "%ld", pids / 2);
	if (write_to(root, "pids.max", text) < 0)
		say("no limit of processes: %s", strerror(errno));
}

void cgroup_init(void)
{
	if (mount("cgroup2", ROOT, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0 &&
	    errno != EBUSY)
		fatal("cannot mount cgroup2: %s", strerror(errno));
	if (write_to(AT_FDCWD, ROOT "/cgroup.subtree_control",
		     "+cpu +memory +pids") < 0 ||
	    mkdir(ROOT "/ark", 0755) < 0 ||
	    write_to(AT_FDCWD, ROOT "/ark/cgroup.subtree_control",
		     "+cpu +memory +pids") < 0)
		say("no cgroup limits: %s", strerror(errno));
	root = open(ROOT "/ark", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		fatal("cannot open '%s': %s", ROOT "/ark", strerror(errno));
	limit_root();
}

int cgroup_make(uint32_t id)
{
	char name[16];
	int dir;

	snprintf(name, sizeof(name), "%u", id);
	if (mkdirat(root, name, 0755) < 0)
		return -1;
	dir = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	write_to(dir, "memory.oom.group", "1");
	write_to(dir, "pids.max", pids_each);
	return dir;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *place)
{
	(void)st;
	(void)place;
	if (type == FTW_DP)
		rmdir(path);
	return 0;
}

bool cgroup_remove(uint32_t id)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", id);
	return unlinkat(root, name, AT_REMOVEDIR) == 0;
}

void cgroup_clear(uint32_t id)
{
	char path[48];

	snprintf(path, sizeof(path), ROOT "/ark/%u", id);
	nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

bool cgroup_empty(int events)
{
	char text[64];
	ssize_t n = pread(events, text, sizeof(text) - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return strstr(text, "populated 0") != NULL;
}

int cgroup_kill(int dir, int signal)
{
	char pid[16];
	FILE *f;
	int fd;

	if (signal == SIGKILL)
		return write_to(dir, "cgroup.kill", "1");
	fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	f = fd < 0 ? NULL : fdopen(fd, "r");
	if (!f)
		return -1;
	while (fgets(pid, sizeof(pid), f))
		if (strtol(pid, NULL, 10) > 1)
			kill((pid_t)strtol(pid, NULL, 10), signal);
	fclose(f);
	return 0;
}

bool cgroup_oom(int dir)
{
	char text[512];
	const char *at;

	read_text(dir, "memory.events", text, sizeof(text));
	at = strstr(text, "oom_kill ");
	return at && strtoul(at + strlen("oom_kill "), NULL, 10) > 0;
}

int cgroup_events(int dir)
{
	return openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
}
