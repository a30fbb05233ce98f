/*
 * frame.c - frames of proto.h, blocking.  Compiled into ark and the agent.
 */
#include "proto.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

uint16_t get_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

uint32_t get_u32(const unsigned char *p)
{
	return get_u16(p) | (uint32_t)get_u16(p + 2) << 16;
}

uint64_t get_u64(const unsigned char *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

void put_u16(unsigned char *p, uint16_t value)
{
	p[0] = (unsigned char)value;
	p[1] = (unsigned char)(value >> 8);
}

void put_u32(unsigned char *p, uint32_t value)
{
	put_u16(p, (uint16_t)value);
	put_u16(p + 2, (uint16_t)(value >> 16));
}

void put_u64(unsigned char *p, uint64_t value)
{
	put_u32(p, (uint32_t)value);
	put_u32(p + 4, (uint32_t)(value >> 32));
}

void frame_head(unsigned char head[FRAME_HEAD], enum frame_type type,
		size_t len)
{
	memset(head, 0, FRAME_HEAD);
	head[0] = (unsigned char)type;
	put_u32(head + 4, (uint32_t)len);
}

int frame_parse_head(const unsigned char head[FRAME_HEAD],
		     enum frame_type *type, size_t *len)
{
	*type = (enum frame_type)head[0];
	*len = get_u32(head + 4);
	if (head[0] == 0 || head[1] || head[2] || head[3] || *len > FRAME_MAX)
		return -1;
	return 0;
}

int frame_send(int fd, enum frame_type type, const void *data, size_t len)
{
	unsigned char head[FRAME_HEAD];
	struct iovec part[2] = {
		{.iov_base = head, .iov_len = FRAME_HEAD},
		{.iov_base = (void *)(uintptr_t)data, .iov_len = len},
	};
	struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};

	if (len > FRAME_MAX) {
		errno = EMSGSIZE;
		return -1;
	}
	frame_head(head, type, len);
	while (part[0].iov_len + part[1].iov_len > 0) {
		ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		for (int i = 0; i < 2; i++) {
			size_t done = (size_t)n < part[i].iov_len
					      ? (size_t)n
					      : part[i].iov_len;

			part[i].iov_base = (char *)part[i].iov_base + done;
			part[i].iov_len -= done;
			n -= (ssize_t)done;
		}
	}
	return 0;
}

int frame_send_text(int fd, enum frame_type type, const char *text)
{
	return frame_send(fd, type, text, strlen(text));
}

int frame_send_u32(int fd, enum frame_type type, uint32_t value)
{
	unsigned char bytes[4];

	put_u32(bytes, value);
	return frame_send(fd, type, bytes, sizeof(bytes));
}

int frame_send_u64(int fd, enum frame_type type, uint64_t value)
{
	unsigned char bytes[8];

	put_u64(bytes, value);
	return frame_send(fd, type, bytes, sizeof(bytes));
}

/* Read exactly len bytes; fewer (or an error) is the return value. */
static ssize_t read_all(int fd, unsigned char *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, data + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int frame_recv(int fd, struct frame *f)
{
	unsigned char head[FRAME_HEAD];
	ssize_t n = read_all(fd, head, sizeof(head));

	if (n <= 0)
		return (int)n;
	if (n < FRAME_HEAD || frame_parse_head(head, &f->type, &f->len) < 0) {
		errno = EPROTO;
		return -1;
	}
	n = read_all(fd, f->data, f->len);
	if (n < 0)
		return -1;
	if ((size_t)n < f->len) {
		errno = EPROTO;
		return -1;
	}
	f->data[f->len] = '\0';
	return 1;
}

const char *frame_text(const struct frame *f)
{
	if (memchr(f->data, '\0', f->len))
		return NULL;
	return (const char *)f->data;
}
