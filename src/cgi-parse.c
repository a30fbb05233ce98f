/*
 * cgi-parse.c - read one request and say what it asks for, in the cage.
 *
 * 1. The cage closes before the first foreign byte is read.
 * 2. The token is looked at before the body: who has none does not reach the
 *    JSON parser.  The parent checks it again, with what it reads here; so
 *    somebody who took this process over still needs a token.
 * 3. A body is read when its length is within the limit of its route, else it
 *    is left where it is.  One that a route streams is left to that route.
 */
#include "cgi.h"

#include <errno.h>

/* Records are collected: each write would wake the parent up. */
static struct {
	size_t len;
	unsigned char data[16384];
} pending;

/* A parent that is gone has no use for it. */
static void flush(int out)
{
	if (write_full(out, pending.data, pending.len) < 0)
		_exit(1);
	pending.len = 0;
}

static void append(int out, const void *data, size_t len)
{
	if (len > sizeof(pending.data) - pending.len)
		flush(out);
	if (len > sizeof(pending.data)) {
		if (write_full(out, data, len) < 0)
			_exit(1);
		return;
	}
	if (len > 0)
		memcpy(pending.data + pending.len, data, len);
	pending.len += len;
}

void emit(int out, enum field f, const void *data, size_t len)
{
	const unsigned char head[CGI_RECORD_HEAD] = {
		(unsigned char)f,
		0,
		0,
		0,
		(unsigned char)len,
		(unsigned char)(len >> 8),
		(unsigned char)(len >> 16),
		(unsigned char)(len >> 24),
	};

	append(out, head, sizeof(head));
	append(out, data, len);
}

void emit_text(int out, enum field f, const char *text)
{
	emit(out, f, text, strlen(text));
}

void emit_number(int out, enum field f, uint64_t number)
{
	emit(out, f, &number, sizeof(number));
}

static struct refusal read_body(const struct parser *p,
				const struct cgi_head *h, const struct route *r,
				uint64_t *seen)
{
	size_t most = r->flags & ROUTE_BIG ? CGI_FILES_MAX : CGI_JSON_MAX;
	size_t len = (size_t)h->length;
	AUTO_FREE char *text = NULL;

	if (h->length > (long long)most)
		return refuse(413, "a body may have %zu bytes", most);
	if (len == 0)
		return (struct refusal){0};
	text = malloc(len + 1);
	if (!text)
		return refuse(503, "out of memory");
	if (read_full(p->in, text, len) != (ssize_t)len)
		return refuse(400, "the body ends early");
	text[len] = '\0';
	return body_fields(text, len, r, p->out, seen);
}

static struct refusal check_must(const struct route *r, uint64_t seen)
{
	for (size_t i = 0; i < ARRAY_LEN(r->must) && r->must[i]; i++)
		if (!(seen & 1ULL << r->must[i]))
			return refuse(400, "%s must be given",
				      field_rule(r->must[i])->key);
	return (struct refusal){0};
}

static struct refusal take_fields(const struct parser *p,
				  const struct cgi_head *h,
				  const struct target *t)
{
	struct refusal no;
	uint64_t seen = 0;

	if (h->length < 0 || h->length > (long long)CGI_STREAM_MAX)
		return refuse(413, "the body is too large");
	emit_number(p->out, F_LENGTH, (uint64_t)h->length);
	no = uri_query(h->query, t->route, p->out, &seen);
	if (!no.status && route_has_json(t->route))
		no = read_body(p, h, t->route, &seen);
	return no.status ? no : check_must(t->route, seen);
}

/* "localhost:7000", "[::1]:7000" -> length of the name. */
static size_t host_len(const char *host)
{
	if (*host == '[')
		return strcspn(host, "]") + (strchr(host, ']') != NULL);
	return strcspn(host, ":/");
}

static bool is_loopback(const char *host)
{
	size_t len = host_len(host);

	return (len == 9 && strncmp(host, "localhost", 9) == 0) ||
	       (len == 5 && strncmp(host, "[::1]", 5) == 0) ||
	       (strncmp(host, "127.", 4) == 0 &&
		strspn(host, "0123456789.") == len && len <= 15);
}

/* A page of somebody else's in a browser of this host: it can send requests
 * here, with the browser's passwords, and when its name leads to 127.0.0.1 it
 * can read the answers. */
static struct refusal check_browser(const struct parser *p,
				    const struct cgi_head *h)
{
	const char *origin = strstr(h->origin, "://");
	const char *from = origin ? origin + 3 : h->origin;

	if (*h->origin && strcmp(from, h->host) != 0)
		return refuse(403, "not for pages of other servers");
	if (p->open && *h->host && !is_loopback(h->host))
		return refuse(403, "without authentication only this host is "
				   "served, by its loopback");
	return (struct refusal){0};
}

static struct refusal parse(const struct parser *p, const struct cgi_head *h)
{
	struct target t = {0};
	char allowed[64] = "";
	struct refusal no = check_browser(p, h);

	if (!no.status)
		no = uri_route(h, &t, allowed);
	if (no.status == 405)
		emit_text(p->out, F_ALLOW, allowed);
	if (no.status)
		return no;
	emit_number(p->out, F_ROUTE, (uint64_t)(t.route - routes));
	if (!field_ok(F_CREDS, h->creds, strlen(h->creds)))
		return refuse(400, "a bad Authorization");
	if (t.route->scope != SCOPE_NONE && !p->open && !p->known(h->creds))
		return refuse(401, *h->creds ? "no such token"
					     : "a token is needed");
	emit_text(p->out, F_CREDS, h->creds);
	if (*t.name)
		emit_text(p->out, F_NAME, t.name);
	if (*t.id)
		emit_text(p->out, F_ID, t.id);
	return take_fields(p, h, &t);
}

static uint64_t port_of(const char *text)
{
	const char *why;
	long long port;

	return parse_num(text, 0, 65535, &port, &why) ? (uint64_t)port : 0;
}

/* What the web server says of itself and of the client, if it is that. */
static void emit_address(int out, enum field f, const char *text)
{
	emit_text(out, f, field_ok(f, text, strlen(text)) ? text : "");
}

static void emit_ends(int out, const struct cgi_head *h)
{
	emit_address(out, F_REMOTE, h->remote);
	emit_number(out, F_REMOTE_PORT, port_of(h->remote_port));
	emit_address(out, F_SERVER, h->server);
	emit_number(out, F_SERVER_PORT, port_of(h->server_port));
}

void cgi_parse(const struct parser *p)
{
	static char text[CGI_HEAD_MAX];
	struct cgi_head head;
	struct refusal no;
	const char *why;
	unsigned char error[8 + sizeof(no.why)];

	json_object_seed(0); /* reads a file */
	if (p->caged && cage() < 0)
		_exit(1);
	why = p->scgi ? head_of_scgi(&head, p->in, text)
		      : head_of_environment(&head);
	if (why) {
		no = refuse(400, "%s", why);
	} else {
		emit_ends(p->out, &head);
		no = parse(p, &head);
	}
	if (!no.status) {
		emit(p->out, F_END, NULL, 0);
	} else {
		memset(error, 0, 8);
		error[0] = (unsigned char)no.status;
		error[1] = (unsigned char)(no.status >> 8);
		memcpy(error + 8, no.why, strlen(no.why));
		emit(p->out, F_ERROR, error, 8 + strlen(no.why));
	}
	flush(p->out);
}
