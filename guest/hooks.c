/*
 * hooks.c - /etc/ark/restore.d: what the image wants done in a copy of itself
 * before anybody may use it: new keys, other tokens, a restart of what has
 * random numbers of its own.
 *
 * 1. A runner in a cgroup of its own lists the folder and runs the hooks one
 *    after the other; it may block, the loop goes on.  No shell has a say: a
 *    hook is executed by its path, and a script names its interpreter.
 * 2. Fail closed: only a runner that ended with 0 and reported nothing confirms
 *    the identity.  One that was killed, that hangs, or whose client has gone
 *    leaves a guest without a generation, and none of its processes.
 * 3. What hooks that succeeded left behind goes on: it is their purpose to
 *    restart services.
 * 4. A newer identity replaces one whose hooks still run.  A snapshot may have
 *    been taken just then, and its copies must not wait for a client of
 *    another life.
 */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define FOLDER "/etc/ark/restore.d"
#define EACH_MS 10000
#define ALL_MS 30000
#define GRACE_MS 1000	/* for the runner to say which one it was */
#define OUTPUT_MAX 8192 /* of all hooks, on the console */
#define IDS 0x80000000u /* cgroups: above those of execs */
#define REPORT_FD 3

/* ---- the runner --------------------------------------------------------- */

struct runner {
	uint64_t until; /* all are done, or one of them is the last */
	int output[2];	/* of the hooks */
	size_t room;	/* left of OUTPUT_MAX */
	size_t len;	/* of the line so far */
	char line[200];
	char generation[64], hostname[96]; /* for the environment */
};

/* The reason to the agent. */
NORETURN PRINTF(1, 2) static void give_up(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vdprintf(REPORT_FD, fmt, args);
	va_end(args);
	_exit(1);
}

/* Short lines count for more than they have: each gets a prefix. */
static void show_line(struct runner *r, const char *name)
{
	size_t cost = r->len + 32;

	r->line[r->len] = '\0';
	if (r->len && r->room >= cost) {
		say("hook %s: %s", name, r->line);
		r->room -= cost;
	} else if (r->len && r->room) {
		say("hook %s: more output is dropped", name);
		r->room = 0;
	}
	r->len = 0;
}

static void show(struct runner *r, const char *name, const char *text,
		 size_t len)
{
	for (size_t i = 0; i < len && r->room; i++) {
		bool plain = text[i] >= ' ' && text[i] != 0x7f;

		if (text[i] == '\n' || r->len == sizeof(r->line) - 1)
			show_line(r, name);
		if (text[i] != '\n')
			r->line[r->len++] = plain ? text[i] : '?';
	}
}

/* What a pipe holds, and no more: what a hook left behind may go on writing. */
static void drain(struct runner *r, const char *name)
{
	char text[4096];
	ssize_t n = 1;

	for (size_t i = 0; n > 0 && i < 65536 / sizeof(text); i++) {
		n = read(r->output[0], text, sizeof(text));
		if (n > 0)
			show(r, name, text, (size_t)n);
	}
}

NORETURN static void become_hook(const struct runner *r, const char *name)
{
	char path[sizeof(FOLDER) + 256];
	char *argv[] = {path, NULL};
	char *env[] = {(char *)(uintptr_t)r->generation,
		       (char *)(uintptr_t)r->hostname, (char[]){PATH_DEFAULT},
		       NULL};

	snprintf(path, sizeof(path), FOLDER "/%s", name);
	if (dup2(r->output[1], 1) < 0 || dup2(r->output[1], 2) < 0)
		_exit(EX_OSERR);
	execve(path, argv, env);
	dprintf(2, "cannot execute: %s\n", strerror(errno));
	_exit(EX_CANNOT_RUN);
}

/* Its status; -1 when it is not done by `until`. */
static int await(struct runner *r, const char *name, pid_t pid, uint64_t until)
{
	struct pollfd p[] = {
		{.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN},
		{.fd = r->output[0], .events = POLLIN},
	};
	int status = -1;

	while (status < 0 && clock_ms() < until) {
		int left = (int)(until - clock_ms());

		if (poll(p, ARRAY_LEN(p), left > 0 ? left : 0) <= 0)
			continue;
		if (p[0].revents && waitpid(pid, &status, 0) < 0)
			break;
		drain(r, name);
	}
	show_line(r, name);
	close(p[0].fd);
	return status;
}

static void run_hook(struct runner *r, const char *name)
{
	uint64_t now = clock_ms();
	uint64_t until = now + EACH_MS < r->until ? now + EACH_MS : r->until;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		become_hook(r, name);
	if (pid < 0)
		give_up("hook '%s': %s", name, strerror(errno));
	status = await(r, name, pid, until);
	if (status < 0)
		give_up("hook '%s' takes too long", name);
	if (WIFSIGNALED(status))
		give_up("hook '%s' was killed by signal %d", name,
			WTERMSIG(status));
	if (status != 0)
		give_up("hook '%s' ended with %d", name, WEXITSTATUS(status));
}

