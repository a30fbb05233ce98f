/*
 * jail-lock.c - what a VMM gives up before it is one.
 *
 * The order is what each step needs and what the next one takes away:
 * 1. Limits, while it is root: RLIMIT_NPROC counts for the uid that it gets.
 * 2. Bounding set, then groups, gid, uid of its slot, which empties the other
 *    capability sets.  The uid is never shared: siblings could trace each
 *    other.
 * 3. no_new_privs: no set-ID file gives anything back, and the filters of the
 *    next steps may be set without a capability.
 * 4. Landlock, where the kernel has it.  It names by file what the mounts of
 *    jail.c name by place, and covers the descriptors that came from outside
 *    of them.  A kernel without it has the mounts.
 * 5. The filter of system calls, which would forbid some of the above.  It
 *    lists what no VMM needs and what has let others out of their jails; a VMM
 *    brings a stricter one of its own, of what it needs, which stands on top.
 *    Forbidden calls fail with EPERM instead of killing, because libraries try
 *    some of them to see what there is.
 */
#include "jail.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* ---- limits ------------------------------------------------------------- */

#ifdef __SANITIZE_ADDRESS__ /* what its runtime has before the VMM is there */
#define SHADOW (1ULL << 46)
#else
#define SHADOW 0
#endif
/* What a VMM maps beside the guest's memory: its program and libraries, a
 * translation buffer (1 GiB under TCG), and for each thread a stack and a heap
 * of 64 MiB of which it touches little. */
#define ADDRESSES_MORE ((8ULL << 30) + SHADOW)
/* Of these, what is writable and its own. */
#define DATA_MORE ((3ULL << 30) + SHADOW)
#define FILE_MORE (16ULL << 20) /* the state of its devices */

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int set_limits(const struct jail *j)
{
	const struct {
		int resource;
		uint64_t value;
	} limits[] = {
		/* A core file is guest memory on the host's disk. */
		{RLIMIT_CORE, 0},
		/* Memory of the host.  The kernel does not count pages here,
		 * but addresses, so both are generous: a cgroup is exact. */
		{RLIMIT_AS, j->memory + ADDRESSES_MORE},
		{RLIMIT_DATA, j->memory + DATA_MORE},
		/* The guest's memory is a file too, and to size one counts. */
		{RLIMIT_FSIZE, larger(j->memory, j->disk) + FILE_MORE},
		/* Threads: one a processor, up to 64 for disks, a few more. */
		{RLIMIT_NPROC, 512},
		{RLIMIT_NOFILE, 1024},
		/* Memory that cannot be swapped out, and queues that live
		 * longer than their process. */
		{RLIMIT_MEMLOCK, 64 << 10},
		{RLIMIT_MSGQUEUE, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		const struct rlimit limit = {limits[i].value, limits[i].value};

		if (setrlimit((__rlimit_resource_t)limits[i].resource, &limit) <
		    0)
			return -1;
	}
	return 0;
}

/* ---- Landlock ----------------------------------------------------------- */

/* The header of an older kernel lacks what a newer one can do. */
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL_DEV (1ULL << 15)
#define NET_TCP 3ULL /* bind, connect */
#define SCOPES 3ULL  /* abstract sockets, signals */

struct ruleset {
	uint64_t files, net, scoped;
};

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE)
#define EXECUTE LANDLOCK_ACCESS_FS_EXECUTE
#define CHANGE                                                                 \
	(LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |          \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |        \
	 LANDLOCK_ACCESS_FS_REMOVE_DIR)
/* Of those, what a rule on a file may say. */
#define OF_FILES (LANDLOCK_ACCESS_FS_READ_FILE | WRITE | EXECUTE | FS_IOCTL_DEV)

int jail_landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

/* All that this kernel can forbid. */
static int make_ruleset(int abi, struct ruleset *set)
{
	size_t size = sizeof(set->files);

	*set = (struct ruleset){.files = (1ULL << 13) - 1};
	if (abi >= 2)
		set->files |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		set->files |= FS_TRUNCATE;
	if (abi >= 5)
		set->files |= FS_IOCTL_DEV;
	if (abi >= 4) {
		set->net = NET_TCP;
		size += sizeof(set->net);
	}
	if (abi >= 6) {
		set->scoped = SCOPES;
		size += sizeof(set->scoped);
	}
	return (int)syscall(SYS_landlock_create_ruleset, set, size, 0);
}

static int allow(int ruleset, const struct ruleset *set, int fd,
		 uint64_t access)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = access & set->files,
		.parent_fd = fd,
	};

	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
		    &rule, 0) == 0)
		return 0;
	/* Memory files have no place, and Landlock no say in them. */
	return errno == EBADFD ? 0 : -1;
}

static int allow_path(int ruleset, const struct ruleset *set, const char *path,
		      uint64_t access)
{
	AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	return allow(ruleset, set, fd, access);
}

