/*
 * keeper.c - become the keeper of a VM, at its start or after the death of
 * another.
 *
 * What kill -9 of the keeper leaves is a VMM that goes on: its pid is in the
 * slot, its console fills a FIFO, its end is seen in /proc.  The next command
 * starts another keeper over it by pidfd.  What kill -9 of the VMM leaves is
 * a keeper that records it.  What kill -9 of both leaves is a slot whose lock
 * nobody holds, which every command and gc can tell from a live one.
 */
#include "cgroup.h"
#include "keeper-loop.h"
#include "keeper.h"
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Close every descriptor but 0, 1, 2 and those of the (few) in keep[]. */
static int close_others(int keep[], size_t n)
{
	unsigned from = 3;

	qsort(keep, n, sizeof(keep[0]), by_number);
	for (size_t i = 0; i < n; i++) {
		if (keep[i] < 3)
			continue;
		if (from < (unsigned)keep[i] &&
		    close_range(from, (unsigned)keep[i] - 1, 0) < 0)
			return -1;
		from = (unsigned)keep[i] + 1;
	}
	return close_range(from, ~0U, 0);
}

/* Nothing of the caller's is kept: not its terminal, not its pipes (whoever
 * reads them would wait for us), not the lock on the sandbox' directory, which
 * is why that is opened anew. */
static int detach(struct sandbox *s, const int more[4])
{
	AUTO_CLOSE int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int vm = open_dir(s->dir, ".");
	int keep[] = {s->run, vm, more[0], more[1], more[2], more[3]};

	if (null < 0 || vm < 0 || setsid() < 0)
		return -1;
	s->dir = vm;
	for (int fd = 0; fd < 3; fd++)
		if (dup2(null, fd) < 0)
			return -1;
	steal_fd(&null);
	if (close_others(keep, ARRAY_LEN(keep)) < 0)
		return -1;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGTERM, SIG_DFL); /* whatever the caller has done to it */
	prctl(PR_SET_NAME, "ark-keeper");
	umask(077);
	return chdir("/");
}

static int record_keeper(const struct sandbox *s)
{
	struct proc self;

	if (proc_of(getpid(), &self) < 0)
		return -1;
	return proc_write(s->run, "keeper", &self);
}

static struct keeper new_keeper(struct sandbox *s, const struct vmm *driver)
{
	struct keeper k = {
		.s = s,
		.driver = driver,
		.launch = {.console = -1,
			   .errors = -1,
			   .state = -1,
			   .ram = -1,
			   .cgroup = -1},
		.log = {.fd = -1},
		.pidfd = -1,
		.events = -1,
		.expiry = -1,
		.result = -1,
		.next_hello = now_ms() + HELLO_BLIND_MS,
		.give_up = now_ms() + READY_LIMIT_MS,
	};

	new_uuid(k.generation);
	return k;
}

NORETURN static void starting_keeper(struct sandbox *s, const struct start *how,
				     int result)
{
	struct keeper k = new_keeper(s, how->driver);
	char why[512] = "cannot listen in its slot";

	k.launch.driver = how->driver;
	k.launch.accel = how->accel;
	k.launch.uid = how->uid;
	k.launch.state = how->state;
	k.launch.ram = how->ram;
	k.launch.files = how->files;
	k.launch.n_files = how->n_files;
	k.result = result;
	k.ours = true;
	if (detach(s, (int[]){how->held, result, how->state, how->ram}) < 0 ||
	    record_keeper(s) < 0) {
		tell_starter(&k, "cannot start its keeper");
		_exit(EX_OSERR);
	}
	console_open(&k.log, s->dir);
	if (keeper_sock_open(&k.sock, s->run) < 0 ||
	    ready_reserve(&k, why, sizeof(why)) < 0 ||
	    cgroup_make(s, how->driver, how->accel, &k.launch.cgroup, why,
			sizeof(why)) < 0 ||
	    launch_vmm(s, &k.launch, why, sizeof(why)) < 0) {
		write_value(s->run, "exit", "dead: %s", why);
		tell_starter(&k, why);
		_exit(EX_OSERR);
	}
	proc_read(s->run, "vmm", &s->vmm);
	/* Where other keepers find the memory that a clone shares. */
	write_value(s->run, "ram-fd", "%d", k.launch.ram);
	ready_begin(&k);
	keeper_watch(&k);
	_exit(0);
}

NORETURN static void adopting_keeper(struct sandbox *s,
				     const struct vmm *driver, int held,
				     int result)
{
	struct keeper k = new_keeper(s, driver);

	if (detach(s, (int[]){held, result, -1, -1}) < 0 ||
	    record_keeper(s) < 0)
		_exit(EX_OSERR);
	/* The memory could be had from the VMM alone, which is not trusted
	 * with what others would run on. */
	unlinkat(s->run, "ram-fd", 0);
	k.settled = faccessat(s->run, "generation", F_OK, 0) == 0;
	k.next_hello = 0;
	if (keeper_sock_open(&k.sock, s->run) < 0)
		_exit(EX_OSERR);
	ready_reserve_again(&k);
	console_open(&k.log, s->dir);
	k.launch.console = open_console(s->run);
	close(result);
	if (!k.settled)
		ready_begin(&k);
	keeper_watch(&k);
	_exit(0);
}

/* Run `become` in a process that is nobody's child.  The read end of its
 * result pipe, or -1 and errno. */
static int fork_keeper(pid_t *pid, int *result)
{
	int ends[2];
	pid_t middle;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	middle = fork();
	if (middle == 0) {
		*pid = fork();
		if (*pid != 0)
			_exit(*pid < 0);
		close(ends[0]);
		*result = ends[1];
		return 0;
	}
	close(ends[1]);
	*pid = middle;
	if (middle < 0 || waitpid(middle, NULL, 0) < 0) {
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

int keeper_start(struct sandbox *s, const struct start *how)
{
	char text[600] = "";
	pid_t pid = 0;
	int result = -1;
	AUTO_CLOSE int lock = how->held;
	AUTO_CLOSE int answer = fork_keeper(&pid, &result);

	if (pid == 0) {
		steal_fd(&lock);
		starting_keeper(s, how, result);
	}
	if (answer < 0)
		return fail_errno(EX_OSERR, "cannot start a keeper for '%s'",
				  s->name);
	if (read_full(answer, text, sizeof(text) - 1) < 0 || !*text)
		snprintf(text, sizeof(text), "its keeper was killed");
	if (strcmp(text, "ready") == 0)
		return 0;
	return fail(EX_UNAVAILABLE, "cannot start sandbox '%s': %s", s->name,
		    text);
}

int keeper_adopt(struct sandbox *s)
{
	const struct vmm *driver;
	char byte;
	pid_t pid = 0;
	int result = -1, r;
	AUTO_CLOSE int held = -1;
	AUTO_CLOSE int answer = -1;

	if (!s->slot || s->keeper_alive || !proc_alive(&s->vmm))
		return 0;
	driver = vmm_recorded(s, &r);
	if (!driver)
		return r;
	held = slot_hold(s);
	if (held < 0)
		return errno == EWOULDBLOCK
			       ? 0
			       : fail_errno(EX_OSERR,
					    "cannot hold the slot of '%s'",
					    s->name);
	answer = fork_keeper(&pid, &result);
	if (pid == 0)
		adopting_keeper(s, driver, steal_fd(&held), result);
	if (answer < 0)
		return fail_errno(EX_OSERR, "cannot start a keeper for '%s'",
				  s->name);
	/* End of file: it has recorded itself and reads the console. */
	(void)!read_full(answer, &byte, 1);
	return 0;
}
