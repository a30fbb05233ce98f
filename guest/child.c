/*
 * child.c - from fork to exec.
 *
 * It is born in its cgroup (CLONE_INTO_CGROUP): nothing that it does, and
 * nothing that blocks it, is ever outside.  The order matters:
 *
 * 1. Descriptors first, everything else closed: a child that hangs in a lookup
 *    must not keep the pipes of other execs open.  The limit of descriptors
 *    comes after that: until then it has all those of the agent.
 * 2. The user is looked up as root, then the privileges are dropped, then the
 *    working directory is entered with the user's own rights.
 * 3. What goes wrong goes down the error pipe; exec(2) closes it.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif
#define ERROR_FD 3

static int error_fd;

void child_fail(int code, const char *fmt, ...)
{
	char text[4 + 512];
	va_list args;
	int n;

	put_u32((unsigned char *)text, (uint32_t)code);
	va_start(args, fmt);
	n = vsnprintf(text + 4, sizeof(text) - 4, fmt, args);
	va_end(args);
	if (n >= (int)sizeof(text) - 4)
		n = (int)sizeof(text) - 5;
	if (write(error_fd, text, 4 + (size_t)n) < 0)
		_exit(EX_OSERR);
	_exit(code);
}

void child_reset(void)
{
	/* As systemd has it: select(2) users are safe, others may raise it. */
	struct rlimit files = {.rlim_cur = 1024, .rlim_max = 524288};
	sigset_t none;

	setsid();
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_NOFILE, &files);
	write_to(AT_FDCWD, "/proc/self/oom_score_adj", "0");
}

static void take_descriptors(const struct child *c, int tty)
{
	for (int i = 0; i < 3; i++) {
		int fd = tty >= 0 ? tty : c->stdio[i];

		if (fd < 0)
			fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (fd < 0 || dup2(fd, i) < 0)
			child_fail(EX_ARK, "cannot open '/dev/null': %s",
				   strerror(errno));
	}
	if (error_fd != ERROR_FD && dup3(error_fd, ERROR_FD, O_CLOEXEC) < 0)
		_exit(EX_OSERR);
	error_fd = ERROR_FD;
	syscall(SYS_close_range, ERROR_FD + 1, ~0u, 0);
}

static int open_terminal(const struct child *c)
{
	struct winsize size = {.ws_row = c->req->rows,
			       .ws_col = c->req->columns};
	int tty = ioctl(c->tty, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (tty >= 0 && size.ws_row)
		ioctl(tty, TIOCSWINSZ, &size);
	return tty;
}

/* A variable of the client replaces the default of that name. */
static bool has(char *const env[], const char *variable)
{
	size_t len = (size_t)(strchr(variable, '=') - variable) + 1;

	for (; *env; env++)
		if (strncmp(*env, variable, len) == 0)
			return true;
	return false;
}

static char **environment(const struct child *c, const struct user *u)
{
	static char home[280], name[280], logname[280], shell[280];
	char *defaults[] = {(char[]){PATH_DEFAULT}, home, name, logname, shell,
			    (char[]){"TERM=xterm"}};
	size_t known = ARRAY_LEN(defaults) - (c->tty < 0);
	char **env = calloc(c->req->envs.count + known + 1, sizeof(*env));
	size_t n = 0;

	if (!env)
		child_fail(EX_ARK, "out of memory in the guest");
	snprintf(home, sizeof(home), "HOME=%s", u->home);
	snprintf(name, sizeof(name), "USER=%s", u->name);
	snprintf(logname, sizeof(logname), "LOGNAME=%s", u->name);
	snprintf(shell, sizeof(shell), "SHELL=%s", u->shell);
	for (size_t i = 0; i < known; i++)
		if (!has(c->req->env, defaults[i]))
			env[n++] = strdup(defaults[i]);
	for (size_t i = 0; i < c->req->envs.count; i++)
		env[n++] = c->req->env[i];
	return env;
}

static void become(const struct user *u)
{
	if (setgroups(u->group_count, u->groups) < 0 || setgid(u->gid) < 0 ||
	    setuid(u->uid) < 0)
		child_fail(EX_ARK, "cannot become user '%s': %s", u->name,
			   strerror(errno));
}

static void run(const struct request *r)
{
	char *probe[] = {(char[]){PROBE_NAME}, NULL};
	int code = EX_CANNOT_RUN;

	if (r->flags & EXEC_PROBE) {
		execv("/proc/self/exe", probe);
		child_fail(EX_ARK, "the agent cannot execute itself: %s",
			   strerror(errno));
	}
	execvp(r->argv[0], r->argv);
	if (errno == ENOENT || errno == ENOTDIR)
		code = EX_NOT_FOUND;
	child_fail(code, "cannot execute '%s': %s", r->argv[0],
		   strerror(errno));
}

void child_run(const struct child *c)
{
	const struct request *r = c->req;
	struct user u;
	int tty = c->tty < 0 ? -1 : open_terminal(c);

	error_fd = c->error;
	take_descriptors(c, tty);
	child_reset();
	if (c->tty >= 0 && (tty < 0 || ioctl(0, TIOCSCTTY, 0) < 0))
		child_fail(EX_ARK, "cannot open a terminal in the guest: %s",
			   strerror(errno));
	if (user_find(&u, r->user) < 0)
		child_fail(EX_CANNOT_RUN,
			   "no such user or group in the guest: '%s'", r->user);
	if (tty >= 0 && u.uid && fchown(0, u.uid, (gid_t)-1) < 0)
		child_fail(EX_ARK, "cannot hand over the terminal: %s",
			   strerror(errno));
	environ = environment(c, &u);
	become(&u);
	if (chdir(r->cwd ? r->cwd : "/") < 0)
		child_fail(EX_CANNOT_RUN, "cannot enter '%s': %s", r->cwd,
			   strerror(errno));
	run(r);
	_exit(EX_SOFTWARE);
}
