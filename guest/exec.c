/*
 * exec.c - the life of what a client runs: a leader, its tree, its result.
 *
 * STARTING -> RUNNING -> (LEFT ->) ENDED or GONE
 *
 * 1. A result is the leader's, and is told when the leader has ended and its
 *    output is sent: `sh -c 'server &'` returns.  What it left behind goes on
 *    as a detached exec until its cgroup is empty.
 * 2. A client that closed its connection takes its exec with it, at once.
 *    After a reset that waits for ORPHAN_MS: in a restored guest connections
 *    are reset because they belong to another life, and then the new identity,
 *    which comes first of all, makes a detached exec of it.
 * 3. SIGKILL goes to the cgroup, never to a remembered process number; other
 *    signals go to the leader's group only while the leader is not reaped.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <linux/sched.h>

#define ORPHAN_MS 5000
#define TITLE_MAX 1000

static struct exec *execs; /* oldest first */
static uint32_t last_id;

static unsigned count(enum life from, enum life to)
{
	unsigned n = 0;

	for (const struct exec *e = execs; e; e = e->next)
		n += e->life >= from && e->life <= to;
	return n;
}

struct exec *exec_next(const struct exec *e)
{
	struct exec *next = e ? e->next : execs;

	while (next && next->life == LIFE_GONE)
		next = next->next;
	return next;
}

struct exec *exec_find(uint32_t id)
{
	struct exec *e = exec_next(NULL);

	while (e && e->id != id)
		e = exec_next(e);
	return e;
}

static char *title(const struct request *r)
{
	const char *first = r->op == OP_GET   ? "(get)"
			    : r->op == OP_PUT ? "(put)"
			    : r->argv[0]      ? r->argv[0]
					      : PROBE_NAME;
	char text[TITLE_MAX + 1];
	size_t len = (size_t)snprintf(text, sizeof(text), "%s", first);

	if (r->op != OP_EXEC)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %s",
					r->path);
	for (size_t i = 1; r->op == OP_EXEC && i < r->args.count; i++)
		if (len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						" %s", r->argv[i]);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
	return strdup(text);
}

/* A new exec with its cgroup, or NULL and the client is told. */
static struct exec *exec_new(struct conn *c)
{
	struct exec *e, **link = &execs;

	if (count(LIFE_STARTING, LIFE_LEFT) >= EXECS_MAX) {
		conn_error(c, EX_ARK, "the guest runs %d commands already",
			   EXECS_MAX);
		return NULL;
	}
	e = calloc(1, sizeof(*e));
	if (e)
		e->title = title(&c->req);
	if (!e || !e->title || (e->cgroup = cgroup_make(++last_id)) < 0) {
		conn_error(c, EX_ARK, "cannot make a cgroup in the guest: %s",
			   strerror(errno));
		if (e)
			free(e->title);
		free(e);
		return NULL;
	}
	e->id = last_id;
	e->events = e->error = e->input = -1;
	e->out[0] = (struct stream){.fd = -1, .type = FRAME_STDOUT};
	e->out[1] = (struct stream){.fd = -1, .type = FRAME_STDERR};
	e->started = clock_ms();
	e->deadline = NEVER;
	e->orphan_until = NEVER;
	while (*link)
		link = &(*link)->next;
	*link = e;
	return e;
}

pid_t fork_into(int cgroup)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)cgroup,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* One end for the child, the other one, not blocking, for us. */
static int make_pipe(int *ours, int *theirs, bool we_read)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	*ours = ends[!we_read];
	*theirs = ends[we_read];
	return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static int make_tty(struct exec *e, struct child *child)
{
	e->tty = true;
	child->tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (child->tty < 0 || unlockpt(child->tty) < 0)
		return -1;
	e->out[0].fd = fcntl(child->tty, F_DUPFD_CLOEXEC, 0);
	e->input = fcntl(child->tty, F_DUPFD_CLOEXEC, 0);
	return e->out[0].fd < 0 || e->input < 0 ? -1 : 0;
}

