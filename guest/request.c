/*
 * request.c - what a client asks for, out of its frames.
 *
 * A pure parser: bytes in, struct request out, no descriptor, no clock.  It
 * is what tests/fuzz/fuzz-agent.c feeds.  Its rules:
 *
 * 1. FRAME_HELLO comes first, FRAME_GO last, the options of the operation
 *    between; anything else is an error, and so is an option given twice.
 * 2. Memory is bounded by what has arrived, and that by REQUEST_MAX; no number
 *    in a frame is the size of anything.
 * 3. Text has no NUL inside: the other side would see another string than the
 *    one that was checked.
 */
#include "guest.h"

#include <limits.h>

#define BIT(type) (UINT64_C(1) << (type))
#define HELLO_LEN (4 + 1 + GENERATION_LEN)
#define SIGNAL_MAX 64

/* Reason, or NULL when it was taken. */
typedef const char *take_fn(struct request *r, const unsigned char *data,
			    size_t len);

static const char no_memory[] = "out of memory in the guest";

static const char *keep(struct strings *s, const unsigned char *data,
			size_t len)
{
	if (s->cap - s->len <= len) {
		size_t cap = 2 * s->cap + len + 1024;
		char *more = realloc(s->data, cap);

		if (!more)
			return no_memory;
		s->data = more;
		s->cap = cap;
	}
	memcpy(s->data + s->len, data, len);
	s->len += len;
	s->data[s->len++] = '\0';
	s->count++;
	return NULL;
}

static const char *copy(char **to, const unsigned char *data, size_t len)
{
	*to = malloc(len + 1);
	if (!*to)
		return no_memory;
	memcpy(*to, data, len);
	(*to)[len] = '\0';
	return NULL;
}

static const char *take_arg(struct request *r, const unsigned char *data,
			    size_t len)
{
	return keep(&r->args, data, len);
}

static const char *take_env(struct request *r, const unsigned char *data,
			    size_t len)
{
	const unsigned char *equals = memchr(data, '=', len);

	if (!equals || equals == data)
		return "environment is not NAME=VALUE";
	return keep(&r->envs, data, len);
}

static const char *take_cwd(struct request *r, const unsigned char *data,
			    size_t len)
{
	if (data[0] != '/')
		return "working directory is not an absolute path";
	return copy(&r->cwd, data, len);
}

static const char *take_user(struct request *r, const unsigned char *data,
			     size_t len)
{
	return copy(&r->user, data, len);
}

static const char *take_path(struct request *r, const unsigned char *data,
			     size_t len)
{
	return copy(&r->path, data, len);
}

static const char *take_timeout(struct request *r, const unsigned char *data,
				size_t len)
{
	(void)len;
	r->timeout = get_u64(data);
	return r->timeout ? NULL : "timeout is zero";
}

static const char *take_flags(struct request *r, const unsigned char *data,
			      size_t len)
{
	(void)len;
	r->flags = get_u32(data);
	return NULL;
}

static const char *take_id(struct request *r, const unsigned char *data,
			   size_t len)
{
	uint64_t id = 0;

	for (size_t i = 0; i < len; i++) {
		if (data[i] < '0' || data[i] > '9')
			return "id is not a number";
		id = id * 10 + (uint64_t)(data[i] - '0');
	}
	if (id == 0 || id > UINT32_MAX)
		return "id is out of range";
	r->id = (uint32_t)id;
	return NULL;
}

static const char *take_generation(struct request *r, const unsigned char *data,
				   size_t len)
{
	memcpy(r->generation, data, len);
	return NULL;
}

static const char *take_seed(struct request *r, const unsigned char *data,
			     size_t len)
{
	memcpy(r->seed, data, len);
	return NULL;
}

static const char *take_time(struct request *r, const unsigned char *data,
			     size_t len)
{
	(void)len;
	r->time = get_u64(data);
	return NULL;
}

