/*
 * test-frame - frames of the agent's protocol: what is one, what is not.
 */
#include "tap.h"

#include "proto.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct frame f;

static void test_integers(void)
{
	unsigned char b[8];

	put_u16(b, 0x1234);
	ok(b[0] == 0x34 && b[1] == 0x12, "u16 is little-endian");
	is_num(get_u16(b), 0x1234, "and back");
	put_u32(b, 0xfedcba98);
	ok(b[0] == 0x98 && b[3] == 0xfe, "u32 is little-endian");
	is_num(get_u32(b), 0xfedcba98, "and back");
	put_u64(b, 0xfedcba9876543210ULL);
	ok(b[0] == 0x10 && b[7] == 0xfe, "u64 is little-endian");
	ok(get_u64(b) == 0xfedcba9876543210ULL, "and back");
	memset(b, 0xff, sizeof(b));
	ok(get_u64(b) == UINT64_MAX && get_u32(b) == UINT32_MAX &&
		   get_u16(b) == UINT16_MAX,
	   "all ones");
}

static void test_heads(void)
{
	static const struct {
		const char *what;
		unsigned char head[FRAME_HEAD];
		int result;
		size_t len;
	} rows[] = {
		{"empty", {1, 0, 0, 0, 0, 0, 0, 0}, 0, 0},
		{"one byte", {64, 0, 0, 0, 1, 0, 0, 0}, 0, 1},
		{"the most", {65, 0, 0, 0, 0, 0, 2, 0}, 0, FRAME_MAX},
		{"one more than the most", {65, 0, 0, 0, 1, 0, 2, 0}, -1, 0},
		{"4 GiB", {65, 0, 0, 0, 255, 255, 255, 255}, -1, 0},
		{"negative", {65, 0, 0, 0, 0, 0, 0, 128}, -1, 0},
		{"type 0", {0, 0, 0, 0, 0, 0, 0, 0}, -1, 0},
		{"byte 1 not zero", {1, 1, 0, 0, 0, 0, 0, 0}, -1, 0},
		{"byte 2 not zero", {1, 0, 1, 0, 0, 0, 0, 0}, -1, 0},
		{"byte 3 not zero", {1, 0, 0, 255, 0, 0, 0, 0}, -1, 0},
	};
	unsigned char head[FRAME_HEAD];
	enum frame_type type;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int r = frame_parse_head(rows[i].head, &type, &len);

		ok(r == rows[i].result && (r < 0 || len == rows[i].len),
		   "head: %s", rows[i].what);
	}
	frame_head(head, FRAME_STDERR, 0x1ff00);
	ok(frame_parse_head(head, &type, &len) == 0 && type == FRAME_STDERR &&
		   len == 0x1ff00,
	   "made and parsed");
}

/* What frame_recv() says of these bytes, followed by end of file. */
static int recv_bytes(const void *bytes, size_t len)
{
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 ||
	    write_full(pair[0], bytes, len) < 0)
		exit(99);
	close(pair[0]);
	errno = 0;
	r = frame_recv(pair[1], &f);
	close(pair[1]);
	return r;
}

static void test_cut(void)
{
	static const unsigned char whole[] = {65, 0, 0,	  0,   3,  0,
					      0,  0, 'a', 'b', 'c'};
	unsigned char bad[FRAME_HEAD] = {65, 9, 0, 0, 0, 0, 0, 0};

	is_num(recv_bytes(whole, 0), 0, "nothing is a clean end");
	for (size_t len = 1; len < sizeof(whole); len++)
		ok(recv_bytes(whole, len) == -1 && errno == EPROTO,
		   "cut after %zu bytes", len);
	is_num(recv_bytes(whole, sizeof(whole)), 1, "whole");
	ok(f.len == 3 && memcmp(f.data, "abc\0", 4) == 0,
	   "with a NUL behind the payload");
	ok(recv_bytes(bad, sizeof(bad)) == -1 && errno == EPROTO, "a bad head");
}

static void test_text(void)
{
	static const unsigned char nul[] = {16, 0, 0,	0, 3,  0,
					    0,	0, 'a', 0, 'c'};
	static const unsigned char end[] = {16, 0, 0, 0, 2, 0, 0, 0, 'a', 0};
	static const unsigned char none[] = {16, 0, 0, 0, 0, 0, 0, 0};
	static const unsigned char good[] = {16, 0, 0, 0, 2, 0, 0, 0, 'h', 'i'};

	recv_bytes(nul, sizeof(nul));
	ok(!frame_text(&f), "a NUL inside is no text");
	recv_bytes(end, sizeof(end));
	ok(!frame_text(&f), "a NUL at the end is none either");
	recv_bytes(none, sizeof(none));
	is_str(frame_text(&f), "", "empty text");
	recv_bytes(good, sizeof(good));
	is_str(frame_text(&f), "hi", "text");
}

/* A big one through a socket that takes little at a time. */
static void test_round_trip(void)
{
	static unsigned char data[FRAME_MAX + 1];
	int pair[2], small = 4096, status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i ^ i >> 8);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(99);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	pid = fork();
	if (pid == 0) {
		bool good = frame_send(pair[0], FRAME_STDIN, data, FRAME_MAX) ==
				    0 &&
			    frame_send_text(pair[0], FRAME_ARG, "word") == 0 &&
			    frame_send_u32(pair[0], FRAME_SIGNAL, 15) == 0 &&
			    frame_send_u64(pair[0], FRAME_TIMEOUT, 1500) == 0 &&
			    frame_send(pair[0], FRAME_GO, NULL, 0) == 0;

		_exit(!good);
	}
	close(pair[0]);
	ok(frame_recv(pair[1], &f) == 1 && f.type == FRAME_STDIN &&
		   f.len == FRAME_MAX && memcmp(f.data, data, FRAME_MAX) == 0,
	   "the largest frame");
	ok(frame_recv(pair[1], &f) == 1 && f.type == FRAME_ARG &&
		   strcmp(frame_text(&f), "word") == 0,
	   "text");
	ok(frame_recv(pair[1], &f) == 1 && f.len == 4 && get_u32(f.data) == 15,
	   "u32");
	ok(frame_recv(pair[1], &f) == 1 && f.len == 8 &&
		   get_u64(f.data) == 1500,
	   "u64");
	ok(frame_recv(pair[1], &f) == 1 && f.type == FRAME_GO && f.len == 0,
	   "empty");
	is_num(frame_recv(pair[1], &f), 0, "clean end");
	waitpid(pid, &status, 0);
	is_num(status, 0, "all was sent");
	close(pair[1]);
}

static void test_refusals(void)
{
	static unsigned char data[FRAME_MAX + 1];
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		exit(99);
	ok(frame_send(pair[0], FRAME_STDIN, data, sizeof(data)) < 0 &&
		   errno == EMSGSIZE,
	   "too large a frame is not sent");
	close(pair[1]);
	/* Dies here when it raises SIGPIPE. */
	ok(frame_send(pair[0], FRAME_STDIN, data, 10) < 0 && errno == EPIPE,
	   "a peer that went away is an error, not a signal");
	close(pair[0]);
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	test_integers();
	test_heads();
	test_cut();
	test_text();
	test_round_trip();
	test_refusals();
	return done();
}