static int make_streams(struct exec *e, struct child *child)
{
	uint32_t flags = child->req->flags;

	if (make_pipe(&e->error, &child->error, true) < 0)
		return -1;
	if (flags & EXEC_TTY)
		return make_tty(e, child);
	if (!(flags & EXEC_NO_STDIN) &&
	    make_pipe(&e->input, &child->stdio[0], false) < 0)
		return -1;
	if (make_pipe(&e->out[0].fd, &child->stdio[1], true) < 0)
		return -1;
	return make_pipe(&e->out[1].fd, &child->stdio[2], true);
}

static void close_child_ends(const struct child *child)
{
	for (int i = 0; i < 3; i++)
		if (child->stdio[i] >= 0)
			close(child->stdio[i]);
	if (child->tty >= 0)
		close(child->tty);
	if (child->error >= 0)
		close(child->error);
}

static void forget(struct exec *e)
{
	exec_close_streams(e);
	if (e->error >= 0)
		close(e->error);
	if (e->events >= 0)
		close(e->events);
	if (e->cgroup >= 0)
		close(e->cgroup);
	e->error = e->events = e->cgroup = -1;
}

static void not_started(struct exec *e, struct conn *c)
{
	conn_error(c, EX_ARK, "cannot start a process in the guest: %s",
		   strerror(errno));
	cgroup_remove(e->id);
	forget(e);
	e->life = LIFE_GONE;
}

void exec_start(struct conn *c)
{
	struct child child = {
		.req = &c->req, .stdio = {-1, -1, -1}, .tty = -1, .error = -1};
	struct exec *e = exec_new(c);

	if (!e)
		return;
	e->pid = make_streams(e, &child) < 0 ? -1 : fork_into(e->cgroup);
	if (e->pid == 0)
		child_run(&child);
	close_child_ends(&child);
	if (e->pid < 0) {
		e->pid = 0;
		not_started(e, c);
		return;
	}
	if (c->req.timeout)
		e->deadline = e->started + c->req.timeout;
	e->kept = c->req.flags & EXEC_DETACH;
	exec_new_client(e, c);
	c->exec = e;
	c->state = CONN_EXEC;
}

void exec_transfer(struct conn *c)
{
	struct exec *e = exec_new(c);

	if (!e)
		return;
	e->pid = fork_into(e->cgroup);
	if (e->pid == 0)
		transfer_run(&c->req, c->fd, e->id);
	if (e->pid < 0) {
		e->pid = 0;
		not_started(e, c);
		return;
	}
	e->life = LIFE_RUNNING;
	e->transfer = true;
	conn_give_up(c);
}

void exec_kill(struct exec *e, int signal)
{
	if (e->cgroup >= 0)
		cgroup_kill(e->cgroup, signal);
}

static void send_id(struct conn *c, uint32_t id)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", id);

	conn_send(c, FRAME_STARTED, text, (size_t)n);
}

static void running(struct exec *e)
{
	struct conn *c = e->conn;

	e->life = LIFE_RUNNING;
	e->detached |= e->kept;
	if (!c)
		return;
	send_id(c, e->id);
	if (e->detached)
		conn_exit(c, 0, 0, 0);
}

/* The error pipe: closed by exec(2), or the reason why there was none. */
static void error_ready(void *object, short revents)
{
	struct exec *e = object;
	char text[4 + 512];
	ssize_t n;

	(void)revents;
	if (e->error < 0)
		return;
	n = read(e->error, text, sizeof(text) - 1);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	close(e->error);
	e->error = -1;
	if (n < 4) {
		running(e);
		return;
	}
	text[n] = '\0';
	e->doomed = true;
	e->kept = false;
	if (e->conn)
		conn_error(e->conn, (int)get_u32((unsigned char *)text), "%s",
			   text + 4);
}

/* Nothing of its tree is alive. */
static void ended(struct exec *e)
{
	exec_count_pending(e);
	exec_drain(e);
	conns_tell(e);
	forget(e);
	e->life = LIFE_GONE;
	if (e->doomed || (!e->kept && !e->log.data))
		return;
	e->life = LIFE_ENDED;
	if (count(LIFE_ENDED, LIFE_ENDED) > ENDED_MAX) {
		struct exec *old = execs;

		while (old->life != LIFE_ENDED)
			old = old->next;
		old->life = LIFE_GONE;
	}
}

