/*
 * cgi-uri.c - what a path and a query ask for.
 *
 * The path is cut at its slashes first and decoded part by part, so that an
 * encoded slash stays within a part, where no name may have it.  Nothing is
 * resolved: ".." is a part as others are, and no name.
 */
#include "cgi.h"

#define PARTS_MAX 8
#define PATH_TEXT_MAX 2048
#define QUERY_MAX 16384

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

ssize_t uri_decode(char *text, bool plus)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		int high, low;

		if (*from == '+' && plus) {
			*to++ = ' ';
			continue;
		}
		if (*from != '%') {
			*to++ = *from;
			continue;
		}
		high = hex(from[1]);
		low = high < 0 ? -1 : hex(from[2]);
		if (low < 0 || (high == 0 && low == 0))
			return -1;
		*to++ = (char)(high << 4 | low);
		from += 2;
	}
	*to = '\0';
	return to - text;
}

/* ---- path ---------------------------------------------------------------- */

/* Where our part of the URI begins: behind the name that the server knows the
 * program by.  Without a URI the server's own idea of it. */
static const char *our_path(const struct cgi_head *h)
{
	size_t len = strlen(h->script);

	if (*h->uri != '/')
		return h->info;
	if (len > 0 && strncmp(h->uri, h->script, len) == 0)
		return h->uri + len;
	return len > 0 ? h->info : h->uri;
}

/* Cut the path up, decoded: the number of its parts, -1 for none of ours, -2
 * when it is not encoded well. */
static int cut(char *text, char *parts[PARTS_MAX])
{
	int n = 0;

	if (*text != '/')
		return -1;
	while (*text) {
		*text++ = '\0';
		if (n == PARTS_MAX)
			return -1;
		parts[n++] = text;
		text += strcspn(text, "/");
	}
	for (int i = 0; i < n; i++)
		if (uri_decode(parts[i], false) < 0)
			return -2;
	return n;
}

static bool fits(const char *pattern, char *const *parts, int n)
{
	for (int i = 0; i < n; i++) {
		size_t len;

		if (*pattern++ != '/')
			return false;
		len = strcspn(pattern, "/");
		if (*pattern != '{' && (strlen(parts[i]) != len ||
					memcmp(parts[i], pattern, len) != 0))
			return false;
		pattern += len;
	}
	return *pattern == '\0';
}

static struct refusal take_name(char *out, const char *part, const char *what)
{
	if (!name_ok(part))
		return refuse(400, "bad %s '%s'", what, part);
	snprintf(out, NAME_MAX_LEN + 1, "%s", part);
	return (struct refusal){0};
}

/* The parts of the path that stand for something. */
static struct refusal take_names(struct target *t, char *const *parts)
{
	const char *pattern = t->route->path;
	struct refusal no = {0};

	for (int i = 0; *pattern && !no.status; i++) {
		if (strncmp(pattern, "/{name}", 7) == 0)
			no = take_name(t->name, parts[i], "name");
		else if (strncmp(pattern, "/{", 2) == 0)
			no = take_name(t->id, parts[i], "id");
		pattern += 1 + strcspn(pattern + 1, "/");
	}
	return no;
}

static void allow(char allowed[64], const char *method)
{
	size_t len = strlen(allowed);

	if (!strstr(allowed, method))
		snprintf(allowed + len, 64 - len, "%s%s", len ? ", " : "",
			 method);
}

/* A HEAD is a GET whose body the web server keeps back. */
static bool same_method(const struct route *r, const char *method)
{
	if (strcmp(method, "HEAD") == 0)
		method = "GET";
	return strcmp(r->method, method) == 0;
}

struct refusal uri_route(const struct cgi_head *h, struct target *t,
			 char allowed[64])
{
	const char *path = our_path(h);
	size_t len = strcspn(path, "?#");
	char text[PATH_TEXT_MAX], *parts[PARTS_MAX], **from = parts;
	bool v1;
	int n;

	*allowed = '\0';
	if (len >= sizeof(text))
		return refuse(404, "there is nothing here");
	memcpy(text, path, len);
	text[len] = '\0';
	n = cut(text, parts);
	if (n == -2)
		return refuse(400, "a bad %% in the path");
	v1 = n > 0 && strcmp(parts[0], "v1") == 0;
	if (v1) {
		from++;
		n--;
	}
	for (size_t i = 0; n > 0 && i < routes_count; i++) {
		const struct route *r = &routes[i];

		if ((r->flags & ROUTE_V1 && !v1) || !fits(r->path, from, n))
			continue;
		if (same_method(r, h->method)) {
			t->route = r;
			return take_names(t, from);
		}
		allow(allowed, r->method);
	}
	if (*allowed)
		return refuse(405, "not with this method");
	return refuse(404, "there is nothing here");
}

/* ---- query --------------------------------------------------------------- */

bool route_has_json(const struct route *r)
{
	return !(r->flags & ROUTE_STREAM) && strcmp(r->method, "GET") != 0 &&
	       strcmp(r->method, "DELETE") != 0;
}

enum field route_field(const struct route *r, const char *key)
{
	for (size_t i = 0; i < ROUTE_FIELDS && r->fields[i]; i++)
		if (strcmp(field_rule(r->fields[i])->key, key) == 0)
			return r->fields[i];
	return F_NONE;
}

static struct refusal take_pair(char *pair, const struct route *r, int out,
				uint64_t *seen)
{
	char *value = pair + strcspn(pair, "=");
	enum field f;

	if (*value)
		*value++ = '\0';
	if (uri_decode(pair, true) < 0 || uri_decode(value, true) < 0)
		return refuse(400, "a bad %% in the query");
	f = route_has_json(r) ? F_NONE : route_field(r, pair);
	if (f == F_NONE)
		return refuse(400, "unknown parameter '%s'", pair);
	if (*seen & 1ULL << f)
		return refuse(400, "%s is given twice", pair);
	*seen |= 1ULL << f;
	return put_query(f, value, out);
}

struct refusal uri_query(const char *query, const struct route *r, int out,
			 uint64_t *seen)
{
	static char text[QUERY_MAX];
	struct refusal no = {0};
	char *at = text;

	if (strlen(query) >= sizeof(text))
		return refuse(400, "the query is too long");
	memcpy(text, query, strlen(query) + 1);
	while (*at && !no.status) {
		char *end = at + strcspn(at, "&");
		bool more = *end != '\0';

		*end = '\0';
		if (*at)
			no = take_pair(at, r, out, seen);
		at = end + more;
	}
	return no;
}
