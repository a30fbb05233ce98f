/*
 * http-play.h - the server's side of HTTP, for the tests of who asks.
 */
#ifndef HTTP_PLAY_H
#define HTTP_PLAY_H

#include "tap.h"

/* Read a request whole: head and counted body. */
static bool read_request(int fd, char *text, size_t size)
{
	size_t len = 0, body = 0;
	const char *end, *length;

	do {
		if (len + 1 == size || read(fd, text + len, 1) != 1)
			return false;
		text[++len] = '\0';
		end = strstr(text, "\r\n\r\n");
	} while (!end);
	length = strstr(text, "Content-Length: ");
	if (length)
		body = strtoul(length + 16, NULL, 10);
	if (len + body + 1 > size ||
	    read_full(fd, text + len, body) != (ssize_t)body)
		return false;
	text[len + body] = '\0';
	return true;
}

#endif