static int has_plain_name(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

NORETURN static void run_all(struct runner *r)
{
	struct dirent **list;
	int count = scandir(FOLDER, &list, has_plain_name, alphasort);

	if (count < 0)
		give_up("'" FOLDER "': %s", strerror(errno));
	for (int i = 0; i < count; i++) {
		char path[sizeof(FOLDER) + 256];
		struct stat st;

		snprintf(path, sizeof(path), FOLDER "/%s", list[i]->d_name);
		if (lstat(path, &st) < 0)
			give_up("hook '%s': %s", list[i]->d_name,
				strerror(errno));
		if (S_ISREG(st.st_mode) && st.st_mode & 0111)
			run_hook(r, list[i]->d_name);
	}
	_exit(0);
}

NORETURN static void become_runner(const struct request *req, int report)
{
	struct runner r = {.until = clock_ms() + ALL_MS, .room = OUTPUT_MAX};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	char text[37];

	/* stderr stays, it is the console. */
	if (null < 0 || dup2(null, 0) < 0 ||
	    (report != REPORT_FD && dup3(report, REPORT_FD, O_CLOEXEC) < 0))
		_exit(EX_OSERR);
	syscall(SYS_close_range, REPORT_FD + 1, ~0u, 0);
	child_reset();
	identity_text(req->generation, text);
	snprintf(r.generation, sizeof(r.generation), "ARK_GENERATION=%s", text);
	snprintf(r.hostname, sizeof(r.hostname), "ARK_HOSTNAME=%s",
		 req->hostname);
	if (chdir("/") < 0 || pipe2(r.output, O_CLOEXEC) < 0 ||
	    fcntl(r.output[0], F_SETFL, O_NONBLOCK) < 0)
		give_up("hooks: %s", strerror(errno));
	run_all(&r);
}

/* ---- the agent's side --------------------------------------------------- */

static struct {
	struct conn *conn; /* who waits; NULL: nothing runs */
	pid_t pid;
	int cgroup, report;
	uint32_t id;
	uint64_t deadline;
} hooks;

static void confirm(struct conn *c)
{
	char why[128];

	if (identity_confirm(&c->req, why, sizeof(why)) < 0)
		conn_error(c, EX_ARK, "cannot take on the identity: %s", why);
	else
		conn_exit(c, 0, 0, 0);
}

static void finished(void)
{
	cgroup_remove(hooks.id);
	close(hooks.report);
	if (hooks.cgroup >= 0)
		close(hooks.cgroup);
	memset(&hooks, 0, sizeof(hooks));
}

/* Nobody of them goes on. */
static void failed(const char *why)
{
	struct conn *c = hooks.conn;

	if (hooks.cgroup >= 0)
		cgroup_kill(hooks.cgroup, SIGKILL);
	finished();
	if (c->state == CONN_WAIT)
		conn_error(c, EX_ARK, "cannot take on the identity: %s", why);
}

void hooks_abandon(void)
{
	if (hooks.conn)
		failed("another one has come");
}

void hooks_run(struct conn *c)
{
	static uint32_t runs;
	int report[2];

	/* A fresh boot is no copy. */
	if (!identity_had() ||
	    (faccessat(AT_FDCWD, FOLDER, F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
	     errno == ENOENT)) {
		confirm(c);
		return;
	}
	if (pipe2(report, O_CLOEXEC | O_NONBLOCK) < 0) {
		conn_error(c, EX_ARK, "cannot run the hooks: %s",
			   strerror(errno));
		return;
	}
	cgroup_remove(IDS | runs); /* who was killed in it is dead by now */
	hooks.id = IDS | ++runs;
	hooks.cgroup = cgroup_make(hooks.id);
	hooks.pid = hooks.cgroup < 0 ? -1 : fork_into(hooks.cgroup);
	if (hooks.pid == 0)
		become_runner(&c->req, report[1]);
	close(report[1]);
	hooks.report = report[0];
	hooks.conn = c;
	hooks.deadline = clock_ms() + ALL_MS + GRACE_MS;
	c->state = CONN_WAIT;
	if (hooks.pid < 0)
		failed("no process for the hooks");
}

void hooks_reaped(pid_t pid, int status)
{
	struct conn *c = hooks.conn;
	char why[400];
	ssize_t n;

	if (!c || pid != hooks.pid)
		return;
	n = read(hooks.report, why, sizeof(why) - 1);
	why[n > 0 ? n : 0] = '\0';
	if (status != 0 || n > 0) {
		failed(n > 0 ? why : "the hooks were killed");
		return;
	}
	finished();
	if (c->state == CONN_WAIT)
		confirm(c);
}

void hooks_watch(void)
{
	if (hooks.conn)
		wake_at(hooks.deadline);
}

void hooks_settle(void)
{
	if (hooks.conn && hooks.conn->state != CONN_WAIT)
		failed("");
	else if (hooks.conn && clock_ms() >= hooks.deadline)
		failed("the hooks hang");
}
