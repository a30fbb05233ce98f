/*
 * cgi-head.c - the head of a request as a web server hands it over: variables
 * of CGI/1.1 (RFC 3875), in the environment or, with SCGI, in a netstring.
 *
 * The server has parsed HTTP, but what is in the values is the client's.  Of a
 * netstring not a byte more is read than it has: what follows is the body, and
 * perhaps for somebody else.
 */
#include "cgi.h"

#include <errno.h>

static const struct variable {
	const char *name;
	size_t at;
} variables[] = {
	{"REQUEST_METHOD", offsetof(struct cgi_head, method)},
	{"REQUEST_URI", offsetof(struct cgi_head, uri)},
	{"SCRIPT_NAME", offsetof(struct cgi_head, script)},
	{"PATH_INFO", offsetof(struct cgi_head, info)},
	{"QUERY_STRING", offsetof(struct cgi_head, query)},
	{"CONTENT_TYPE", offsetof(struct cgi_head, type)},
	{"HTTP_AUTHORIZATION", offsetof(struct cgi_head, creds)},
	{"HTTP_ORIGIN", offsetof(struct cgi_head, origin)},
	{"HTTP_HOST", offsetof(struct cgi_head, host)},
	{"REMOTE_ADDR", offsetof(struct cgi_head, remote)},
	{"REMOTE_PORT", offsetof(struct cgi_head, remote_port)},
	{"SERVER_ADDR", offsetof(struct cgi_head, server)},
	{"SERVER_PORT", offsetof(struct cgi_head, server_port)},
};

static const char **place(struct cgi_head *h, const struct variable *v)
{
	return (const char **)((char *)h + v->at);
}

static const char *set_length(struct cgi_head *h, const char *text)
{
	const char *why;

	if (!*text)
		return NULL;
	return parse_num(text, 0, INT64_MAX, &h->length, &why)
		       ? NULL
		       : "a bad Content-Length";
}

const char *head_of_environment(struct cgi_head *h)
{
	const char *length = getenv("CONTENT_LENGTH");

	*h = (struct cgi_head){0};
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		const char *value = getenv(variables[i].name);

		*place(h, &variables[i]) = value ? value : "";
	}
	if (!*h->method)
		return "no REQUEST_METHOD: this is a CGI program";
	return length ? set_length(h, length) : NULL;
}

/* "LENGTH:" of a netstring; one byte at a time, there are few. */
static long read_length(int in)
{
	long length = 0;
	char c;

	for (int digits = 0; digits < 7; digits++) {
		if (read_full(in, &c, 1) != 1)
			return -1;
		if (c == ':' && digits > 0)
			return length;
		if (c < '0' || c > '9')
			return -1;
		length = length * 10 + (c - '0');
	}
	return -1;
}

/* A variable that we know; it must not come twice. */
static const char *set(struct cgi_head *h, const char *name, const char *value)
{
	for (size_t i = 0; i < ARRAY_LEN(variables); i++) {
		if (strcmp(variables[i].name, name) != 0)
			continue;
		if (*place(h, &variables[i]))
			return "a variable comes twice";
		*place(h, &variables[i]) = value;
	}
	if (strcmp(name, "CONTENT_LENGTH") == 0)
		return set_length(h, value);
	return NULL;
}

const char *head_of_scgi(struct cgi_head *h, int in, char *text)
{
	const char *why = NULL;
	long length = read_length(in);
	char *at = text, *end;

	*h = (struct cgi_head){0};
	if (length <= 0 || length >= (long)CGI_HEAD_MAX)
		return "not a SCGI request, or a head of more than 64 KiB";
	if (read_full(in, text, (size_t)length + 1) != length + 1 ||
	    text[length] != ',' || text[length - 1] != '\0')
		return "not a SCGI request";
	for (end = text + length; !why && at < end;) {
		const char *name = at, *value = at + strlen(at) + 1;

		if (value >= end)
			return "not a SCGI request";
		why = set(h, name, value);
		at = (char *)(uintptr_t)value + strlen(value) + 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		if (!*place(h, &variables[i]))
			*place(h, &variables[i]) = "";
	return why;
}
