/*
 * bare - a bare VMM to the same answer: what ark is measured against.
 *
 *	bare VMDIR RUNDIR		boot; prints milliseconds
 *	bare VMDIR RUNDIR SNAPDIR	the same from a snapshot
 *
 * The VMM of ARK_VMM gets the words that ark gives it, on the files of an
 * existing sandbox.  Everything that ark does besides (state, locks, keeper,
 * jail, disk copy, the network's rules) is left out of the measured time or not
 * done at all: measured is from fork to the answer of the agent's first exec.
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
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
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

/* All drivers name the same places below /run, which a jail has. */
static void make_places(void)
{
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("bare", "/run", "tmpfs", 0, NULL) < 0 ||
	    mkdir("/run/restore", 0700) < 0 || mkdir("/run/save", 0700) < 0)
		checked(-1, "make a /run of its own");
}

/* What a driver wants to find in /run/restore. */
static void put_files(const struct vmm *driver, const struct vmm_plan *plan,
		      int state)
{
	struct jail_file files[VMM_FILES_MAX];
	int n = driver->files(plan, state, files);
	int dir = checked(open_dir(AT_FDCWD, "/run/restore"), "open it");

	if (n < 0)
		exit(-n);
	for (int i = 0; i < n; i++) {
		int fd = checked(openat(dir, files[i].name,
					O_WRONLY | O_CREAT | O_EXCL, 0600),
				 "make a file for the VMM");

		checked(write_full(fd, files[i].data, files[i].len),
			"write a file for the VMM");
		close(fd);
		free((void *)(uintptr_t)files[i].data);
	}
	close(dir);
}

static int open_events(const struct vmm *driver, int run)
{
	if (!driver->events_by_fifo)
		return unix_listen(run, "event.sock", SOCK_STREAM);
	unlinkat(run, "events", 0);
	checked(mkfifoat(run, "events", 0600), "make the events");
	return openat(run, "events", O_RDWR);
}

/* Descriptors 3, 4, ... as vmm.h numbers them; the console's read end comes
 * back. */
static int open_all(const struct vmm *driver, int vm, int run, int snap,
		    uint64_t memory)
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
	fd[FD_EVENTS] = open_events(driver, run);
	fd[FD_CONSOLE] = openat(run, "console", O_WRONLY);
	fd[FD_CONSOLE_HELD] = openat(run, "console", O_RDWR);
	fd[FD_TAP] = netns_enter_new(driver->needs_tun, 0, &step);
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		fd[i] = fcntl(checked(fd[i], "open"), F_DUPFD, 64);
	console = fcntl(console, F_DUPFD_CLOEXEC, 64);
	for (int i = FD_KERNEL; i < FD_PAST_LAST; i++)
		checked(dup2(fd[i], i), "place a descriptor");
	return console;
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

static void greet(const struct sandbox *s)
{
	char generation[37];
	int report, status = 0;
	pid_t pid;

	new_uuid(generation);
	pid = hello_start(s, generation, &report);
	if (waitpid(pid, &status, 0) < 0 || status != 0)
		die(EX_UNAVAILABLE, "first exec failed");
	close(report);
}

/* From fork to the first exec; in ms. */
static double measure(const struct vmm *driver, const struct vmm_plan *plan,
		      struct sandbox *s, int state, int console,
		      const struct vmm_argv *words)
{
	double start = ms();
	pid_t pid = fork();
	char why[400];

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(words->word[0], (char *const *)(uintptr_t)words->word);
		_exit(127);
	}
	checked(proc_of(pid, &s->vmm), "see the VMM");
	if ((plan->restore || driver->boots_by_load) &&
	    driver->load(s, plan, state, why, sizeof(why)) < 0)
		die(EX_UNAVAILABLE, "cannot load: %s", why);
	if (!plan->restore)
		await_ready(console);
	greet(s);
	start = ms() - start;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return start;
}

/* A descriptor above those of vmm_fd. */
static int aside(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 64);
}

int main(int argc, char **argv)
{
	struct vmm_argv *words = calloc(1, sizeof(*words));
	struct vmm_plan plan = {0};
	struct sandbox s = {.name = "bare"};
	const struct vmm *driver;
	char program[256];
	int console, r, snap = -1, state = -1;

	progname = "bare";
	if (argc < 3 || argc > 4 || !words)
		die_usage("bare VMDIR RUNDIR [SNAPDIR]");
	if (argc == 4) {
		snap = aside(checked(open_dir(AT_FDCWD, argv[3]),
				     "open the snapshot"));
		state = aside(checked(openat(snap, "state", O_RDONLY),
				      "open the state"));
	}
	plan.restore = snap >= 0;
	s.dir = aside(checked(open_dir(AT_FDCWD, argv[1]), "open the sandbox"));
	s.run = aside(checked(make_dir(argv[2], 0700), "open RUNDIR"));
	checked(vmm_plan_read(&s, &plan), "read the sandbox");
	if ((r = accel_choose(&plan.accel)) < 0)
		return -r;
	driver = vmm_choose(plan.accel, &r);
	if (!driver || driver->find(plan.accel, program, sizeof(program)) < 0 ||
	    write_value(s.run, "driver", "%s", driver->name) < 0)
		return EX_UNAVAILABLE;
	plan.program = program;
	plan.tsc_khz = plan.accel == ACCEL_TCG ? tsc_khz() : 0;
	driver->argv(&plan, words);
	make_places();
	if (plan.restore && driver->files)
		put_files(driver, &plan, state);
	console = open_all(driver, s.dir, s.run, snap, plan.memory);
	printf("%.1f\n", measure(driver, &plan, &s, state, console, words));
	free(words);
	return finish(0);
}
