/*
 * bare - the bare VMM to the same answer: what ark is measured against.
 *
 *	bare VMDIR RUNDIR		boot; prints milliseconds
 *	bare VMDIR RUNDIR SNAPDIR	the same from a snapshot
 *
 * QEMU gets the argv that ark gives it, on the files of an existing sandbox.
 * Everything that ark does besides (state, locks, keeper, jail, disk copy,
 * namespace) is left out of the measured time or not done at all: measured is
 * from fork to the answer of the agent's first exec.
 */
#include "agent.h"
#include "hello.h"
#include "launch.h"
#include "netns.h"
#include "ram.h"
#include "unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int checked(int fd, const char *what)
{
	if (fd < 0) {
		fail_errno(EX_OSERR, "cannot %s", what);
		exit(EX_OSERR);
	}
	return fd;
}

static void read_sizes(int vm, struct vmm_plan *plan)
{
	long long memory = 0, cpus = 0;

	if (read_number(vm, "memory", 1, INT64_MAX, &memory) < 0 ||
	    read_number(vm, "cpus", 1, 255, &cpus) < 0)
		checked(-1, "read the sandbox");
	plan->memory = (uint64_t)memory;
	plan->cpus = (unsigned)cpus;
}

/* Descriptors 3, 4, ... as vmm.h numbers them; the console's read end comes
 * back. */
static int open_all(int vm, int run, int snap, uint64_t memory)
{
	static const char *const names[] = {[FD_KERNEL] = "kernel",
					    [FD_INITRD] = "initrd",
					    [FD_BASE] = "base",
					    [FD_DISK] = "disk"};
	const char *step;
	int fd[FD_PAST_LAST], console;

	unlinkat(run, "console", 0);
	checked(mkfifoat(run, "console", 0600), "make the console");
	console = checked(open_console(run), "open the console");
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		fd[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i])
			fd[i] = openat(vm, names[i],
				       i == FD_DISK ? O_RDWR : O_RDONLY);
	fd[FD_RAM] =
		snap < 0 ? ram_create(memory) : ram_load(snap, "ram", memory);
	fd[FD_CONTROL] = unix_listen(run, "qmp.sock", SOCK_STREAM);
	fd[FD_EVENTS] = unix_listen(run, "event.sock", SOCK_STREAM);
	fd[FD_CONSOLE] = openat(run, "console", O_WRONLY);
	fd[FD_CONSOLE_HELD] = openat(run, "console", O_RDWR);
	fd[FD_TAP] = netns_enter_new(false, 0, &step);
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		fd[i] = fcntl(checked(fd[i], "open"), F_DUPFD, 64);
	console = fcntl(console, F_DUPFD_CLOEXEC, 64);
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		checked(dup2(fd[i], i), "place a descriptor");
	return console;
}

static void load(int run, int snap)
{
	const struct sandbox s = {.run = run};
	const struct vmm_plan plan = {.restore = true};
	char why[400];
	int state = checked(openat(snap, "state", O_RDONLY), "open the state");

	if (vmm_qemu.load(&s, &plan, state, why, sizeof(why)) < 0)
		die(EX_UNAVAILABLE, "cannot load: %s", why);
	close(state);
}

/* Until the agent's line is on the console. */
static void await_ready(int console)
{
	char seen[65536];
	size_t len = 0;

	while (len + 1 < sizeof(seen)) {
		struct pollfd p = {.fd = console, .events = POLLIN};
		ssize_t n;

		if (poll(&p, 1, 120000) <= 0)
			die(EX_UNAVAILABLE, "guest is silent");
		n = read(console, seen + len, sizeof(seen) - len - 1);
		len += n > 0 ? (size_t)n : 0;
		seen[len] = '\0';
		if (strstr(seen, AGENT_READY))
			return;
	}
	die(EX_UNAVAILABLE, "guest talks too much");
}

static double ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void greet(pid_t vmm)
{
	struct sandbox s = {.name = "bare"};
	char generation[37];
	int report, status = 0;
	pid_t pid;

	checked(proc_of(vmm, &s.vmm), "see the VMM");
	new_uuid(generation);
	pid = hello_start(&s, generation, &report);
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		die(EX_UNAVAILABLE, "first exec failed");
	close(report);
}

int main(int argc, char **argv)
{
	struct vmm_argv *words = calloc(1, sizeof(*words));
	struct vmm_plan plan = {.name = "bare"};
	char program[256];
	int vm, run, console, snap = -1;
	double start;
	pid_t pid;

	progname = "bare";
	if (argc < 3 || argc > 4 || !words)
		die_usage("bare VMDIR RUNDIR [SNAPDIR]");
	if (argc == 4)
		snap = fcntl(checked(open_dir(AT_FDCWD, argv[3]),
				     "open the snapshot"),
			     F_DUPFD_CLOEXEC, 64);
	plan.restore = snap >= 0;
	vm = checked(open_dir(AT_FDCWD, argv[1]), "open the sandbox");
	run = checked(make_dir(argv[2], 0700), "open the run directory");
	read_sizes(vm, &plan);
	if (accel_choose(&plan.accel) < 0 ||
	    vmm_qemu.find(plan.accel, program, sizeof(program)) < 0)
		return EX_UNAVAILABLE;
	plan.program = program;
	plan.tsc_khz = plan.accel == ACCEL_TCG ? tsc_khz() : 0;
	vmm_qemu.argv(&plan, words);
	vm = fcntl(vm, F_DUPFD_CLOEXEC, 64);
	run = fcntl(run, F_DUPFD_CLOEXEC, 64);
	console = open_all(vm, run, snap, plan.memory);
	start = ms();
	pid = fork();
	if (pid == 0) {
		execv(words->word[0], (char *const *)(uintptr_t)words->word);
		_exit(127);
	}
	if (snap >= 0)
		load(run, snap);
	else
		await_ready(console);
	greet(pid);
	printf("%.1f\n", ms() - start);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	free(words);
	return finish(0);
}
