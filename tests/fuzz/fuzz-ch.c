/*
 * fuzz-ch.c - bytes of a Cloud Hypervisor, perhaps taken over by its guest:
 * replies, events, a state and a version.
 */
#include "ch.h"
#include "http.h"

#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_reply(const uint8_t *data, size_t size)
{
	static struct http_reply reply;
	char why[200];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		abort();
	if (write(ends[1], data, size) != (ssize_t)size)
		abort();
	close(ends[1]);
	if (http_request(ends[0], "GET", "/x", NULL, &reply, 10) == 0) {
		if (reply.len > HTTP_BODY_MAX || reply.body[reply.len])
			abort();
		http_reason(&reply, why, sizeof(why));
	}
	close(ends[0]);
}

static void read_events(const uint8_t *data, size_t size)
{
	struct ch_events *e = calloc(1, sizeof(*e));

	if (!e)
		abort();
	for (size_t at = 0; at < size;) {
		size_t n =
			ch_events_feed(e, (const char *)data + at, size - at);

		if (n == 0) /* full, and nothing comes of it: stuck */
			abort();
		at += n;
		while (ch_events_next(e) != EVENT_NONE)
			;
	}
	free(e);
}

static void read_texts(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct vmm_counters counters;
	char version[32];
	size_t len = size;

	if (!text)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	if (ch_version_of(text, version, sizeof(version)))
		ch_version_refused(version);
	ch_counters(text, size, &counters);
	ch_seal_state(text, &len);
	if (len > size)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > 100000)
		return 0;
	read_reply(data, size);
	read_events(data, size);
	read_texts(data, size);
	return 0;
}
