/*
 * qmp.c - QMP over unix sockets.
 *
 * The peer is a VMM that a guest may have taken over: lines have a limit, JSON
 * is parsed strictly, every wait has an end.
 */
#include "ark.h"
#include "qmp.h"
#include "unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

ssize_t qmp_fill(struct qmp *q)
{
	ssize_t n;

	do
		n = read(q->fd, q->buf + q->len, sizeof(q->buf) - q->len);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		q->len += (size_t)n;
	return n;
}

json_t *qmp_next(struct qmp *q, int *bad)
{
	char *end = memchr(q->buf, '\n', q->len);
	json_t *object;
	size_t used;

	*bad = 0;
	if (!end) {
		*bad = q->len == sizeof(q->buf);
		return NULL;
	}
	used = (size_t)(end - q->buf) + 1;
	object = json_loadb(q->buf, used, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(object)) {
		json_decref(object);
		object = NULL;
		*bad = 1;
	}
	q->len -= used;
	memmove(q->buf, q->buf + used, q->len);
	return object;
}

/* The next object that is not an event, within the time; NULL and errno. */
static json_t *await(struct qmp *q, uint64_t end)
{
	struct pollfd poller = {.fd = q->fd, .events = POLLIN};

	for (;;) {
		uint64_t now = now_ms();
		int bad, n;
		json_t *object = qmp_next(q, &bad);

		if (object && !json_object_get(object, "event"))
			return object;
		json_decref(object);
		if (bad) {
			errno = EPROTO;
			return NULL;
		}
		if (object)
			continue;
		if (now >= end) {
			errno = ETIMEDOUT;
			return NULL;
		}
		n = poll(&poller, 1, (int)(end - now));
		if (n < 0 && errno != EINTR)
			return NULL;
		if (n > 0 && qmp_fill(q) <= 0) {
			errno = ECONNRESET;
			return NULL;
		}
	}
}

int qmp_open(struct qmp *q, int dir, const char *name, unsigned ms)
{
	json_t *greeting;
	int known;

	q->len = 0;
	q->fd = unix_connect(dir, name, SOCK_STREAM);
	if (q->fd < 0)
		return -1;
	greeting = await(q, now_ms() + ms);
	known = json_object_get(greeting, "QMP") != NULL;
	json_decref(greeting);
	if (known && qmp_execute(q, "qmp_capabilities", NULL, NULL, ms) == 0)
		return 0;
	if (greeting && !known)
		errno = EPROTO;
	qmp_close(q);
	return -1;
}

void qmp_close(struct qmp *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
}

/* Send all of the text, and with its first byte the descriptor (-1: none). */
static int send_with_fd(int sock, const char *text, size_t len, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)text,
			     .iov_len = len};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	struct cmsghdr *rights;

	if (fd >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		rights = CMSG_FIRSTHDR(&message);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
	}
	return sendmsg(sock, &message, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

static int send_command(struct qmp *q, const char *command, json_t *arguments,
			int fd)
{
	json_t *object = json_pack("{s:s, s:o*}", "execute", command,
				   "arguments", arguments);
	AUTO_FREE char *text = json_dumps(object, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0;

	json_decref(object);
	if (!text) {
		errno = ENOMEM;
		return -1;
	}
	text[len] = '\n';
	return send_with_fd(q->fd, text, len + 1, fd);
}

/* Keep QEMU's own words for the one who has to tell the user. */
static void keep_error(struct qmp *q, const json_t *reply)
{
	const char *text = json_string_value(
		json_object_get(json_object_get(reply, "error"), "desc"));

	printable(q->buf, 512, text ? text : "no reason given");
	q->len = 0;
}

static int execute(struct qmp *q, const char *command, json_t *arguments,
		   int fd, json_t **result, unsigned ms)
{
	json_t *reply, *value;

	if (send_command(q, command, arguments, fd) < 0)
		return -1;
	reply = await(q, now_ms() + ms);
	if (!reply)
		return -1;
	value = json_object_get(reply, "return");
	if (!value) {
		keep_error(q, reply);
		errno = EREMOTEIO;
	} else if (result) {
		*result = json_incref(value);
	}
	json_decref(reply);
	return value ? 0 : -1;
}

int qmp_execute(struct qmp *q, const char *command, json_t *arguments,
		json_t **result, unsigned ms)
{
	return execute(q, command, arguments, -1, result, ms);
}

int qmp_execute_fd(struct qmp *q, const char *command, json_t *arguments,
		   int fd, unsigned ms)
{
	return execute(q, command, arguments, fd, NULL, ms);
}
