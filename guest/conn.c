/*
 * conn.c - one client: bytes in, frames queued and out.
 *
 * 1. What is queued is bounded because its sources are: a stream is only read
 *    when nothing is queued (back pressure), and a list or a log is bounded
 *    itself.  All that one turn of the loop queued leaves in one send(2).
 * 2. After the last frame the sending side is shut down and what the client
 *    still sends is thrown away until it closes: closing with unread input
 *    would reset the connection, and the client could lose its result.
 * 3. End of file is a client that went away, and so is a reset; only the
 *    second can also be a restored guest whose connections are of another
 *    life (exec_orphan).
 */
#include "guest.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define IN_SIZE ((size_t)FRAME_HEAD + FRAME_MAX)
#define LINGER_MS 5000

static struct conn *conns;
static unsigned count;

void conn_new(int fd)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (c)
		c->in = malloc(IN_SIZE);
	if (!c || !c->in) {
		free(c);
		close(fd);
		return;
	}
	c->fd = fd;
	c->next = conns;
	conns = c;
	count++;
}

bool conn_room(void)
{
	return count < CONNS_MAX;
}

static void leave_exec(struct conn *c)
{
	if (c->exec && c->exec->conn == c)
		c->exec->conn = NULL;
	c->exec = NULL;
}

static void lost(struct conn *c, bool reset)
{
	struct exec *e = c->state == CONN_EXEC ? c->exec : NULL;

	leave_exec(c);
	c->state = CONN_DEAD;
	if (e)
		exec_orphan(e, reset);
}

void conn_give_up(struct conn *c)
{
	leave_exec(c);
	c->state = CONN_DEAD;
}

void conns_drop(const struct conn *but)
{
	for (struct conn *c = conns; c; c = c->next)
		if (c != but && c->state != CONN_DEAD)
			lost(c, true);
}

void conns_goodbye(void)
{
	for (struct conn *c = conns; c; c = c->next)
		if (c->state < CONN_LAST)
			conn_error(c, EX_ARK, "the guest is going down");
}

void conn_send(struct conn *c, enum frame_type type, const void *data,
	       size_t len)
{
	size_t need = c->out_start + c->out_len + FRAME_HEAD + len;

	if (c->state == CONN_DEAD)
		return;
	if (need > c->out_cap) {
		unsigned char *more = realloc(c->out, need + need / 2);

		if (!more) {
			lost(c, false);
			return;
		}
		c->out = more;
		c->out_cap = need + need / 2;
	}
	frame_head(c->out + c->out_start + c->out_len, type, len);
	c->out_len += FRAME_HEAD;
	if (len)
		memcpy(c->out + c->out_start + c->out_len, data, len);
	c->out_len += len;
}

void conn_sink(void *to, enum frame_type type, const void *data, size_t len)
{
	conn_send(to, type, data, len);
}

void conn_flush(struct conn *c)
{
	while (c->out_len > 0 && c->state != CONN_DEAD) {
		ssize_t n = send(c->fd, c->out + c->out_start, c->out_len,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			lost(c, true);
		if (n < 0)
			return;
		c->out_start += (size_t)n;
		c->out_len -= (size_t)n;
	}
	c->out_start = 0;
	if (c->state == CONN_LAST && !c->shut) {
		shutdown(c->fd, SHUT_WR);
		c->shut = true;
		c->deadline = clock_ms() + LINGER_MS;
	}
}

static void last(struct conn *c)
{
	leave_exec(c);
	if (c->state != CONN_DEAD)
		c->state = CONN_LAST;
	c->in_len = 0;
	conn_flush(c);
}

void conn_exit(struct conn *c, uint32_t code, uint32_t signal, uint32_t flags)
{
	unsigned char data[12];

	put_u32(data, code);
	put_u32(data + 4, signal);
	put_u32(data + 8, flags);
	conn_send(c, FRAME_EXIT, data, sizeof(data));
	last(c);
}

void conn_error(struct conn *c, int code, const char *fmt, ...)
{
	char text[4 + 512];
	va_list args;

	put_u32((unsigned char *)text, (uint32_t)code);
	va_start(args, fmt);
	vsnprintf(text + 4, sizeof(text) - 4, fmt, args);
	va_end(args);
	conn_send(c, FRAME_ERROR, text, 4 + strlen(text + 4));
	last(c);
}

void conns_tell(const struct exec *e)
{
	for (struct conn *c = conns; c; c = c->next)
		if (c->exec == e &&
		    (c->state == CONN_WAIT || c->state == CONN_EXEC))
			conn_exit(c, e->code, e->signal, e->flags);
}

static void bad_input(struct conn *c, const char *why)
{
	struct exec *e = c->state == CONN_EXEC ? c->exec : NULL;

	conn_error(c, EX_ARK, "protocol error: %s", why);
	if (e)
		exec_orphan(e, false);
}

/* The next thing in the input: how many bytes it took, 0 when it is not
 * complete or the connection takes no more. */
static size_t input_one(struct conn *c, const unsigned char *data, size_t len)
{
	size_t used = 0;
	struct live l;
	int got;

	if (c->state == CONN_REQUEST) {
		switch (request_feed(&c->req, data, len, &used)) {
		case REQUEST_MORE:
			break;
		case REQUEST_BAD:
			bad_input(c, c->req.why);
			break;
		case REQUEST_DONE:
			op_run(c);
			break;
		}
		return used;
	}
	if (c->state != CONN_EXEC)
		return 0;
	got = live_feed(&l, data, len, &used);
	if (got < 0 || (got > 0 && exec_live(c->exec, &l) < 0))
		bad_input(c, "unexpected frame");
	return got > 0 ? used : 0;
}

static void input(struct conn *c)
{
	size_t at = 0, used = 0;

	do {
		at += used;
		used = input_one(c, c->in + at, c->in_len - at);
	} while (used > 0 && at + used < c->in_len);
	at += used;
	if (c->state == CONN_WAIT && at < c->in_len)
		bad_input(c, "unexpected frame");
	if (c->state != CONN_REQUEST && c->state != CONN_EXEC)
		at = c->in_len;
	c->in_len -= at;
	memmove(c->in, c->in + at, c->in_len);
}

static void ready(void *object, short revents)
{
	struct conn *c = object;
	ssize_t n;

	if (c->state == CONN_DEAD || !(revents & (POLLIN | POLLHUP | POLLERR)))
		return;
	n = recv(c->fd, c->in + c->in_len, IN_SIZE - c->in_len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		lost(c, n < 0);
		return;
	}
	if (c->state == CONN_LAST)
		return;
	c->in_len += (size_t)n;
	input(c);
}

void conns_watch(void)
{
	for (struct conn *c = conns; c; c = c->next) {
		watch(c->fd, (short)(POLLIN | (c->out_len ? POLLOUT : 0)),
		      ready, c);
		if (c->shut)
			wake_at(c->deadline);
	}
}

void conns_settle(void)
{
	struct conn **link = &conns;

	while (*link) {
		struct conn *c = *link;

		conn_flush(c);
		if (c->shut && clock_ms() >= c->deadline)
			c->state = CONN_DEAD;
		if (c->state != CONN_DEAD) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		close(c->fd);
		request_free(&c->req);
		free(c->in);
		free(c->out);
		free(c);
		count--;
	}
}
