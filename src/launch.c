/*
 * launch.c - from the files of a sandbox to a running, jailed VMM.
 *
 * Order, and why:
 * 1. As root, in the keeper: open kernel, initrd, base, disk; make the memory,
 *    the sockets, the FIFOs.  From now on the VMM needs no path of ours.
 * 2. clone3 into a new PID namespace, and into the cgroup when there is one.
 *    The VMM is process 1 in it and a child of the keeper outside.
 * 3. Child, still root: a network namespace with the tap (netns.c), then a root
 *    of its own (jail.c).  This is most of the work, and done while the keeper
 *    is at the next point.
 * 4. The child waits before it becomes a VMM until the keeper has written its
 *    pid and start time into the slot: a VMM that no file knows of could never
 *    be found again.  When the keeper is killed first, the child reads end of
 *    file and ends, and with it its namespaces, which hold all that it made.
 * 5. Child: descriptors to their agreed numbers, all others closed; those to
 *    the host's directories are the last way back there.
 * 6. Child: what it gives up (jail-lock.c); exec.
 */
#include "launch.h"
#include "cgroup.h"
#include "netns.h"
#include "ram.h"
#include "unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Descriptors by vmm_fd number, -1 = not open; closed with its scope. */
struct fd_set_of_vmm {
	int fd[FD_PAST_LAST];
};

static void close_all(struct fd_set_of_vmm *set)
{
	for (int i = 0; i < FD_PAST_LAST; i++)
		if (set->fd[i] >= 0)
			close(set->fd[i]);
}

static int explain(char *why, size_t size, const char *what)
{
	snprintf(why, size, "cannot %s: %s", what, strerror(errno));
	return -1;
}

int open_console(int run)
{
	/* Read-write: the FIFO then never reports end of file. */
	return openat(run, "console", O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

/* Who opens its descriptors once more has to own what it writes to; everybody
 * else must not. */
static int give(const struct launch *l, int fd)
{
	uid_t owner = l->driver->opens_paths ? l->uid : 0;

	return fchown(fd, owner, owner);
}

static int make_console(const struct sandbox *s, struct launch *l,
			struct fd_set_of_vmm *set)
{
	if (mkfifoat(s->run, "console", 0600) < 0 && errno != EEXIST)
		return -1;
	l->console = open_console(s->run);
	set->fd[FD_CONSOLE_HELD] =
		openat(s->run, "console", O_RDWR | O_CLOEXEC);
	set->fd[FD_CONSOLE] = openat(s->run, "console", O_WRONLY | O_CLOEXEC);
	if (l->console < 0 || set->fd[FD_CONSOLE] < 0)
		return -1;
	return give(l, set->fd[FD_CONSOLE]);
}

/* Open for reading too: without a keeper a FIFO fills, and is not broken. */
static int make_events(const struct sandbox *s, const struct launch *l)
{
	if (!l->driver->events_by_fifo)
		return unix_listen(s->run, "event.sock", SOCK_STREAM);
	if (mkfifoat(s->run, "events", 0600) < 0 && errno != EEXIST)
		return -1;
	return openat(s->run, "events", O_RDWR | O_CLOEXEC);
}

static int open_files(const struct sandbox *s, const struct launch *l,
		      const struct vmm_plan *plan, struct fd_set_of_vmm *set,
		      char *why, size_t size)
{
	const struct {
		enum vmm_fd number;
		const char *name;
		int flags;
	} files[] = {
		{FD_KERNEL, "kernel", O_RDONLY},
		{FD_INITRD, "initrd", O_RDONLY},
		{FD_BASE, "base", O_RDONLY},
		{FD_DISK, "disk", O_RDWR | (plan->direct ? O_DIRECT : 0)},
	};
	char what[64];

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		int fd = openat(s->dir, files[i].name,
				files[i].flags | O_CLOEXEC | O_NOFOLLOW);

		set->fd[files[i].number] = fd;
		snprintf(what, sizeof(what), "open its %s", files[i].name);
		if (fd < 0)
			return explain(why, size, what);
	}
	if (give(l, set->fd[FD_DISK]) < 0)
		return explain(why, size, "give it its disk");
	return 0;
}

static int make_channels(const struct sandbox *s, struct launch *l,
			 const struct vmm_plan *plan, struct fd_set_of_vmm *set,
			 char *why, size_t size)
{
	if (l->ram < 0)
		l->ram = ram_create(plan->memory);
	set->fd[FD_RAM] = l->ram < 0 ? -1 : dup(l->ram);
	if (set->fd[FD_RAM] < 0)
		return explain(why, size, "make its memory");
	set->fd[FD_CONTROL] = unix_listen(s->run, "qmp.sock", SOCK_STREAM);
	set->fd[FD_EVENTS] = make_events(s, l);
	if (set->fd[FD_CONTROL] < 0 || set->fd[FD_EVENTS] < 0)
		return explain(why, size, "make its sockets");
	if (make_console(s, l, set) < 0)
		return explain(why, size, "make its console");
	return 0;
}

/* The child has no other way to say why than the stderr of the VMM. */
NORETURN static void child_fails(const char *what)
{
	dprintf(STDERR_FILENO, "cannot %s: %s\n", what, strerror(errno));
	_exit(EX_OSERR);
}

/* Descriptors to their numbers.  First all above the last number, so that no
 * move overwrites one that is still to be moved. */
static void place_descriptors(struct fd_set_of_vmm *set)
{
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++) {
		set->fd[i] = fcntl(set->fd[i], F_DUPFD, FD_PAST_LAST);
		if (set->fd[i] < 0)
			child_fails("duplicate a descriptor");
	}
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		if (dup2(set->fd[i], i) < 0)
			child_fails("place a descriptor");
	if (close_range(FD_PAST_LAST, ~0U, 0) < 0)
		child_fails("close descriptors");
}

