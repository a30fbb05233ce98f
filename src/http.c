/*
 * http.c - one request, one reply.
 *
 * 1. The end of a reply is counted, never waited for: the server keeps the
 *    connection open.  A reply whose length cannot be told is refused.
 * 2. The sending side stays open until the reply is there: the server takes
 *    half a connection for none and drops the request.
 * 3. Bytes behind a reply belong to a question that we have not asked, and
 *    whatever follows would be taken for the answer to another one: refused.
 */
#include "ark.h"
#include "http.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <sys/socket.h>

char *http_format(const char *method, const char *path, const char *body)
{
	char *text = NULL;
	int n;

	if (body)
		n = asprintf(&text,
			     "%s %s HTTP/1.1\r\nHost: localhost\r\n"
			     "Content-Type: application/json\r\n"
			     "Content-Length: %zu\r\n\r\n%s",
			     method, path, strlen(body), body);
	else
		n = asprintf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
			     method, path);
	return n < 0 ? NULL : text;
}

/* ---- bytes in time ------------------------------------------------------ */

static int await(int fd, short events, uint64_t end)
{
	struct pollfd poller = {.fd = fd, .events = events};
	int n;

	do {
		uint64_t now = now_ms();

		n = poll(&poller, 1, now < end ? (int)(end - now) : 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ETIMEDOUT;
	return n > 0 ? 0 : -1;
}

static int send_text(int fd, const char *text, uint64_t end)
{
	size_t len = strlen(text);

	while (len > 0) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN && await(fd, POLLOUT, end) == 0)
			continue;
		if (n < 0 && errno == EINTR)
			continue;
		/* A server that is full says so and closes, unasked: what it
		 * said can still be read. */
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (n < 0)
			return -1;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* At least one byte, at most `room`; -1 and errno. */
static ssize_t fill(int fd, char *to, size_t room, uint64_t end)
{
	ssize_t n;

	do {
		if (await(fd, POLLIN, end) < 0)
			return -1;
		n = recv(fd, to, room, MSG_DONTWAIT);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n == 0)
		errno = ECONNRESET;
	return n > 0 ? n : -1;
}

/* ---- the head ----------------------------------------------------------- */

static int is_no_http(void)
{
	errno = EPROTO;
	return -1;
}

/* "HTTP/1.1 204 \r\n": the reason may be missing, the blank before it too. */
static int status_of(const char *head)
{
	const char *at = head + strlen("HTTP/1.1 ");

	if (strncmp(head, "HTTP/1.1 ", strlen("HTTP/1.1 ")) != 0 &&
	    strncmp(head, "HTTP/1.0 ", strlen("HTTP/1.0 ")) != 0)
		return -1;
	if (strspn(at, "0123456789") != 3 || !strchr(" \r", at[3]))
		return -1;
	return (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
}

/* The value of one header line, or NULL when it is of another name. */
static const char *value_of(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	return line + len + 1 + strspn(line + len + 1, " \t");
}

/* Content-Length, -1: none, -2: nonsense, or a framing that is not spoken
 * here. */
static long long length_of(const char *head)
{
	long long len = -1;

	for (const char *at = strstr(head, "\r\n"); at && at[2] != '\0';
	     at = strstr(at + 2, "\r\n")) {
		const char *value = value_of(at + 2, "Content-Length");
		char digits[12];
		size_t n;

		if (value_of(at + 2, "Transfer-Encoding"))
			return -2;
		if (!value)
			continue;
		n = strcspn(value, " \t\r");
		if (len >= 0 || n == 0 || n >= sizeof(digits) ||
		    strspn(value, "0123456789") != n)
			return -2;
		memcpy(digits, value, n);
		digits[n] = '\0';
		len = strtoll(digits, NULL, 10);
	}
	return len;
}

/* Read up to the empty line.  The length of the head; what came after it is
 * behind it, *got in all.  -1 and errno. */
static ssize_t read_head(int fd, char *head, size_t *got, uint64_t end)
{
	for (;;) {
		const char *stop = memmem(head, *got, "\r\n\r\n", 4);
		ssize_t n;

		if (stop)
			return stop + 4 - head;
		if (*got == HTTP_HEAD_MAX)
			return is_no_http();
		n = fill(fd, head + *got, HTTP_HEAD_MAX - *got, end);
		if (n < 0)
			return -1;
		*got += (size_t)n;
	}
}

/* ---- the reply ---------------------------------------------------------- */

/* Status and length out of the head; the rest of what was read is the start of
 * the body.  How many bytes the body has, -1 and errno. */
static ssize_t understand(struct http_reply *reply, size_t head, size_t got)
{
	char last = reply->head[head - 2];
	long long len;

	if (memchr(reply->head, '\0', head))
		return is_no_http();
	reply->head[head - 2] = '\0'; /* the lines, each with its end */
	reply->status = status_of(reply->head);
	len = length_of(reply->head);
	reply->head[head - 2] = last;
	if (len == -1 && (reply->status == 204 || reply->status / 100 == 1))
		len = 0;
	if (reply->status < 100 || len < 0 || len > (long long)HTTP_BODY_MAX ||
	    (size_t)len < got - head)
		return is_no_http();
	return (ssize_t)len;
}

static int read_reply(int fd, struct http_reply *reply, uint64_t end)
{
	size_t got = 0;
	ssize_t head = read_head(fd, reply->head, &got, end), want;

	if (head < 0)
		return -1;
	want = understand(reply, (size_t)head, got);
	if (want < 0)
		return -1;
	reply->len = got - (size_t)head;
	memcpy(reply->body, reply->head + head, reply->len);
	while (reply->len < (size_t)want) {
		ssize_t n = fill(fd, reply->body + reply->len,
				 (size_t)want - reply->len, end);

		if (n < 0)
			return -1;
		reply->len += (size_t)n;
	}
	reply->body[reply->len] = '\0';
	return 0;
}

int http_request(int fd, const char *method, const char *path, const char *body,
		 struct http_reply *reply, unsigned ms)
{
	uint64_t end = now_ms() + ms;
	AUTO_FREE char *text = http_format(method, path, body);

	reply->status = 0;
	reply->len = 0;
	if (!text) {
		errno = ENOMEM;
		return -1;
	}
	if (send_text(fd, text, end) < 0)
		return -1;
	return read_reply(fd, reply, end);
}

/* ---- what went wrong ---------------------------------------------------- */

static void join(const json_t *strings, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < json_array_size(strings); i++) {
		const char *one = json_string_value(json_array_get(strings, i));
		int n;

		if (!one)
			continue;
		n = snprintf(text + used, size - used, "%s%s", used ? ": " : "",
			     one);
		if (n < 0 || (size_t)n >= size - used)
			return;
		used += (size_t)n;
	}
}

void http_reason(const struct http_reply *reply, char *why, size_t size)
{
	char text[1024];
	json_t *body = json_loadb(reply->body, reply->len, 0, NULL);
	const char *error = json_string_value(json_object_get(body, "error"));

	if (json_is_array(body))
		join(body, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%.1000s",
			 error ? error : reply->body);
	json_decref(body);
	text[strcspn(text, "\r\n")] = '\0';
	if (!text[0])
		snprintf(text, sizeof(text), "status %d", reply->status);
	printable(why, size, text);
}