static const char *take_hostname(struct request *r, const unsigned char *data,
				 size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = data[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			    (c >= '0' && c <= '9');

		if (!word && (i == 0 || !strchr("_.-", c)))
			return "not a host name";
	}
	memcpy(r->hostname, data, len);
	r->hostname[len] = '\0';
	return NULL;
}

static const char *take_winsize(struct request *r, const unsigned char *data,
				size_t len)
{
	(void)len;
	r->rows = get_u16(data);
	r->columns = get_u16(data + 2);
	return NULL;
}

static const char *take_signal(struct request *r, const unsigned char *data,
			       size_t len)
{
	(void)len;
	r->signal = get_u32(data);
	if (r->signal == 0 || r->signal > SIGNAL_MAX)
		return "no such signal";
	return NULL;
}

static const struct option {
	enum frame_type type;
	bool text, repeats;
	size_t min, max;
	take_fn *take;
} options[] = {
	{FRAME_ARG, true, true, 0, FRAME_MAX, take_arg},
	{FRAME_ENV, true, true, 2, FRAME_MAX, take_env},
	{FRAME_CWD, true, false, 1, PATH_MAX - 1, take_cwd},
	{FRAME_USER, true, false, 1, 255, take_user},
	{FRAME_TIMEOUT, false, false, 8, 8, take_timeout},
	{FRAME_FLAGS, false, false, 4, 4, take_flags},
	{FRAME_ID, true, false, 1, 10, take_id},
	{FRAME_PATH, true, false, 1, PATH_MAX - 1, take_path},
	{FRAME_GENERATION, false, false, GENERATION_LEN, GENERATION_LEN,
	 take_generation},
	{FRAME_SEED, false, false, SEED_LEN, SEED_LEN, take_seed},
	{FRAME_TIME, false, false, 8, 8, take_time},
	{FRAME_HOSTNAME, true, false, 1, 63, take_hostname},
	{FRAME_WINSIZE, false, false, 4, 4, take_winsize},
	{FRAME_SIGNAL, false, false, 4, 4, take_signal},
};

#define IDENTITY_FRAMES                                                        \
	(BIT(FRAME_GENERATION) | BIT(FRAME_SEED) | BIT(FRAME_TIME) |           \
	 BIT(FRAME_HOSTNAME))
#define EXEC_FRAMES                                                            \
	(BIT(FRAME_ARG) | BIT(FRAME_ENV) | BIT(FRAME_CWD) | BIT(FRAME_USER) |  \
	 BIT(FRAME_TIMEOUT) | BIT(FRAME_FLAGS) | BIT(FRAME_WINSIZE))

static const struct {
	uint64_t needs, takes; /* takes: on top of what it needs */
	uint32_t flags;	       /* those that have a meaning */
} shapes[] = {
	[OP_IDENTITY] = {IDENTITY_FRAMES, 0, 0},
	[OP_PING] = {0, 0, 0},
	[OP_EXEC] = {0, EXEC_FRAMES,
		     EXEC_TTY | EXEC_DETACH | EXEC_NO_STDIN | EXEC_PROBE},
	[OP_LIST] = {0, 0, 0},
	[OP_LOGS] = {BIT(FRAME_ID), 0, 0},
	[OP_ATTACH] = {BIT(FRAME_ID), BIT(FRAME_WINSIZE), 0},
	[OP_KILL] = {BIT(FRAME_ID), BIT(FRAME_SIGNAL), 0},
	[OP_WAIT] = {BIT(FRAME_ID), 0, 0},
	[OP_GET] = {BIT(FRAME_PATH), 0, 0},
	[OP_PUT] = {BIT(FRAME_PATH) | BIT(FRAME_ARG), BIT(FRAME_FLAGS),
		    FILE_PARENTS | FILE_INTO},
	[OP_POWEROFF] = {0, 0, 0},
};

static const char *take_hello(struct request *r, const unsigned char *data,
			      size_t len)
{
	if (len != HELLO_LEN)
		return "greeting of the wrong length";
	if (get_u32(data) != PROTO_VERSION)
		return "another version of the protocol";
	if (data[4] == 0 || data[4] >= ARRAY_LEN(shapes))
		return "no such operation";
	r->op = (enum op)data[4];
	memcpy(r->hello_generation, data + 5, GENERATION_LEN);
	return NULL;
}

