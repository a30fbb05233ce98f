/*
 * test-qmp - QMP lines: cut, joined, hostile; and commands against a peer that
 * answers by a script.
 */
#include "tap.h"

#include "qmp.h"
#include "unixsock.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define HELLO "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n"
#define OK_LINE "{\"return\": {}}\r\n"

static struct qmp q;
static int dir;

static void fill(const char *text, size_t len)
{
	memcpy(q.buf, text, len);
	q.len = len;
}

static void test_lines(void)
{
	static const struct {
		const char *line;
		bool good;
	} rows[] = {
		{"{}\n", true},
		{"{\"return\": {}}\r\n", true},
		{"{\"a\": [1, 2, {\"b\": null}]}\n", true},
		{"\n", false},
		{"[]\n", false},
		{"1\n", false},
		{"null\n", false},
		{"\"text\"\n", false},
		{"{\n", false},
		{"{}}\n", false},
		{"{} {}\n", false},
		{"{\"a\": 1, \"a\": 2}\n", false},
		{"{'a': 1}\n", false},
		{"{\"a\": 1e999}\n", false},
		{"{\"a\": \"\xff\"}\n", false},
		{"{\"a\": 99999999999999999999999}\n", false},
		{"garbage\n", false},
	};
	int bad;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *object;

		fill(rows[i].line, strlen(rows[i].line));
		object = qmp_next(&q, &bad);
		ok((object != NULL) == rows[i].good &&
			   (bad != 0) != rows[i].good && q.len == 0,
		   "line: %s", rows[i].line);
		json_decref(object);
	}
	fill("{\"a\": 1}\0{}\n", 12);
	ok(!qmp_next(&q, &bad) && bad, "a NUL in a line");
}

static void test_pieces(void)
{
	static const char text[] = "{\"n\": 1}\n{\"n\": 2}\n{\"n\"";
	json_t *object;
	int bad;

	fill(text, strlen(text));
	object = qmp_next(&q, &bad);
	is_num(json_integer_value(json_object_get(object, "n")), 1, "first");
	json_decref(object);
	object = qmp_next(&q, &bad);
	is_num(json_integer_value(json_object_get(object, "n")), 2, "second");
	json_decref(object);
	ok(!qmp_next(&q, &bad) && !bad && q.len == 4, "the third is not whole");

	memset(q.buf, ' ', sizeof(q.buf));
	q.len = sizeof(q.buf);
	ok(!qmp_next(&q, &bad) && bad, "a line without an end");
	memset(q.buf, '[', sizeof(q.buf));
	q.buf[sizeof(q.buf) - 1] = '\n';
	q.len = sizeof(q.buf);
	ok(!qmp_next(&q, &bad) && bad, "65535 brackets");
	for (size_t i = 0; i + 6 < sizeof(q.buf); i += 5)
		memcpy(q.buf + i, "{\"a\":", 5);
	q.buf[sizeof(q.buf) - 1] = '\n';
	q.len = sizeof(q.buf);
	ok(!qmp_next(&q, &bad) && bad, "13107 nested objects");
}

/* A peer on dir/qmp.sock that sends the first text when somebody connects,
 * and the next for each line that it gets; `slow`: byte by byte. */
static pid_t serve(const char *const *texts, bool slow)
{
	int listener;
	pid_t pid;

	fflush(stdout);
	listener = unix_listen(dir, "qmp.sock", SOCK_STREAM);
	if (listener < 0)
		exit(99);
	pid = fork();
	if (pid == 0) {
		int fd = accept(listener, NULL, NULL);
		char byte;

		for (; *texts; texts++) {
			if (slow)
				for (const char *c = *texts; *c; c++) {
					(void)!write(fd, c, 1);
					usleep(500);
				}
			else
				(void)!write(fd, *texts, strlen(*texts));
			while (texts[1] && read(fd, &byte, 1) == 1 &&
			       byte != '\n')
				;
		}
		if (slow)
			pause();
		_exit(0);
	}
	close(listener);
	return pid;
}

