/*
 * request.c - the option frames of a request, sent in one piece: a command of
 * one word must not cost a packet per frame.
 */
#include "session.h"

#include <errno.h>
#include <sys/socket.h>

int request_add(struct request *r, enum frame_type type, const void *data,
		size_t len)
{
	size_t need = r->len + FRAME_HEAD + len;

	if (len > FRAME_MAX || need > REQUEST_MAX) {
		errno = E2BIG;
		return -1;
	}
	if (need > r->room) {
		size_t room = need * 2 < 1024 ? 1024 : need * 2;
		unsigned char *more = realloc(r->data, room);

		if (!more)
			return -1;
		r->data = more;
		r->room = room;
	}
	frame_head(r->data + r->len, type, len);
	if (len > 0)
		memcpy(r->data + r->len + FRAME_HEAD, data, len);
	r->len = need;
	return 0;
}

int request_add_text(struct request *r, enum frame_type type, const char *text)
{
	return request_add(r, type, text, strlen(text));
}

int request_add_u32(struct request *r, enum frame_type type, uint32_t value)
{
	unsigned char bytes[4];

	put_u32(bytes, value);
	return request_add(r, type, bytes, sizeof(bytes));
}

int request_add_winsize(struct request *r, int terminal)
{
	unsigned char size[4];

	if (!tty_size(terminal, size))
		return 0;
	return request_add(r, FRAME_WINSIZE, size, sizeof(size));
}

static int send_all(int sock, const unsigned char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = send(sock, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

int request_send(struct request *r, int sock)
{
	int result = request_add(r, FRAME_GO, NULL, 0);

	if (result == 0)
		result = send_all(sock, r->data, r->len);
	free(r->data);
	*r = (struct request){0};
	return result;
}
