/*
 * launch.c - from the files of a sandbox to a running, jailed VMM.
 *
 * Order, and why:
 * 1. As root, in the keeper: open kernel, initrd, base, disk; make the memory,
 *    the sockets, the FIFO.  From now on the VMM needs no path.
 * 2. fork.  The child waits before it becomes a VMM until the keeper has
 *    written its pid and start time into the slot: a VMM that no file knows
 *    of could never be found again.  When the keeper is killed first, the
 *    child reads end of file and ends.
 * 3. Child, still root: a network namespace of its own, the tap in it.
 * 4. Child: descriptors to their agreed numbers, all others closed.
 * 5. Child: no supplementary groups, gid, uid of the slot (never shared:
 *    siblings could ptrace each other), which also empties the capability
 *    sets; bounding set emptied before; no_new_privs; exec.
 */
#include "launch.h"
#include "netns.h"
#include "ram.h"
#include "unixsock.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

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

static int make_console(const struct sandbox *s, struct launch *l,
			struct fd_set_of_vmm *set)
{
	if (mkfifoat(s->run, "console", 0600) < 0 && errno != EEXIST)
		return -1;
	l->console = open_console(s->run);
	set->fd[FD_CONSOLE_HELD] =
		openat(s->run, "console", O_RDWR | O_CLOEXEC);
	set->fd[FD_CONSOLE] = openat(s->run, "console", O_WRONLY | O_CLOEXEC);
	return l->console < 0 || set->fd[FD_CONSOLE] < 0 ? -1 : 0;
}

static int open_files(const struct sandbox *s, struct launch *l,
		      const struct vmm_plan *plan, struct fd_set_of_vmm *set,
		      char *why, size_t size)
{
	static const struct {
		enum vmm_fd number;
		const char *name;
		int flags;
	} files[] = {
		{FD_KERNEL, "kernel", O_RDONLY},
		{FD_INITRD, "initrd", O_RDONLY},
		{FD_BASE, "base", O_RDONLY},
		{FD_DISK, "disk", O_RDWR},
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
	if (l->ram < 0)
		l->ram = ram_create(plan->memory);
	set->fd[FD_RAM] = l->ram < 0 ? -1 : dup(l->ram);
	if (set->fd[FD_RAM] < 0)
		return explain(why, size, "make its memory");
	set->fd[FD_CONTROL] = unix_listen(s->run, "qmp.sock", SOCK_STREAM);
	set->fd[FD_EVENTS] = unix_listen(s->run, "event.sock", SOCK_STREAM);
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

static void drop_privileges(uid_t uid)
{
	const struct rlimit no_core = {0, 0};

	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		child_fails("forbid core files");
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_BOUNDS) < 0)
		child_fails("empty the bounding set");
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		child_fails("become the sandbox' own user");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		child_fails("set no_new_privs");
}

NORETURN static void become_vmm(const struct launch *l, int go,
				struct fd_set_of_vmm *set,
				struct vmm_argv *argv)
{
	static const char *const environment[] = {"PATH=/usr/bin:/bin",
						  "LANG=C", NULL};
	const char *step;
	char byte;
	sigset_t none;

	set->fd[FD_TAP] = netns_enter_new(&step);
	if (set->fd[FD_TAP] < 0)
		child_fails(step);
	if (read_full(go, &byte, 1) != 1)
		_exit(0);
	place_descriptors(set);
	drop_privileges(l->uid);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (chdir("/") < 0)
		child_fails("go to /");
	execve(argv->word[0], (char *const *)(uintptr_t)argv->word,
	       (char *const *)(uintptr_t)environment);
	child_fails("run the VMM");
}

/* fork, record, release. */
static int start_child(const struct sandbox *s, struct launch *l,
		       struct fd_set_of_vmm *set, struct vmm_argv *argv)
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
	l->pid = fork();
	if (l->pid == 0) {
		close(go[1]);
		if (dup2(errors[1], STDERR_FILENO) < 0)
			_exit(EX_OSERR);
		become_vmm(l, go[0], set, argv);
	}
	close(go[0]);
	close(errors[1]);
	l->errors = errors[0];
	if (l->pid < 0 || fcntl(l->errors, F_SETFL, O_NONBLOCK) < 0 ||
	    proc_of(l->pid, &vmm) < 0 || proc_write(s->run, "vmm", &vmm) < 0 ||
	    (write_full(go[1], "g", 1) < 0 && errno != EPIPE)) {
		close(go[1]);
		return -1;
	}
	/* EPIPE: it has failed already; its end and its words come to the
	 * keeper as those of any VMM. */
	close(go[1]);
	return 0;
}

static int read_plan(const struct sandbox *s, struct vmm_plan *plan)
{
	long long memory, cpus;

	if (read_number(s->dir, "memory", 1 << 20, INT64_MAX, &memory) < 0 ||
	    read_number(s->dir, "cpus", 1, 255, &cpus) < 0)
		return -1;
	plan->name = s->name;
	plan->memory = (uint64_t)memory;
	plan->cpus = (unsigned)cpus;
	return 0;
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
	char program[256];

	memset(&set, 0xff, sizeof(set));
	if (!argv || read_plan(s, &plan) < 0)
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
	if (open_files(s, l, &plan, &set, why, size) < 0)
		return -1;
	if (start_child(s, l, &set, argv) < 0)
		return explain(why, size, "start the VMM");
	return 0;
}