static void end(pid_t pid)
{
	qmp_close(&q);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_talk(void)
{
	static const char *const talk[] = {
		HELLO,
		"{\"event\": \"RESUME\"}\r\n" OK_LINE,
		"{\"event\": \"STOP\"}\r\n{\"return\": {\"n\": 7}}\r\n",
		"{\"error\": {\"class\": \"X\", \"desc\": \"no\\nway\"}}\r\n",
		"{\"error\": {}}\r\n",
		OK_LINE,
		NULL,
	};
	struct stat st;
	json_t *result = NULL;
	pid_t pid = serve(talk, true);

	fstatat(dir, "qmp.sock", &st, 0);
	ok(S_ISSOCK(st.st_mode) && (st.st_mode & 0777) == 0600,
	   "a private socket");
	is_num(qmp_open(&q, dir, "qmp.sock", 5000), 0,
	       "open, byte by byte, an event in between");
	is_num(qmp_execute(&q, "query", NULL, &result, 5000), 0, "a command");
	is_num(json_integer_value(json_object_get(result, "n")), 7,
	       "with its result");
	json_decref(result);
	ok(qmp_execute(&q, "bad", NULL, NULL, 5000) < 0 && errno == EREMOTEIO,
	   "a refusal");
	is_str(q.buf, "no?way", "in QEMU's words, printable");
	ok(qmp_execute(&q, "bad", NULL, NULL, 5000) < 0 && errno == EREMOTEIO,
	   "a refusal without words");
	is_num(qmp_execute(&q, "good", json_pack("{s:i}", "a", 1), NULL, 5000),
	       0, "and on");
	end(pid);
}

/* Peers that are no QEMU: an error, in time, never a hang. */
static void test_bad_peers(void)
{
	static const struct {
		const char *what;
		const char *texts[4];
		int error;
	} rows[] = {
		{"closes at once", {"", NULL}, ECONNRESET},
		{"is no QEMU", {"{\"hello\": 1}\n", NULL}, EPROTO},
		{"sends garbage", {"SSH-2.0-x\n", NULL}, EPROTO},
		{"closes after its greeting", {HELLO, NULL}, 0},
		{"refuses",
		 {HELLO, "{\"error\": {\"desc\": \"x\"}}\n", NULL},
		 EREMOTEIO},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid = serve(rows[i].texts, false);
		int r;

		errno = 0;
		r = qmp_open(&q, dir, "qmp.sock", 3000);
		ok(r < 0 && q.fd < 0 && errno &&
			   (!rows[i].error || errno == rows[i].error),
		   "a peer that %s (%s)", rows[i].what, strerror(errno));
		end(pid);
	}
}

static void test_times(void)
{
	static const char *const silent[] = {"", "", NULL};
	static const char *const mute[] = {HELLO, OK_LINE, "", "", NULL};
	static char events[200 * 24 + 1];
	static const char *const chatty[] = {HELLO, OK_LINE, events, "", NULL};
	uint64_t begin = now_ms();
	pid_t pid = serve(silent, false);

	ok(qmp_open(&q, dir, "qmp.sock", 300) < 0 && errno == ETIMEDOUT &&
		   now_ms() - begin < 2000,
	   "no greeting in time");
	end(pid);
	pid = serve(mute, false);
	is_num(qmp_open(&q, dir, "qmp.sock", 3000), 0, "a greeting");
	begin = now_ms();
	ok(qmp_execute(&q, "stop", NULL, NULL, 300) < 0 && errno == ETIMEDOUT &&
		   now_ms() - begin >= 300 && now_ms() - begin < 2000,
	   "no answer in time");
	end(pid);
	for (int i = 0; i < 200; i++)
		memcpy(events + i * 21, "{\"event\": \"RESUME\"}\r\n", 21);
	pid = serve(chatty, false);
	is_num(qmp_open(&q, dir, "qmp.sock", 3000), 0, "a greeting");
	begin = now_ms();
	ok(qmp_execute(&q, "stop", NULL, NULL, 300) < 0 && errno == ETIMEDOUT &&
		   now_ms() - begin < 2000,
	   "events are no answer");
	end(pid);
	unlinkat(dir, "qmp.sock", 0);
	ok(qmp_open(&q, dir, "qmp.sock", 300) < 0 && errno == ENOENT,
	   "no socket");
}

/* sun_path holds 108 bytes; a state directory may be deeper. */
static void test_long_path(void)
{
	char part[101];
	int at = dir, fd, peer;

	memset(part, 'p', 100);
	part[100] = '\0';
	for (int i = 0; i < 5; i++) {
		mkdirat(at, part, 0700);
		at = openat(at, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	fd = unix_listen(at, "qmp.sock", SOCK_STREAM);
	ok(fd >= 0, "listen 500 bytes deep");
	peer = unix_connect(at, "qmp.sock", SOCK_STREAM);
	ok(peer >= 0, "connect there");
	close(fd);
	close(peer);
	ok(unix_connect(at, "qmp.sock", SOCK_STREAM) < 0 &&
		   errno == ECONNREFUSED,
	   "nobody listens any more");
	fd = unix_listen(at, "qmp.sock", SOCK_STREAM);
	ok(fd >= 0, "a stale socket is replaced");
	close(fd);
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	catch_stderr();
	dir = tap_dir();
	test_lines();
	test_pieces();
	test_talk();
	test_bad_peers();
	test_times();
	test_long_path();
	return done();
}
