/*
 * test-msg - messages: one line, one write, no byte that drives a terminal;
 * and the exit code when stdout is broken.
 */
#include "tap.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

static void test_printable(void)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"", ""},
		{"plain text ~", "plain text ~"},
		{"a\nb\rc\td", "a?b?c?d"},
		{"\x01\x1f\x7f", "???"},
		{"\x1b[31mred\x1b]0;title\x07", "?[31mred?]0;title?"},
		{"h\xc3\xa9", "h\xc3\xa9"},
		{"\xe2\x82\xac \xf0\x9f\x90\xa7",
		 "\xe2\x82\xac \xf0\x9f\x90\xa7"},
		{"\x80", "?"},
		{"\xff\xfe", "??"},
		{"\xc3", "?"},
		{"\xc3(", "?("},
		{"\xe2\x82", "??"},
		{"\xf0\x9f\x90", "???"},
		/* C1 control codes: terminals obey them */
		{"\xc2\x9b"
		 "31m",
		 "??31m"},
		{"\xc2\x85", "??"},
		{"\xc2\xa0", "\xc2\xa0"},
		/* overlong, surrogates, beyond Unicode: not UTF-8 */
		{"\xc0\x8a", "??"},
		{"\xc1\xbf", "??"},
		{"\xe0\x80\x8a", "???"},
		{"\xe0\x82\x9b", "???"},
		{"\xf0\x80\x80\x8a", "????"},
		{"\xed\xa0\x80", "???"},
		{"\xf4\x90\x80\x80", "????"},
		{"\xf5\x80\x80\x80", "????"},
	};
	char out[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		printable(out, sizeof(out), rows[i].in);
		is_str(out, rows[i].out, rows[i].out);
	}
}

/* Whatever the size of the buffer: terminated, inside it, no cut character. */
static void test_printable_sizes(void)
{
	static const char text[] = "ab\xe2\x82\xac\xf0\x9f\x90\xa7zz\nend";
	int wrong = 0;

	for (size_t size = 1; size <= sizeof(text) + 8; size++) {
		char out[64];
		size_t len;

		memset(out, '#', sizeof(out));
		printable(out, size, text);
		len = strnlen(out, sizeof(out));
		wrong += len >= size || out[size] != '#';
		/* the last character is whole */
		wrong += len > 0 && (unsigned char)out[len - 1] >= 0xc0;
	}
	is_num(wrong, 0, "buffers of every size");
}

/* A datagram per write(2). */
static void test_one_write(void)
{
	int pair[2], saved = dup(STDERR_FILENO);
	char got[4096], longer[3000];
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    dup2(pair[1], STDERR_FILENO) < 0)
		exit(99);
	progname = "prog";
	is_num(fail(EX_NOINPUT, "no such '%s'", "x\ny\x1b"), -EX_NOINPUT,
	       "fail() returns the negative code");
	n = recv(pair[0], got, sizeof(got) - 1, 0);
	got[n > 0 ? n : 0] = '\0';
	is_str(got, "prog: no such 'x?y?'\n", "one write, one clean line");
	ok(recv(pair[0], got, sizeof(got), 0) < 0, "and only one");

	errno = ENOSPC;
	is_num(fail_errno(EX_IOERR, "cannot write '%s'", "f"), -EX_IOERR,
	       "fail_errno() returns the negative code");
	ok(errno == ENOSPC, "and keeps errno");
	n = recv(pair[0], got, sizeof(got) - 1, 0);
	got[n > 0 ? n : 0] = '\0';
	is_str(got, "prog: cannot write 'f': No space left on device\n",
	       "with the reason behind it");

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	warn_line("%s", longer);
	n = recv(pair[0], got, sizeof(got), 0);
	ok(n > 500 && got[n - 1] == '\n' &&
		   memchr(got, '\n', (size_t)n) == got + n - 1,
	   "a long one is cut, and still one line");
	ok(recv(pair[0], got, sizeof(got), 0) < 0, "in one write");

	errno = ENOENT;
	fail_errno(EX_IOERR, "%s", longer);
	n = recv(pair[0], got, sizeof(got) - 1, 0);
	ok(n > 500 && got[n - 1] == '\n', "a long one with errno, too");
	dup2(saved, STDERR_FILENO);
}

enum where { FULL, CLOSED_PIPE, CLOSED, FINE };

/* The exit code and message of a process that ends with finish(code) and whose
 * stdout is this. */
static int end_with(enum where where, int code)
{
	int status, ends[2];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_IGN);
		if (where == FULL)
			dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO);
		if (where == FINE)
			dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
		if (where == CLOSED_PIPE && pipe(ends) == 0) {
			close(ends[0]);
			dup2(ends[1], STDOUT_FILENO);
		}
		if (where == CLOSED)
			close(STDOUT_FILENO);
		printf("data\n");
		_exit(finish(code));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

static void test_finish(void)
{
	progname = "prog";
	is_num(end_with(FINE, 0), 0, "good, written");
	is_num(end_with(FINE, -EX_NOINPUT), EX_NOINPUT, "a failure is kept");
	is_num(end_with(FINE, 3), 3, "a code is kept");
	ok(told_nothing(), "and nothing is told");
	is_num(end_with(FULL, 0), EX_IOERR, "full disk: 74");
	ok(told("prog: cannot write to stdout: No space left on device"),
	   "told in one line");
	is_num(end_with(FULL, -EX_NOINPUT), EX_NOINPUT,
	       "full disk after a failure: the failure's code");
	ok(told("No space left"), "told");
	is_num(end_with(CLOSED_PIPE, 0), EX_IOERR, "closed pipe: 74");
	ok(told_nothing(), "quiet");
	is_num(end_with(CLOSED, 0), EX_IOERR, "no stdout at all: 74");
	ok(told("cannot write to stdout"), "told");
}

int main(void)
{
	test_printable();
	test_printable_sizes();
	test_one_write();
	catch_stderr();
	test_finish();
	return done();
}
