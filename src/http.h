/*
 * http.h - HTTP/1.1 on a unix socket, as much of it as a VMM's API speaks.
 * Source: RFC 9112, and what micro-http (the server in Cloud Hypervisor)
 * makes of it: an empty reason phrase, no Content-Length on 204, connections
 * that it never closes.
 *
 * The peer is a VMM that its guest may have taken over: head and body have a
 * limit, every wait has an end.
 */
#ifndef ARK_HTTP_H
#define ARK_HTTP_H

#include <stddef.h>

#define HTTP_HEAD_MAX ((size_t)8192)
#define HTTP_BODY_MAX ((size_t)262144)

struct http_reply {
	int status;		      /* 200 ... 599 */
	size_t len;		      /* of the body */
	char body[HTTP_BODY_MAX + 1]; /* a NUL behind it */
	char head[HTTP_HEAD_MAX + 1];
};

/* The text of a request; `body` NULL: none.  Owned by the caller, or NULL. */
char *http_format(const char *method, const char *path, const char *body);

/* One request on a connected socket and its reply, which must be complete
 * after `ms`.  The connection is good for the next request only after 0.
 *
 * 0 whatever the status is; or -1 and errno.  ETIMEDOUT means that nobody knows
 * what has become of the request: it may still be carried out.  So do
 * ECONNRESET (closed before the end of the reply) and EPROTO (no HTTP, or too
 * much of it). */
int http_request(int fd, const char *method, const char *path, const char *body,
		 struct http_reply *reply, unsigned ms);

/* What a reply that is no success says, for people, printable: the strings of
 * a JSON array, outermost first; the "error" of an object; or any other text,
 * which JSON with raw line breaks in its strings is as well. */
void http_reason(const struct http_reply *reply, char *why, size_t size);

#endif