static const char *take_option(struct request *r, enum frame_type type,
			       const unsigned char *data, size_t len)
{
	const struct option *o = options;

	while (o < options + ARRAY_LEN(options) && o->type != type)
		o++;
	if (o == options + ARRAY_LEN(options) ||
	    !((shapes[r->op].needs | shapes[r->op].takes) & BIT(type)))
		return "a frame that this operation does not take";
	if (!o->repeats && (r->seen & BIT(type)))
		return "an option given twice";
	if (len < o->min || len > o->max)
		return "an option of the wrong length";
	if (o->text && memchr(data, '\0', len))
		return "text with a NUL inside";
	r->wire += FRAME_HEAD + len;
	if (r->wire > REQUEST_MAX)
		return "request is too large";
	r->seen |= BIT(type);
	return o->take(r, data, len);
}

/* Pointers to the strings, made when these do not move any more. */
static char **vector(const struct strings *s)
{
	char **v = calloc(s->count + 1, sizeof(*v));
	char *at = s->data;

	for (size_t i = 0; v && i < s->count; i++) {
		v[i] = at;
		at += strlen(at) + 1;
	}
	return v;
}

static const char *complete(struct request *r)
{
	if (shapes[r->op].needs & ~r->seen)
		return "an option is missing";
	if (r->flags & ~shapes[r->op].flags)
		return "unknown flags";
	if (r->op == OP_PUT && r->args.count != 1)
		return "more than one name";
	r->argv = vector(&r->args);
	r->env = vector(&r->envs);
	if (!r->argv || !r->env)
		return no_memory;
	if (r->op != OP_EXEC)
		return NULL;
	if (r->flags & EXEC_PROBE)
		return r->args.count ? "a probe with a command" : NULL;
	return r->args.count ? NULL : "no command";
}

enum request_state request_feed(struct request *r, const unsigned char *data,
				size_t len, size_t *used)
{
	*used = 0;
	while (!r->why && len - *used >= FRAME_HEAD) {
		const unsigned char *at = data + *used;
		enum frame_type type;
		size_t size;

		if (frame_parse_head(at, &type, &size) < 0) {
			r->why = "not a frame";
			break;
		}
		if (len - *used - FRAME_HEAD < size)
			return REQUEST_MORE;
		*used += FRAME_HEAD + size;
		at += FRAME_HEAD;
		if (!r->op && type != FRAME_HELLO)
			r->why = "no greeting";
		else if (!r->op)
			r->why = take_hello(r, at, size);
		else if (type != FRAME_GO)
			r->why = take_option(r, type, at, size);
		else if (!(r->why = size ? "a full FRAME_GO" : complete(r)))
			return REQUEST_DONE;
	}
	return r->why ? REQUEST_BAD : REQUEST_MORE;
}

void request_free(struct request *r)
{
	free(r->args.data);
	free(r->envs.data);
	free(r->argv);
	free(r->env);
	free(r->cwd);
	free(r->user);
	free(r->path);
	memset(r, 0, sizeof(*r));
}

int live_feed(struct live *out, const unsigned char *data, size_t len,
	      size_t *used)
{
	const unsigned char *at = data + FRAME_HEAD;

	if (len < FRAME_HEAD)
		return 0;
	if (frame_parse_head(data, &out->type, &out->len) < 0)
		return -1;
	if (len - FRAME_HEAD < out->len)
		return 0;
	*used = FRAME_HEAD + out->len;
	out->data = at;
	if (out->type == FRAME_STDIN)
		return 1;
	if (out->len != 4)
		return -1;
	out->rows = get_u16(at);
	out->columns = get_u16(at + 2);
	out->signal = get_u32(at);
	if (out->type == FRAME_WINSIZE)
		return 1;
	return out->type == FRAME_SIGNAL && out->signal > 0 &&
			       out->signal <= SIGNAL_MAX
		       ? 1
		       : -1;
}