/* Everything that the child needs. */
struct child {
	const struct launch *launch;
	struct jail jail;
	struct fd_set_of_vmm *set;
	struct vmm_argv *argv;
	int go; /* one byte: it is on record */
};

NORETURN static void become_vmm(const struct child *c)
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin",
						  "LANG=C", NULL};
	const char *step;
	char byte;
	sigset_t none;

	c->set->fd[FD_TAP] =
		netns_enter_new(c->jail.tun, c->launch->uid, &step);
	if (c->set->fd[FD_TAP] < 0 || jail_enter(&c->jail, &step) < 0)
		child_fails(step);
	if (read_full(c->go, &byte, 1) != 1)
		_exit(0);
	place_descriptors(c->set);
	if (jail_lock(&c->jail, &step) < 0)
		child_fails(step);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execve(c->argv->word[0], (char *const *)(uintptr_t)c->argv->word,
	       (char *const *)(uintptr_t)environment);
	child_fails("run the VMM");
}

/* fork(2), but into a PID namespace and a cgroup: whoever comes in later could
 * have made others outside. */
static pid_t fork_away(int cgroup)
{
	struct clone_args how = {
		.flags = CLONE_NEWPID,
		.exit_signal = SIGCHLD,
	};

	if (cgroup >= 0) {
		how.flags |= CLONE_INTO_CGROUP;
		how.cgroup = (uint64_t)cgroup;
	}
	return (pid_t)syscall(SYS_clone3, &how, sizeof(how));
}

/* fork, record, release. */
static int start_child(const struct sandbox *s, struct launch *l,
		       struct child *c)
{
	struct proc vmm;
	int go[2], errors[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(errors, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return -1;
	}
	c->go = go[0];
	l->pid = fork_away(l->cgroup);
	if (l->pid == 0) {
		close(go[1]);
		if (dup2(errors[1], STDERR_FILENO) < 0)
			_exit(EX_OSERR);
		become_vmm(c);
	}
	close(go[0]);
	close(errors[1]);
	l->errors = errors[0];
	if (l->pid < 0 || fcntl(l->errors, F_SETFL, O_NONBLOCK) < 0 ||
	    oom_first(l->pid) < 0 || proc_of(l->pid, &vmm) < 0 ||
	    proc_write(s->run, "vmm", &vmm) < 0 ||
	    (write_full(go[1], "g", 1) < 0 && errno != EPIPE)) {
		close(go[1]);
		return -1;
	}
	/* EPIPE: it has failed already; its end and its words come to the
	 * keeper as those of any VMM. */
	close(go[1]);
	return 0;
}

/* Only who opens its descriptors once more can profit from a rule for them,
 * and which do is the VMM's affair. */
static struct jail jail_of(const struct launch *l, const struct vmm_plan *plan,
			   const struct fd_set_of_vmm *set)
{
	static const struct jail_fd fds[] = {
		{FD_KERNEL, false}, {FD_INITRD, false}, {FD_BASE, false},
		{FD_RAM, true},	    {FD_DISK, true},	{FD_CONSOLE, true},
	};
	struct stat disk;

	return (struct jail){
		.program = plan->program,
		.reads = l->driver->reads,
		.files = l->files,
		.n_files = l->n_files,
		.uid = l->uid,
		.kvm = l->accel == ACCEL_KVM,
		.tun = l->driver->needs_tun,
		.memory = plan->memory,
		.disk = fstat(set->fd[FD_DISK], &disk) < 0
				? 0
				: (uint64_t)disk.st_size,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
	};
}

/* The rate is the host's and is measured once per boot: ARK_RUN does not
 * outlive one. */
unsigned host_tsc_khz(void)
{
	AUTO_CLOSE int run = run_open(true);
	long long known;
	unsigned khz;

	if (read_number(run, "tsc-khz", 1, UINT32_MAX, &known) == 0)
		return (unsigned)known;
	khz = tsc_khz();
	if (khz)
		write_value(run, "tsc-khz", "%u", khz);
	return khz;
}

int launch_vmm(const struct sandbox *s, struct launch *l, char *why,
	       size_t size)
{
	__attribute__((cleanup(close_all))) struct fd_set_of_vmm set;
	struct vmm_plan plan = {.accel = l->accel};
	AUTO_FREE struct vmm_argv *argv = calloc(1, sizeof(*argv));
	struct child child;
	char program[256];

	memset(&set, 0xff, sizeof(set));
	if (!argv || vmm_plan_read(s, &plan) < 0)
		return explain(why, size, "read its settings");
	if (l->driver->find(l->accel, program, sizeof(program)) < 0) {
		snprintf(why, size, "no program for %s", l->driver->name);
		return -1;
	}
	plan.program = program;
	plan.restore = l->state >= 0;
	if (l->accel == ACCEL_TCG)
		plan.tsc_khz = host_tsc_khz();
	l->driver->argv(&plan, argv);
	if (open_files(s, l, &plan, &set, why, size) < 0 ||
	    make_channels(s, l, &plan, &set, why, size) < 0)
		return -1;
	/* Nobody can ask the kernel for it afterwards. */
	if (write_value(s->run, "landlock", "%d", jail_landlock_abi()) < 0)
		return explain(why, size, "record its jail");
	child = (struct child){.launch = l, .set = &set, .argv = argv};
	child.jail = jail_of(l, &plan, &set);
	if (start_child(s, l, &child) < 0)
		return explain(why, size, "start the VMM");
	return 0;
}
