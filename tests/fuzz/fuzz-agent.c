/*
 * fuzz-agent.c - a hostile client: whatever arrives, in whatever pieces, the
 * agent's parser ends with a request that holds what was promised, or refuses.
 */
#include "../../guest/guest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_vector(char *const v[], size_t count)
{
	size_t n = 0;

	while (v[n])
		n++;
	if (n != count)
		abort();
}

static void check_request(const struct request *r)
{
	if (!r->op || r->wire > REQUEST_MAX)
		abort();
	check_vector(r->argv, r->args.count);
	check_vector(r->env, r->envs.count);
	for (char *const *e = r->env; *e; e++)
		if (!strchr(*e, '=') || **e == '=')
			abort();
	if (r->cwd && r->cwd[0] != '/')
		abort();
	if (r->op == OP_EXEC && !(r->flags & EXEC_PROBE) && !r->argv[0])
		abort();
	if ((r->op == OP_GET || r->op == OP_PUT) && !r->path)
		abort();
	if (strlen(r->hostname) >= sizeof(r->hostname) || r->signal > 64)
		abort();
}

/* As a connection does it: `step` bytes more at a time. */
static enum request_state feed(struct request *r, const uint8_t *data,
			       size_t size, size_t step, size_t *at)
{
	enum request_state state = REQUEST_MORE;
	size_t have = 0, used;

	while (state == REQUEST_MORE && have < size) {
		have = size - have < step ? size : have + step;
		state = request_feed(r, data + *at, have - *at, &used);
		if (used > have - *at)
			abort();
		*at += used;
	}
	return state;
}

static void live(const uint8_t *data, size_t size)
{
	struct live l;
	size_t used = 0;

	while (live_feed(&l, data, size, &used) > 0) {
		if (used < FRAME_HEAD || used > size)
			abort();
		if (l.type == FRAME_STDIN &&
		    (l.data < data || l.data + l.len != data + used))
			abort();
		if (l.type == FRAME_SIGNAL && (!l.signal || l.signal > 64))
			abort();
		data += used;
		size -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request whole = {0}, parts = {0};
	size_t at = 0, again = 0;
	enum request_state state;

	if (size < 1)
		return 0;
	state = feed(&whole, data + 1, size - 1, size, &at);
	if (feed(&parts, data + 1, size - 1, data[0] + 1u, &again) != state ||
	    (state == REQUEST_DONE && at != again))
		abort();
	if (state == REQUEST_DONE) {
		check_request(&whole);
		live(data + 1 + at, size - 1 - at);
	}
	if (state == REQUEST_BAD && !whole.why)
		abort();
	request_free(&whole);
	request_free(&parts);
	return 0;
}
