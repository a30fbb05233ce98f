/*
 * cgi-answer.c - what goes back to the web server, which puts it into HTTP.
 *
 * A client that is gone is no failure of ours: what was begun goes on, and
 * writing is in vain.
 */
#include "cgi.h"

#include <errno.h>
#include <stdarg.h>

static struct {
	int status; /* of what was begun */
	char headers[512];
} answer;

static const struct {
	int status;
	const char *reason, *code;
} statuses[] = {
	{200, "OK", NULL},
	{400, "Bad Request", "bad_request"},
	{401, "Unauthorized", "unauthorized"},
	{403, "Forbidden", "forbidden"},
	{404, "Not Found", "not_found"},
	{405, "Method Not Allowed", "method_not_allowed"},
	{408, "Request Timeout", "timeout"},
	{409, "Conflict", "conflict"},
	{411, "Length Required", "length_required"},
	{413, "Content Too Large", "too_large"},
	{429, "Too Many Requests", "quota"},
	{500, "Internal Server Error", "internal"},
	{503, "Service Unavailable", "unavailable"},
	{504, "Gateway Timeout", "timeout"},
};

static size_t entry_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i].status == status)
			return i;
	return entry_of(500);
}

int answer_status(void)
{
	return answer.status;
}

void answer_header(const char *fmt, ...)
{
	size_t len = strlen(answer.headers);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(answer.headers + len, sizeof(answer.headers) - len - 3, fmt,
		  ap);
	va_end(ap);
	strncat(answer.headers, "\r\n", 3);
}

int answer_begin(int status, const char *type, long long length)
{
	char head[1024], size[64] = "";
	int n;

	answer.status = status;
	if (length >= 0)
		snprintf(size, sizeof(size), "Content-Length: %lld\r\n",
			 length);
	n = snprintf(head, sizeof(head),
		     "Status: %d %s\r\nContent-Type: %s\r\n"
		     "Cache-Control: no-store\r\n"
		     "X-Content-Type-Options: nosniff\r\n%s%s\r\n",
		     status, statuses[entry_of(status)].reason, type, size,
		     answer.headers);
	write_full(STDOUT_FILENO, head, (size_t)n);
	return status;
}

int answer_text(int status, const char *type, const char *text, size_t len)
{
	answer_begin(status, type, (long long)len);
	write_full(STDOUT_FILENO, text, len);
	return status;
}

int answer_json(int status, json_t *body)
{
	AUTO_FREE char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;

	json_decref(body);
	if (!text)
		return answer_text(500, "application/json",
				   "{\"error\":{\"code\":\"internal\","
				   "\"message\":\"out of memory\"}}",
				   59);
	return answer_text(status, "application/json", text, strlen(text));
}

int answer_error(int status, const char *code, const char *fmt, ...)
{
	char text[1024], clean[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printable(clean, sizeof(clean), text);
	if (!code)
		code = statuses[entry_of(status)].code;
	if (status == 401)
		answer_header("WWW-Authenticate: Bearer realm=\"ark\", "
			      "Basic realm=\"ark\"");
	if (status == 503 || strcmp(code, "busy") == 0)
		answer_header("Retry-After: 1");
	return answer_json(status,
			   json_pack("{s:{s:s,s:s}}", "error", "code", code,
				     "message", *clean ? clean : "failed"));
}
