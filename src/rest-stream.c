/*
 * rest-stream.c - the output of a command, kept or passed on.
 *
 * Kept are its beginning and its end: what it set out to do and what it died
 * of.  The middle is dropped as it comes, so memory is bounded whatever a
 * guest writes.
 */
#include "rest-exec.h"

/* ---- kept ---------------------------------------------------------------- */

static size_t keep_head(struct stream *s, const char *data, size_t len)
{
	size_t left = STREAM_HALF - s->head_len;
	size_t n = len < left ? len : left;

	if (s->head_len + n > s->head_room) {
		size_t room = s->head_room ? s->head_room * 2 : 8192;
		char *more;

		while (room < s->head_len + n)
			room *= 2;
		more = realloc(s->head, room);
		if (!more)
			die(EX_OSERR, "out of memory");
		s->head = more;
		s->head_room = room;
	}
	if (n > 0)
		memcpy(s->head + s->head_len, data, n);
	s->head_len += n;
	return n;
}

void stream_keep(struct stream *s, const char *data, size_t len)
{
	size_t n = keep_head(s, data, len);

	data += n;
	len -= n;
	if (len == 0)
		return;
	if (!s->ring)
		s->ring = malloc(STREAM_HALF);
	if (!s->ring)
		die(EX_OSERR, "out of memory");
	for (; len > 0; data += n, len -= n) {
		n = STREAM_HALF - s->ring_at;
		n = len < n ? len : n;
		memcpy(s->ring + s->ring_at, data, n);
		s->ring_at = (s->ring_at + n) % STREAM_HALF;
		s->cut = s->cut || s->ring_len + n > STREAM_HALF;
		s->ring_len = s->ring_len + n > STREAM_HALF ? STREAM_HALF
							    : s->ring_len + n;
	}
}

/* Where bytes were left out, a character may have been cut in two: what is left
 * of it goes as well, or all would count as binary. */
static void trim_cut(const char *tail, size_t *from, size_t *head_len,
		     const char *head, size_t tail_len)
{
	for (int i = 0; i < 3 && *from < tail_len; i++) {
		if ((tail[*from] & 0xc0) != 0x80)
			break;
		(*from)++;
	}
	for (int i = 0; i < 3 && *head_len > 0; i++) {
		unsigned char c = (unsigned char)head[*head_len - 1];

		if (c < 0x80)
			break;
		(*head_len)--;
		if (c >= 0xc0)
			break;
	}
}

char *stream_text(struct stream *s, size_t *len)
{
	size_t head = s->head_len, from = 0;
	char *text = malloc(head + s->ring_len + 1), *tail;

	if (!text)
		die(EX_OSERR, "out of memory");
	tail = text + head;
	if (s->ring_len > 0) {
		size_t begin = s->cut ? s->ring_at : 0;

		memcpy(tail, s->ring + begin, s->ring_len - begin);
		memcpy(tail + s->ring_len - begin, s->ring, begin);
	}
	if (head > 0)
		memcpy(text, s->head, head);
	if (s->cut) {
		trim_cut(tail, &from, &head, text, s->ring_len);
		memmove(text + head, tail + from, s->ring_len - from);
	}
	*len = head + s->ring_len - from;
	text[*len] = '\0';
	return text;
}

static void text_into(json_t *object, const char *key, const char *text,
		      size_t len)
{
	AUTO_FREE char *coded = NULL;
	char name[32];

	if (utf8_ok(text, len)) {
		json_object_set_new(object, key,
				    json_stringn_nocheck(text, len));
		return;
	}
	coded = base64_encode(text, len);
	snprintf(name, sizeof(name), "%sBase64", key);
	json_object_set_new(object, name, json_string(coded));
}

void stream_into(json_t *object, const char *key, struct stream *s)
{
	size_t len;
	AUTO_FREE char *text = stream_text(s, &len);

	text_into(object, key, text, len);
}

void stream_free(struct stream *s)
{
	free(s->head);
	free(s->ring);
}

/* ---- passed on ----------------------------------------------------------- */

static void put_line(struct exec *e, json_t *line)
{
	AUTO_FREE char *text = json_dumps(line, JSON_COMPACT);

	json_decref(line);
	if (!answer_status())
		answer_begin(200, "application/x-ndjson", -1);
	if (!text || write_full(STDOUT_FILENO, text, strlen(text)) < 0 ||
	    write_full(STDOUT_FILENO, "\n", 1) < 0)
		e->broken = true;
}

static void put_output(struct exec *e, const struct stream *s, const char *data,
		       size_t len)
{
	json_t *line = json_object();

	text_into(line, s == &e->out ? "stdout" : "stderr", data, len);
	put_line(e, line);
}

/* So many bytes at the end begin a character that is not whole. */
static size_t unfinished(const char *data, size_t len)
{
	static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};

	for (size_t n = 1; n <= 3 && n <= len; n++) {
		unsigned char c = (unsigned char)data[len - n];

		if (c >= 0xc0)
			return c >= leads[n] && c < 0xf8 &&
					       !utf8_ok(data + len - n, n)
				       ? n
				       : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

void stream_line(struct exec *e, struct stream *s, const char *data, size_t len)
{
	AUTO_FREE char *all = malloc(s->part_len + len);
	size_t n = s->part_len + len, keep;

	if (!all)
		die(EX_OSERR, "out of memory");
	memcpy(all, s->part, s->part_len);
	memcpy(all + s->part_len, data, len);
	keep = unfinished(all, n);
	if (keep == n && n > 3)
		keep = 0;
	memcpy(s->part, all + n - keep, keep);
	s->part_len = keep;
	if (n > keep)
		put_output(e, s, all, n - keep);
}

int stream_end(struct exec *e, json_t *end)
{
	struct stream *both[] = {&e->out, &e->err};

	for (size_t i = 0; i < ARRAY_LEN(both); i++)
		if (both[i]->part_len > 0)
			put_output(e, both[i], both[i]->part,
				   both[i]->part_len);
	put_line(e, json_pack("{s:o}", "exit", end));
	return 200;
}
