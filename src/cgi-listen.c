/*
 * cgi-listen.c - the SCGI listener: a process of this program per connection.
 *
 * 1. It reads nothing.  What a client sends is for the process that is started
 *    for it, with fresh addresses, and nothing of one request reaches another.
 * 2. `limit` of them at once.  Beyond that connections wait in the backlog of
 *    the socket, where they cost nothing, for WAIT_MS since there was room;
 *    then they are answered 503 from here, unread, so that a hundred commands
 *    that take an hour do not make everybody else wait an hour.
 * 3. Told to end, it closes the socket and waits for those that run: what
 *    changes a sandbox goes to its end.  Those that only serve somebody who
 *    waits get SIGTERM, which the others do not act on (ark-cgi.c).
 */
#include "cgi.h"
#include "metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define WAIT_MS 2000
#define END_MS 120000 /* for those that run, when it is to end */
#define CHILDREN_MAX 4096

static struct {
	pid_t child[CHILDREN_MAX];
	unsigned n, limit;
	uint64_t full; /* since when there is no room; 0: there is */
	bool ending;
} l;

static void forget(pid_t pid)
{
	for (unsigned i = 0; i < l.n; i++)
		if (l.child[i] == pid) {
			l.child[i] = l.child[--l.n];
			return;
		}
}

static void reap(void)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		forget(pid);
	if (l.n < l.limit)
		l.full = 0;
}

NORETURN static void serve(int connection)
{
	static const char *const argv[] = {"ark-cgi", "--scgi", NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(connection, STDIN_FILENO) < 0 ||
	    dup2(connection, STDOUT_FILENO) < 0)
		_exit(EX_OSERR);
	close_range(3, ~0U, 0);
	execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
	_exit(EX_OSERR);
}

/* Argument 2. */
static void refuse_one(int connection)
{
	static const char text[] =
		"Status: 503 Service Unavailable\r\n"
		"Content-Type: application/json\r\n"
		"Retry-After: 1\r\nCache-Control: no-store\r\n"
		"X-Content-Type-Options: nosniff\r\n\r\n"
		"{\"error\":{\"code\":\"unavailable\","
		"\"message\":\"too many requests at once\"}}";
	char unread[4096];

	metrics_count(COUNT_BUSY);
	/* What came already is taken, or closing would reset it all. */
	recv(connection, unread, sizeof(unread), MSG_DONTWAIT);
	send(connection, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void take_one(int fd)
{
	AUTO_CLOSE int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (connection < 0)
		return;
	if (l.n >= l.limit) {
		refuse_one(connection);
		return;
	}
	pid = fork();
	if (pid == 0)
		serve(connection);
	if (pid < 0) {
		refuse_one(connection);
		return;
	}
	l.child[l.n++] = pid;
	if (l.n >= l.limit)
		l.full = now_ms();
}

/* How long poll may sleep, and whether it looks at the socket. */
static int room(struct pollfd *socket)
{
	uint64_t now = now_ms();

	socket->events = POLLIN;
	if (l.n < l.limit || now - l.full >= WAIT_MS)
		return -1;
	socket->events = 0;
	return (int)(WAIT_MS - (now - l.full));
}

/* Argument 3. */
static int end(int signals)
{
	struct pollfd p = {.fd = signals, .events = POLLIN};
	uint64_t last = now_ms() + END_MS;

	for (unsigned i = 0; i < l.n; i++)
		kill(l.child[i], SIGTERM);
	while (l.n > 0 && now_ms() < last) {
		struct signalfd_siginfo info;

		poll(&p, 1, 1000);
		while (read(signals, &info, sizeof(info)) > 0)
			continue;
		reap();
	}
	return 0;
}

static int watch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void take_signals(int signals)
{
	struct signalfd_siginfo info;

	while (read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			l.ending = true;
	reap();
}

static int accept_all(int fd)
{
	AUTO_CLOSE int signals = watch_signals();
	struct pollfd p[] = {{.fd = fd, .events = POLLIN},
			     {.fd = signals, .events = POLLIN}};

	if (signals < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return fail_errno(EX_OSERR, "cannot listen");
	while (!l.ending) {
		int ms = room(&p[0]);

		if (poll(p, 2, ms) < 0 && errno != EINTR)
			return fail_errno(EX_OSERR, "cannot wait");
		if (p[1].revents)
			take_signals(signals);
		if (p[0].revents)
			take_one(fd);
	}
	close(fd);
	return end(signals);
}

/* ---- the socket ---------------------------------------------------------- */

static int find_group(const char *name, gid_t *gid)
{
	char buffer[4096];
	struct group entry, *found = NULL;

	getgrnam_r(name, &entry, buffer, sizeof(buffer), &found);
	if (!found)
		return fail(EX_USAGE, "no group '%s'", name);
	*gid = found->gr_gid;
	return 0;
}

/* Nobody gets in before it listens, and then its group does. */
static int listen_at(const char *path, const char *group)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	gid_t gid = (gid_t)-1;
	mode_t before;
	int r;

	if (strlen(path) >= sizeof(address.sun_path))
		return fail(EX_USAGE, "'%s' is too long for a socket", path);
	if (group && find_group(group, &gid) < 0)
		return -EX_USAGE;
	memcpy(address.sun_path, path, strlen(path) + 1);
	unlink(path);
	before = umask(0117);
	r = bind(fd, (struct sockaddr *)&address, sizeof(address));
	umask(before);
	if (r < 0 || chown(path, (uid_t)-1, gid) < 0 || listen(fd, 1024) < 0)
		return fail_errno(EX_OSERR, "cannot listen at '%s'", path);
	return steal_fd(&fd);
}

int cgi_listen(const char *where, const char *group, unsigned limit)
{
	const char *why;
	long long fd;
	int r;

	l.limit = limit < CHILDREN_MAX ? limit : CHILDREN_MAX;
	if (parse_num(where, 0, INT32_MAX, &fd, &why))
		return accept_all((int)fd);
	r = listen_at(where, group);
	if (r < 0)
		return r;
	r = accept_all(r);
	unlink(where);
	return r;
}
