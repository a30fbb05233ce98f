/*
 * ch-events.c - Cloud Hypervisor's event monitor: pretty-printed JSON objects
 * with blank lines between them, on a pipe that loses what does not fit.
 */
#include "ch.h"

#include <jansson.h>

static const struct {
	const char *source, *event;
	enum vmm_event means;
} meanings[] = {
	{"vm", "paused", EVENT_PAUSED},	   {"vm", "resumed", EVENT_RESUMED},
	{"vm", "rebooting", EVENT_REBOOT}, {"vm", "shutdown", EVENT_POWEROFF},
	{"guest", "panic", EVENT_PANIC},
};

/* A panic whose kernel has another one loaded is reported on the same way, and
 * is one all the same: nobody here has loaded any. */
static enum vmm_event meaning_of(const char *text, size_t len)
{
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *source =
		json_string_value(json_object_get(object, "source"));
	const char *event = json_string_value(json_object_get(object, "event"));
	enum vmm_event means = EVENT_NONE;

	for (size_t i = 0; source && event && i < ARRAY_LEN(meanings); i++)
		if (strcmp(source, meanings[i].source) == 0 &&
		    strcmp(event, meanings[i].event) == 0)
			means = meanings[i].means;
	json_decref(object);
	return means;
}

size_t ch_events_feed(struct ch_events *e, const char *data, size_t len)
{
	size_t room = sizeof(e->buf) - e->len;

	if (len > room)
		len = room;
	memcpy(e->buf + e->len, data, len);
	e->len += len;
	return len;
}

static void drop(struct ch_events *e, size_t n)
{
	e->len -= n;
	memmove(e->buf, e->buf + n, e->len);
}

/* The end of the object that the buffer begins with, by its braces; 0 when it
 * is not there yet. */
static size_t object_end(const struct ch_events *e)
{
	bool text = false;
	unsigned depth = 0;

	for (size_t i = 0; i < e->len; i++) {
		char c = e->buf[i];

		if (text && c == '\\')
			i++;
		else if (c == '"')
			text = !text;
		else if (!text && c == '{')
			depth++;
		else if (!text && c == '}' && --depth == 0)
			return i + 1;
	}
	return 0;
}

/* An object always begins on a line of its own and no line in it begins with a
 * brace but the last: where one was cut off, the next begins here. */
static size_t next_start(const struct ch_events *e)
{
	const char *at =
		e->len > 1 ? memmem(e->buf + 1, e->len - 1, "\n{", 2) : NULL;

	return at ? (size_t)(at + 1 - e->buf) : 0;
}

enum vmm_event ch_events_next(struct ch_events *e)
{
	for (;;) {
		const char *start = memchr(e->buf, '{', e->len);
		size_t end, next;
		enum vmm_event means;

		drop(e, start ? (size_t)(start - e->buf) : e->len);
		if (e->len == 0)
			return EVENT_NONE;
		end = object_end(e);
		next = next_start(e);
		if (next && (!end || next < end)) {
			drop(e, next);
			continue;
		}
		if (!end && e->len < sizeof(e->buf))
			return EVENT_NONE;
		if (!end) {
			drop(e, e->len);
			return EVENT_NONE;
		}
		means = meaning_of(e->buf, end);
		drop(e, end);
		if (means != EVENT_NONE)
			return means;
	}
}
