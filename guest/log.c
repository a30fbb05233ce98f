/*
 * log.c - the first LOG_HEAD and the last LOG_TAIL bytes of an output.
 *
 * Kept as records, so that stdout and stderr stay apart and in the order in
 * which they came: two bytes (stream, length), then at most CHUNK bytes.  The
 * head is filled once; after that the tail is a ring that forgets whole
 * records at its old end.  Memory is one allocation at the first byte, of
 * which the kernel gives only pages that are written to.
 */
#include "guest.h"

#define CHUNK 4096u
#define RECORD 2u
#define IS_STDERR 0x8000u

static void ring_put(struct log *l, const unsigned char *data, size_t len)
{
	unsigned char *ring = l->data + LOG_HEAD;

	for (size_t i = 0; i < len; i++)
		ring[(l->start + l->len + i) % LOG_TAIL] = data[i];
	l->len += len;
}

static void ring_get(const struct log *l, size_t at, unsigned char *data,
		     size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = l->data[LOG_HEAD + (l->start + at + i) % LOG_TAIL];
}

static void ring_forget(struct log *l)
{
	unsigned char record[RECORD];
	size_t len;

	ring_get(l, 0, record, RECORD);
	len = get_u16(record) & ~IS_STDERR;
	l->start = (l->start + RECORD + len) % LOG_TAIL;
	l->len -= RECORD + len;
	l->dropped += len;
}

static size_t add_record(struct log *l, unsigned mark,
			 const unsigned char *data, size_t len)
{
	size_t room = LOG_HEAD - l->head;
	unsigned char record[RECORD];

	if (len > CHUNK)
		len = CHUNK;
	if (room > RECORD) {
		if (len > room - RECORD)
			len = room - RECORD;
		put_u16(l->data + l->head, (uint16_t)(mark | len));
		memcpy(l->data + l->head + RECORD, data, len);
		l->head += RECORD + len;
		return len;
	}
	while (l->len + RECORD + len > LOG_TAIL)
		ring_forget(l);
	put_u16(record, (uint16_t)(mark | len));
	ring_put(l, record, RECORD);
	ring_put(l, data, len);
	return len;
}

void log_add(struct log *l, enum frame_type type, const unsigned char *data,
	     size_t len)
{
	unsigned mark = type == FRAME_STDERR ? IS_STDERR : 0;

	if (!l->data)
		l->data = malloc(LOG_HEAD + LOG_TAIL);
	if (!l->data) {
		l->dropped += len;
		return;
	}
	while (len > 0) {
		size_t n = add_record(l, mark, data, len);

		data += n;
		len -= n;
	}
}

static void replay_one(unsigned mark, const unsigned char *data, size_t len,
		       log_sink *sink, void *to)
{
	sink(to, mark & IS_STDERR ? FRAME_STDERR : FRAME_STDOUT, data, len);
}

void log_replay(const struct log *l, log_sink *sink, void *to)
{
	unsigned char chunk[CHUNK];
	size_t at = 0;

	while (at < l->head) {
		unsigned record = get_u16(l->data + at);
		size_t len = record & ~IS_STDERR;

		replay_one(record, l->data + at + RECORD, len, sink, to);
		at += RECORD + len;
	}
	if (l->dropped) {
		int n = snprintf((char *)chunk, CHUNK,
				 "\n[ark: %llu bytes are not kept]\n",
				 (unsigned long long)l->dropped);

		sink(to, FRAME_STDERR, chunk, (size_t)n);
	}
	for (at = 0; at < l->len;) {
		unsigned record;

		ring_get(l, at, chunk, RECORD);
		record = get_u16(chunk);
		at += RECORD;
		ring_get(l, at, chunk, record & ~IS_STDERR);
		replay_one(record, chunk, record & ~IS_STDERR, sink, to);
		at += record & ~IS_STDERR;
	}
}

void log_free(struct log *l)
{
	free(l->data);
	memset(l, 0, sizeof(*l));
}