static int allow_places(const struct jail *j, int ruleset,
			const struct ruleset *set)
{
	static const struct {
		const char *path;
		uint64_t access;
	} places[] = {
		{"/usr", READ | EXECUTE},
		{"/lib", READ | EXECUTE},
		{"/lib64", READ | EXECUTE},
		{"/etc", READ},
		{"/proc", READ},
		{"/dev", READ | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_IOCTL_DEV},
		{"/run", READ | WRITE | CHANGE},
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (allow_path(ruleset, set, places[i].path, places[i].access) <
		    0)
			return -1;
	return allow_path(ruleset, set, j->program,
			  (READ | EXECUTE) & OF_FILES);
}

static int landlock(const struct jail *j)
{
	int abi = jail_landlock_abi();
	struct ruleset set;
	AUTO_CLOSE int ruleset = -1;

	if (abi == 0)
		return 0;
	ruleset = make_ruleset(abi, &set);
	if (ruleset < 0 || allow_places(j, ruleset, &set) < 0)
		return -1;
	for (size_t i = 0; i < j->n_fds; i++)
		if (allow(ruleset, &set, j->fds[i].fd,
			  (READ | (j->fds[i].write ? WRITE : 0)) & OF_FILES) <
		    0)
			return -1;
	return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* ---- seccomp ------------------------------------------------------------ */

#define NAMESPACES                                                             \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |         \
	 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

static const int forbidden[] = {
	/* Another root, other mounts. */
	SCMP_SYS(mount),
	SCMP_SYS(umount2),
	SCMP_SYS(pivot_root),
	SCMP_SYS(chroot),
	SCMP_SYS(open_tree),
	SCMP_SYS(move_mount),
	SCMP_SYS(fsopen),
	SCMP_SYS(fspick),
	SCMP_SYS(mount_setattr),
	SCMP_SYS(open_by_handle_at),
	/* A user namespace would make it root of all of that. */
	SCMP_SYS(unshare),
	SCMP_SYS(setns),
	/* Other processes. */
	SCMP_SYS(ptrace),
	SCMP_SYS(process_vm_readv),
	SCMP_SYS(process_vm_writev),
	SCMP_SYS(pidfd_getfd),
	SCMP_SYS(kcmp),
	/* Parts of the kernel that are large, young, or shared by all. */
	SCMP_SYS(bpf),
	SCMP_SYS(perf_event_open),
	SCMP_SYS(userfaultfd),
	SCMP_SYS(io_uring_setup),
	SCMP_SYS(keyctl),
	SCMP_SYS(add_key),
	SCMP_SYS(request_key),
	SCMP_SYS(fanotify_init),
	SCMP_SYS(modify_ldt),
	/* Memory that none of its limits counts. */
	SCMP_SYS(memfd_create),
	SCMP_SYS(shmget),
	SCMP_SYS(msgget),
	SCMP_SYS(semget),
	/* Its log, which tells addresses and what others do. */
	SCMP_SYS(syslog),
	/* The kernel itself, should a capability ever be there. */
	SCMP_SYS(init_module),
	SCMP_SYS(finit_module),
	SCMP_SYS(delete_module),
	SCMP_SYS(kexec_load),
	SCMP_SYS(kexec_file_load),
	SCMP_SYS(reboot),
};

static int add_rules(scmp_filter_ctx filter)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);

	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++)
		if (seccomp_rule_add(filter, refuse, forbidden[i], 0) < 0)
			return -1;
	for (int bit = 0; bit < 32; bit++)
		if (NAMESPACES & 1U << bit &&
		    seccomp_rule_add(filter, refuse, SCMP_SYS(clone), 1,
				     SCMP_A0(SCMP_CMP_MASKED_EQ, 1U << bit,
					     1U << bit)) < 0)
			return -1;
	/* Its flags are in memory, where no filter sees them: the C library
	 * goes back to clone(2). */
	if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3),
			     0) < 0)
		return -1;
	/* Unix sockets, and one to ask about the tap.  No packets of its own
	 * making, and not vsock, which leads past the network namespace. */
	if (seccomp_rule_add(filter, refuse, SCMP_SYS(socket), 1,
			     SCMP_A0(SCMP_CMP_GT, AF_INET, 0)) < 0)
		return -1;
	return seccomp_rule_add(filter, refuse, SCMP_SYS(socketpair), 1,
				SCMP_A0(SCMP_CMP_NE, AF_UNIX, 0));
}

static int filter_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? add_rules(filter) : -1;

	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? -1 : 0;
}

/* ---- all of it ---------------------------------------------------------- */

int jail_lock(const struct jail *j, const char **step)
{
	*step = "limit itself";
	if (set_limits(j) < 0)
		return -1;
	*step = "empty the bounding set";
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_BOUNDS) < 0)
		return -1;
	*step = "become the sandbox' own user";
	if (setgroups(0, NULL) < 0 || setresgid(j->uid, j->uid, j->uid) < 0 ||
	    setresuid(j->uid, j->uid, j->uid) < 0)
		return -1;
	*step = "set no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	*step = "set up Landlock";
	if (landlock(j) < 0)
		return -1;
	*step = "filter its system calls";
	return filter_calls();
}
