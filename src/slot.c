/*
 * slot.c - allocation of slots, under kill -9 at any line.
 *
 * 1. mkdir makes the slot ours; flock on it says that its owner lives.
 * 2. gc removes a slot that it can lock.  It may do so between our mkdir and
 *    our flock, so after the flock the directory must still be the one that
 *    the name leads to; else the next number is tried.
 * 3. The slot names its sandbox before the sandbox names its slot: a sandbox
 *    never points to a slot that could be somebody else's.
 */
#include "cgroup.h"
#include "netup.h"
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static bool still_there(int run, const char *number, int fd)
{
	struct stat by_name, by_fd;

	return fstatat(run, number, &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
	       fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino &&
	       by_name.st_dev == by_fd.st_dev;
}

/* Make and hold slot `n`; -1 and errno (EEXIST: taken). */
static int take(int run, int n)
{
	char number[SLOT_NAME_LEN];
	AUTO_CLOSE int fd = -1;

	snprintf(number, sizeof(number), "%04x", (unsigned)n & 0xffff);
	if (mkdirat(run, number, 0700) < 0)
		return -1;
	fd = open_dir(run, number);
	if (fd < 0 || lock_file(fd, LOCK_EX, 0) < 0 ||
	    !still_there(run, number, fd)) {
		errno = EEXIST;
		return -1;
	}
	return steal_fd(&fd);
}

/* Round-robin, so that an address is not in use again at once. */
static int take_next(int run, int *slot)
{
	long long next;

	if (read_number(run, "next", 1, SLOT_MAX, &next) < 0)
		next = 1;
	for (int tries = 0; tries < SLOT_MAX; tries++) {
		int fd = take(run, (int)next);

		*slot = (int)next;
		next = next % SLOT_MAX + 1;
		if (fd >= 0) {
			/* A hint: losing it only means to search longer. */
			write_value(run, "next", "%lld", next);
			return fd;
		}
		if (errno != EEXIST)
			return -1;
	}
	errno = ENOSPC;
	return -1;
}

int slot_alloc(struct sandbox *s)
{
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int held = -1;

	if (run < 0)
		return run;
	held = take_next(run, &s->slot);
	if (held < 0)
		return fail_errno(EX_OSERR, "no slot for sandbox '%s'",
				  s->name);
	s->run = open_dir(held, ".");
	if (s->run < 0 || write_value(held, "vm", "%s", s->name) < 0 ||
	    write_value(s->dir, "slot", "%04x", (unsigned)s->slot) < 0 ||
	    (unlinkat(s->dir, "exit", 0) < 0 && errno != ENOENT))
		return fail_errno(EX_IOERR,
				  "cannot record the slot of sandbox '%s'",
				  s->name);
	return steal_fd(&held);
}

int slot_hold(const struct sandbox *s)
{
	AUTO_CLOSE int fd = open_dir(s->run, ".");

	if (fd < 0 || lock_file(fd, LOCK_EX, 0) < 0)
		return -1;
	return steal_fd(&fd);
}

/* The address is given away with the slot: nothing may lead to it. */
static int disconnect(const struct sandbox *s)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	int r = nethost_open(&h);

	return r < 0 ? r : net_down(&h, s->run, s->slot, s->name);
}

/* A full disk must not keep a sandbox from being stopped or removed: removing
 * it is how the disk gets room.  Without the file it counts as stopped. */
static void record_end(const struct sandbox *s)
{
	int r;

	if (s->state == VM_DEAD)
		r = write_value(s->dir, "exit", "dead: %s", s->reason);
	else
		r = write_value(s->dir, "exit", "stopped");
	if (r == 0)
		return;
	if (s->state == VM_DEAD)
		fail_errno(EX_IOERR, "cannot record why '%s' died", s->name);
	unlinkat(s->dir, "exit", 0);
}

int slot_release(struct sandbox *s)
{
	char number[SLOT_NAME_LEN];
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int held = -1;
	int r;

	if (run < 0 || !s->slot)
		return run < 0 ? run : 0;
	held = open_dir(s->run, ".");
	if (held < 0 || lock_file(held, LOCK_EX, 10000) < 0)
		return fail(EX_TEMPFAIL, "slot of sandbox '%s' is still held",
			    s->name);
	/* Its keeper has died before it could. */
	r = faccessat(s->run, "net", F_OK, 0) == 0 ? disconnect(s) : 0;
	if (r < 0)
		return r;
	cgroup_remove(s->slot);
	record_end(s);
	/* So is its uid, which a VMM that opens its disk by name had given to
	 * the disk. */
	if (fchownat(s->dir, "disk", 0, 0, AT_SYMLINK_NOFOLLOW) < 0 &&
	    errno != ENOENT)
		return fail_errno(EX_IOERR, "cannot take back the disk of '%s'",
				  s->name);
	snprintf(number, sizeof(number), "%04x", (unsigned)s->slot & 0xffff);
	if (remove_tree(run, number) < 0)
		return fail_errno(EX_OSERR, "cannot remove slot %s", number);
	sandbox_probe(s);
	return 0;
}
