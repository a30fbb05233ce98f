/*
 * cgi-request.c - from foreign bytes to a request that can be acted on.
 *
 * 1. A child parses, in its cage (cgi-parse.c); this process reads the records
 *    that it writes and nothing else of the client, but for a body that its
 *    route streams.
 * 2. A parser that was taken over can say what it likes.  So every record is
 *    checked again by the table of fields: its length, its type, that the
 *    route has it, that it comes once.  That is less than parsing, and all of
 *    it is here.
 * 3. A client that sends its head or its JSON slowly is not waited for longer
 *    than PARSE_MS; the parser then ends with it.
 */
#include "cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#define PARSE_MS 60000
/* A record for every file of a body that is as large as it may be, and what
 * records add to it. */
#define CANONICAL_MAX                                                          \
	((size_t)CGI_FILES_MAX + CGI_HEAD_MAX +                                \
	 (size_t)CGI_RECORDS_MAX * CGI_RECORD_HEAD)

/* ---- the parser ---------------------------------------------------------- */

NORETURN static void be_parser(const struct parser *given, int out,
			       pid_t parent)
{
	struct parser p = *given;

	die_with(parent);
	signal(SIGPIPE, SIG_DFL);
	p.out = out;
	cgi_parse(&p);
	_exit(0);
}

/* All that comes until the end or the deadline: the length, or -1. */
static ssize_t read_all(int fd, char **data)
{
	uint64_t end = now_ms() + PARSE_MS;
	size_t len = 0, room = 0;

	while (len < CANONICAL_MAX) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		uint64_t now = now_ms();
		ssize_t n;

		if (now >= end || poll(&p, 1, (int)(end - now)) < 1) {
			errno = ETIMEDOUT;
			return -1;
		}
		if (room < len + 4096) {
			char *more = realloc(*data, room = room * 2 + 8192);

			if (!more)
				return -1;
			*data = more;
		}
		n = read(fd, *data + len, room - len - 1);
		if (n <= 0) {
			(*data)[len] = '\0';
			return n < 0 ? -1 : (ssize_t)len;
		}
		len += (size_t)n;
	}
	errno = EMSGSIZE;
	return -1;
}

static ssize_t run_parser(const struct parser *p, char **data)
{
	int ends[2], status;
	ssize_t len;
	pid_t pid, self = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		be_parser(p, ends[1], self);
	close(ends[1]);
	len = pid < 0 ? -1 : read_all(ends[0], data);
	close(ends[0]);
	if (pid > 0) {
		int saved = errno;

		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
		errno = saved;
	}
	return len;
}

/* ---- its records --------------------------------------------------------- */

/* What the field needs, besides being right in itself. */
static const char *check_place(struct call *c, enum field f)
{
	const struct field_rule *rule = field_rule(f);

	if (f < F_VM_NAME && call_record(c, f, 0))
		return "a record comes twice";
	if (f < F_VM_NAME)
		return NULL;
	if (!c->route)
		return "a field before the route";
	if (f == F_FILE_PATH || f == F_FILE_MODE || f == F_CONTENT)
		return c->count > 0 && route_field(c->route, "files")
			       ? NULL
			       : "files where there are none";
	if (route_field(c->route, rule->key) != f)
		return "a field that the route has not";
	if (!rule->most && call_record(c, f, 0))
		return "a field comes twice";
	return NULL;
}

static const char *take(struct call *c, enum field f, char *data, size_t len)
{
	uint64_t number;
	const char *why;

	if (f == F_ROUTE) {
		memcpy(&number, data, len == 8 ? 8 : 0);
		if (len != 8 || number >= routes_count || c->route)
			return "a bad route";
		c->route = &routes[number];
		return NULL;
	}
	if (!field_ok(f, data, len))
		return "a bad field";
	why = check_place(c, f);
	if (why)
		return why;
	if (c->count == CGI_RECORDS_MAX)
		return "too many records";
	c->records[c->count++] = (struct record){f, len, data};
	return NULL;
}

static const char *take_error(const char *data, size_t len, int *status)
{
	if (len < 9 || len > 400)
		return "a bad error";
	*status = (unsigned char)data[0] | (unsigned char)data[1] << 8;
	if (*status < 400 || *status > 599)
		return "a bad error";
	return data + 8;
}

