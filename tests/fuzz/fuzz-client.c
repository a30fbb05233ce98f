/*
 * fuzz-client.c - a hostile agent: whatever it sends, the session ends, and
 * what it says about its execs is parsed or refused.
 */
#include "../../src/execs.h"

#include <fcntl.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_item(void *out, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct item i;

	if (copy && item_parse(copy, &i)) {
		if (strlen(i.command) > strlen(text) || i.result > 255)
			abort();
		json_text(out, i.command);
	}
}

static void check(const struct session *s, enum session_end end)
{
	if (end == END_NONE || end == END_INTERRUPT)
		abort();
	if (end == END_EXIT && (s->code < 0 || s->code > 255))
		abort();
	if (end == END_ERROR && (s->code < 1 || s->code > 255))
		abort();
	if (strlen(s->id) >= sizeof(s->id) ||
	    strlen(s->text) >= sizeof(s->text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int null = -1;
	static FILE *out;
	int pair[2];
	struct session s = {.pidfd = -1, .item = take_item};

	if (null < 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		out = fdopen(dup(null), "w");
	}
	if (size > 150000 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (write_full(pair[1], data, size) < 0)
		abort();
	shutdown(pair[1], SHUT_WR);
	s.item_data = out;
	s.sock = pair[0];
	s.in = size % 2 ? null : -1;
	s.out = size % 3 ? null : -1;
	s.err = null;
	check(&s, session_run(&s));
	close(pair[0]);
	close(pair[1]);
	return 0;
}
