/*
 * stream.c - what flows between a client and what it runs.
 *
 * 1. Output is read only while nothing waits to be sent to the client, so a
 *    slow client slows the program and nothing here grows.  Without a client
 *    it is always read: nobody gets SIGPIPE or hangs because we lost interest.
 * 2. Input is paid for with credit: at most STDIN_WINDOW bytes are ours, in a
 *    ring, and the client gets back what the program has consumed.
 * 3. When the leader ends, what is in its pipes by then is its output; what
 *    comes later is of children that it left behind, and does not keep the
 *    client waiting.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#define CHUNK (64u * 1024)
#define TTY_PENDING (128u * 1024) /* more than a pty ever holds */
#define GRANT (STDIN_WINDOW / 4)

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Take one chunk, at most `max`; false when there is nothing to take now. */
static bool pump(struct exec *e, struct stream *s, size_t max)
{
	static unsigned char chunk[CHUNK];
	ssize_t n = read(s->fd, chunk, max < CHUNK ? max : CHUNK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) { /* a pty says EIO at its end */
		close_fd(&s->fd);
		return false;
	}
	s->left -= s->left < (size_t)n ? s->left : (size_t)n;
	if (e->conn)
		conn_send(e->conn, s->type, chunk, (size_t)n);
	if (e->detached && !e->doomed)
		log_add(&e->log, s->type, chunk, (size_t)n);
	return true;
}

static bool blocked(const struct exec *e)
{
	if (e->conn)
		conn_flush(e->conn);
	return e->conn && e->conn->out_len > 0;
}

static void output_ready(struct exec *e, struct stream *s)
{
	if (s->fd >= 0)
		pump(e, s, CHUNK);
}

static void stdout_ready(void *object, short revents)
{
	struct exec *e = object;

	(void)revents;
	output_ready(e, &e->out[0]);
}

static void stderr_ready(void *object, short revents)
{
	struct exec *e = object;

	(void)revents;
	output_ready(e, &e->out[1]);
}

static size_t pending(const struct exec *e, const struct stream *s)
{
	int n = 0;

	if (s->fd < 0)
		return 0;
	if (e->tty) /* not all of it is counted before it is read */
		return TTY_PENDING;
	return ioctl(s->fd, FIONREAD, &n) < 0 || n < 0 ? 0 : (size_t)n;
}

void exec_count_pending(struct exec *e)
{
	for (int i = 0; i < 2; i++)
		e->out[i].left = pending(e, &e->out[i]);
}

bool exec_drain(struct exec *e)
{
	for (int i = 0; i < 2; i++) {
		struct stream *s = &e->out[i];

		while (s->fd >= 0 && s->left > 0 && !blocked(e))
			if (!pump(e, s, s->left))
				s->left = 0;
		if (s->fd < 0)
			s->left = 0;
	}
	return e->out[0].left == 0 && e->out[1].left == 0;
}

/* The client may send so many more bytes. */
static void consumed(struct exec *e, size_t n)
{
	unsigned char data[4];

	e->owed += n;
	if (e->owed < GRANT || !e->conn)
		return;
	put_u32(data, (uint32_t)e->owed);
	conn_send(e->conn, FRAME_CREDIT, data, sizeof(data));
	e->credit += e->owed;
	e->owed = 0;
}

static void end_input(struct exec *e)
{
	if (e->tty && e->input >= 0 && write(e->input, "\004", 1) < 0)
		say("exec %u: end of input is lost", e->id);
	close_fd(&e->input);
}

/* What of it has been taken; a program that reads no more takes all. */
static size_t feed(struct exec *e, const unsigned char *data, size_t len)
{
	ssize_t n = write(e->input, data, len);

	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN || errno == EINTR)
		return 0;
	close_fd(&e->input);
	return len;
}

static void input_ready(void *object, short revents)
{
	struct exec *e = object;
	size_t run = STDIN_WINDOW - e->in_start;

	(void)revents;
	if (e->input < 0 || e->in_len == 0)
		return;
	run = feed(e, e->in + e->in_start, run < e->in_len ? run : e->in_len);
	if (e->input < 0)
		run = e->in_len;
	e->in_start = (e->in_start + run) % STDIN_WINDOW;
	e->in_len -= run;
	consumed(e, run);
	if (e->in_len == 0 && e->eof)
		end_input(e);
}

static int buffer(struct exec *e, const unsigned char *data, size_t len)
{
	size_t at = (e->in_start + e->in_len) % STDIN_WINDOW;
	size_t run = STDIN_WINDOW - at;

	if (!e->in)
		e->in = malloc(STDIN_WINDOW);
	if (!e->in)
		return -1;
	if (run > len)
		run = len;
	memcpy(e->in + at, data, run);
	memcpy(e->in, data + run, len - run);
	e->in_len += len;
	return 0;
}

static int take_input(struct exec *e, const unsigned char *data, size_t len)
{
	size_t taken = 0;

	if (len > e->credit)
		return -1;
	e->credit -= len;
	if (e->input < 0 || e->eof) {
		consumed(e, len);
		return 0;
	}
	if (len == 0) {
		e->eof = true;
		if (e->in_len == 0)
			end_input(e);
		return 0;
	}
	if (e->in_len == 0)
		taken = feed(e, data, len);
	consumed(e, taken);
	return taken < len ? buffer(e, data + taken, len - taken) : 0;
}

void exec_resize(struct exec *e, uint16_t rows, uint16_t columns)
{
	struct winsize size = {.ws_row = rows, .ws_col = columns};

	if (e->tty && e->out[0].fd >= 0)
		ioctl(e->out[0].fd, TIOCSWINSZ, &size);
}

/* A child that has just been made has no group of its own yet.  What it gets
 * stays pending there until it has let go of the agent's mask. */
static void signal_group(pid_t pid, int signal)
{
	if (kill(-pid, signal) < 0 && errno == ESRCH)
		kill(pid, signal);
}

int exec_live(struct exec *e, const struct live *l)
{
	if (l->type == FRAME_STDIN)
		return take_input(e, l->data, l->len);
	if (l->type == FRAME_WINSIZE)
		exec_resize(e, l->rows, l->columns);
	else if (e->pid > 0)
		signal_group(e->pid, (int)l->signal);
	return 0;
}

void exec_new_client(struct exec *e, struct conn *c)
{
	e->conn = c;
	e->credit = STDIN_WINDOW;
	e->owed = 0;
	e->in_len = 0;
}

void exec_close_input(struct exec *e)
{
	close_fd(&e->input);
	free(e->in);
	e->in = NULL;
	e->in_len = 0;
}

void exec_close_streams(struct exec *e)
{
	exec_close_input(e);
	close_fd(&e->out[0].fd);
	close_fd(&e->out[1].fd);
}

void exec_streams_watch(struct exec *e)
{
	if (e->in_len > 0 && e->input >= 0)
		watch(e->input, POLLOUT, input_ready, e);
	if (e->conn && e->conn->out_len > 0)
		return;
	if (e->out[0].fd >= 0)
		watch(e->out[0].fd, POLLIN, stdout_ready, e);
	if (e->out[1].fd >= 0)
		watch(e->out[1].fd, POLLIN, stderr_ready, e);
}