static size_t length_of(const unsigned char *head)
{
	return head[4] | (size_t)head[5] << 8 | (size_t)head[6] << 16 |
	       (size_t)head[7] << 24;
}

const char *request_check(struct call *c, char *data, size_t len, int *status)
{
	char *end = data + len, *at = data;

	c->records = calloc(CGI_RECORDS_MAX, sizeof(*c->records));
	while (c->records && end - at >= CGI_RECORD_HEAD) {
		const unsigned char *head = (unsigned char *)at;
		enum field f = head[0];
		size_t size = length_of(head);
		char keep, *next;
		const char *why;

		at += CGI_RECORD_HEAD;
		if (f >= F_COUNT_OF_FIELDS || size > (size_t)(end - at))
			return "a bad record";
		next = at + size;
		if (f == F_END)
			return size == 0 && next == end && c->route
				       ? NULL
				       : "a bad end";
		/* Each is a string for its check; the byte is the next head's
		 * type, which is put back and cleared when that was read. */
		keep = *next;
		*next = '\0';
		if (f == F_ERROR)
			return take_error(at, size, status);
		why = take(c, f, at, size);
		if (why)
			return why;
		if (next < end)
			*next = keep;
		at = next;
	}
	return "it does not end";
}

/* Now that all heads are read, end every field with a NUL. */
static void terminate(struct call *c)
{
	for (size_t i = 0; i < c->count; i++) {
		struct record *r = &c->records[i];

		if (r->data)
			r->data[r->len] = '\0';
	}
}

/* ---- for the routes ------------------------------------------------------ */

const struct record *call_record(const struct call *c, enum field f, size_t nth)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->records[i].field == f && nth-- == 0)
			return &c->records[i];
	return NULL;
}

const char *call_text(const struct call *c, enum field f)
{
	const struct record *r = call_record(c, f, 0);

	return r ? r->data : NULL;
}

bool call_truth(const struct call *c, enum field f, bool otherwise)
{
	const struct record *r = call_record(c, f, 0);

	return r ? *r->data != 0 : otherwise;
}

bool call_number(const struct call *c, enum field f, uint64_t *number)
{
	const struct record *r = call_record(c, f, 0);

	if (r)
		memcpy(number, r->data, sizeof(*number));
	return r;
}

const char *call_digits(const struct call *c, enum field f,
			char text[DIGITS_SIZE])
{
	uint64_t number = 0;

	if (!call_number(c, f, &number))
		return NULL;
	snprintf(text, DIGITS_SIZE, "%llu%s", (unsigned long long)number,
		 field_rule(f)->kind == KIND_SECONDS ? "ms" : "");
	return text;
}

static void watch(const struct call *c)
{
	const char *server = call_text(c, F_SERVER);
	const char *remote = call_text(c, F_REMOTE);
	uint64_t from = 0, to = 0;

	call_number(c, F_REMOTE_PORT, &from);
	call_number(c, F_SERVER_PORT, &to);
	if (server && remote && from && to)
		client_watch(server, (uint16_t)to, remote, (uint16_t)from);
}

static int answer_refusal(const struct call *c, int status, const char *why)
{
	if (status == 405)
		answer_header("Allow: %s", call_text(c, F_ALLOW));
	return answer_error(status, NULL, "%s", why);
}

int request_read(struct call *c, const struct parser *p)
{
	ssize_t len = run_parser(p, &c->buffer);
	int status = 0;
	const char *why;

	if (len < 0 && errno == ETIMEDOUT)
		return answer_error(408, NULL, "the request came too slowly");
	if (len < 0)
		return answer_error(500, NULL, "cannot read the request");
	why = request_check(c, c->buffer, (size_t)len, &status);
	if (status) {
		AUTO_FREE char *text = strdup(why);

		terminate(c);
		return answer_refusal(c, status, text ? text : "");
	}
	if (why) {
		warn_line("the parser ended badly: %s", why);
		return answer_error(500, NULL, "cannot read the request");
	}
	terminate(c);
	watch(c);
	c->name = call_text(c, F_NAME);
	c->id = call_text(c, F_ID);
	c->remote = call_text(c, F_REMOTE);
	c->creds = call_text(c, F_CREDS);
	if (!c->remote || !c->creds || !call_number(c, F_LENGTH, &c->length))
		return answer_error(500, NULL, "cannot read the request");
	return 0;
}

void call_free(struct call *c)
{
	free(c->records);
	free(c->buffer);
}