static void events_ready(void *object, short revents)
{
	struct exec *e = object;

	(void)revents;
	if (e->events < 0 || !cgroup_empty(e->events))
		return;
	cgroup_clear(e->id);
	ended(e);
}

/* The leader's output is sent: tell its result, see what it left behind.  Who
 * waits for the end of the exec waits for that as well. */
static void tell(struct exec *e)
{
	e->told = true;
	if (e->conn)
		conn_exit(e->conn, e->code, e->signal, e->flags);
	exec_close_input(e);
	e->life = LIFE_LEFT;
	if (cgroup_remove(e->id)) {
		ended(e);
		return;
	}
	e->detached = true;
	e->events = cgroup_events(e->cgroup);
	events_ready(e, 0);
}

static void set_result(struct exec *e, int status)
{
	if (WIFSIGNALED(status)) {
		e->signal = (uint32_t)WTERMSIG(status);
		e->code = 128 + e->signal;
	} else {
		e->code = (uint32_t)WEXITSTATUS(status);
	}
	if (e->signal == SIGKILL && cgroup_oom(e->cgroup))
		e->flags |= RESULT_OOM;
	if (e->timed) {
		e->code = EX_TIMEOUT;
		e->signal = 0;
		e->flags |= RESULT_TIMEOUT;
	}
}

void exec_reaped(pid_t pid, int status)
{
	struct exec *e = exec_next(NULL);

	while (e && e->pid != pid)
		e = exec_next(e);
	if (!e)
		return; /* an orphan that init inherited */
	error_ready(e, 0);
	e->pid = 0;
	e->deadline = NEVER;
	set_result(e, status);
	exec_count_pending(e);
	if (exec_drain(e))
		tell(e);
}

void exec_attach(struct exec *e, struct conn *c)
{
	send_id(c, e->id);
	log_replay(&e->log, conn_sink, c);
	if (e->life == LIFE_ENDED) {
		conn_exit(c, e->code, e->signal, e->flags);
		return;
	}
	c->exec = e;
	c->state = CONN_EXEC;
	exec_new_client(e, c);
	if (c->req.rows)
		exec_resize(e, c->req.rows, c->req.columns);
}

void exec_orphan(struct exec *e, bool reset)
{
	if (e->detached)
		return;
	e->detached = true;
	if (reset) {
		e->orphan_until = clock_ms() + ORPHAN_MS;
		return;
	}
	e->doomed = true;
	e->kept = false;
	exec_kill(e, SIGKILL);
}

void execs_restored(void)
{
	for (struct exec *e = exec_next(NULL); e; e = exec_next(e)) {
		if (e->transfer)
			exec_kill(e, SIGKILL);
		e->kept |= e->orphan_until != NEVER;
		e->orphan_until = NEVER;
	}
}

void execs_watch(void)
{
	for (struct exec *e = exec_next(NULL); e; e = exec_next(e)) {
		wake_at(e->deadline);
		wake_at(e->orphan_until);
		if (e->error >= 0)
			watch(e->error, POLLIN, error_ready, e);
		else
			exec_streams_watch(e);
		if (e->events >= 0)
			watch(e->events, POLLPRI, events_ready, e);
	}
}

static void tick(struct exec *e, uint64_t now)
{
	if (now >= e->deadline) {
		e->timed = true;
		e->deadline = NEVER;
		exec_kill(e, SIGKILL);
	}
	if (now >= e->orphan_until) {
		e->orphan_until = NEVER;
		e->doomed = true;
		exec_kill(e, SIGKILL);
	}
	if (!e->pid && !e->told && e->life != LIFE_ENDED && exec_drain(e))
		tell(e);
}

void execs_settle(void)
{
	struct exec **link = &execs;
	uint64_t now = execs ? clock_ms() : 0;

	while (*link) {
		struct exec *e = *link;

		if (e->life != LIFE_GONE)
			tick(e, now);
		if (e->life != LIFE_GONE) {
			link = &e->next;
			continue;
		}
		*link = e->next;
		log_free(&e->log);
		free(e->title);
		free(e);
	}
}
