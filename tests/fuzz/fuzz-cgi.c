/*
 * fuzz-cgi.c - a request as a web server hands it over: what the parser makes
 * of it, and whether its parent believes just what it should.
 *
 * The input is two bytes, how long the head is, the head ("NAME\0VALUE\0..."),
 * and the body.  It is also taken for a canonical request, as somebody who has
 * taken the parser over would send.
 */
#include "cgi.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_always)
{
	if (!true_always)
		abort();
}

static bool known(const char *creds)
{
	return *creds == 'x';
}

static int scgi(const uint8_t *data, size_t size)
{
	size_t len = (size_t)(data[0] | data[1] << 8);
	int in = memfd_create("in", MFD_CLOEXEC);
	char length[64], head[64];
	int n, m;

	data += 2;
	size -= 2;
	if (len > size)
		len = size;
	n = snprintf(length, sizeof(length), "CONTENT_LENGTH%c%zu", 0,
		     size - len) +
	    1;
	m = snprintf(head, sizeof(head), "%zu:", len + (size_t)n);
	require(in >= 0 && write_full(in, head, (size_t)m) == 0 &&
		write_full(in, length, (size_t)n) == 0 &&
		write_full(in, data, len) == 0 && write_full(in, ",", 1) == 0 &&
		write_full(in, data + len, size - len) == 0 &&
		lseek(in, 0, SEEK_SET) == 0);
	return in;
}

static char *contents(int fd, size_t *len)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)end + 1);

	require(end >= 0 && text && lseek(fd, 0, SEEK_SET) == 0);
	require(read_full(fd, text, (size_t)end) == end);
	text[end] = '\0';
	*len = (size_t)end;
	return text;
}

static void check(const struct call *c)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct record *r = &c->records[i];
		const struct field_rule *rule = field_rule(r->field);

		if (rule->kind == KIND_NAME && r->len > 0)
			require(strnlen(r->data, r->len) == r->len &&
				r->data[0] != '.' && r->data[0] != '-' &&
				!memchr(r->data, '/', r->len));
		if (rule->kind == KIND_TRUTH)
			require(r->len == 1);
	}
}

static void parse(const uint8_t *data, size_t size)
{
	struct parser p = {
		.in = scgi(data, size),
		.out = memfd_create("out", MFD_CLOEXEC),
		.scgi = true,
		.open = size % 2,
		.known = known,
	};
	struct call c = {0};
	int status = 0;
	const char *why;
	size_t len;

	require(p.out >= 0);
	cgi_parse(&p);
	c.buffer = contents(p.out, &len);
	why = request_check(&c, c.buffer, len, &status);
	/* What the parser sends, its parent takes. */
	require(!why || status >= 400);
	check(&c);
	call_free(&c);
	close(p.in);
	close(p.out);
}

static void believe(const uint8_t *data, size_t size)
{
	struct call c = {.buffer = malloc(size + 1)};
	int status = 0;

	require(c.buffer != NULL);
	memcpy(c.buffer, data, size);
	c.buffer[size] = '\0';
	request_check(&c, c.buffer, size, &status);
	check(&c);
	call_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 60000)
		return 0;
	parse(data, size);
	believe(data, size);
	return 0;
}
