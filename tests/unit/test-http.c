/*
 * test-http - requests to a server that answers by a script, with all that is
 * odd about the one in Cloud Hypervisor, and with what no server should do.
 */
#include "http-play.h"

#include "http.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define REQUEST_MAX 8192

static struct http_reply reply;

/* One answer of the server: its text, how it comes, and what is expected. */
struct answer {
	const char *what;
	const char *text;
	int status;	  /* 0: http_request() fails with `error` */
	const char *body; /* or errno's name in `error` */
	int error;
};

enum pace { AT_ONCE, BYTE_BY_BYTE };
enum then { STAYS, CLOSES };

static void answer(int fd, const char *text, enum pace pace)
{
	if (pace == AT_ONCE) {
		(void)!write(fd, text, strlen(text));
		return;
	}
	for (; *text; text++) {
		(void)!write(fd, text, 1);
		usleep(200);
	}
}

/* A server of `texts`, one for each request. */
static pid_t serve(const char *const texts[], enum pace pace, enum then then,
		   int *client)
{
	static char request[REQUEST_MAX];
	int ends[2];
	pid_t pid;

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		exit(99);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		for (; *texts; texts++) {
			if (!read_request(ends[1], request, sizeof(request)))
				_exit(1);
			answer(ends[1], *texts, pace);
		}
		if (then == STAYS)
			pause();
		_exit(0);
	}
	close(ends[1]);
	*client = ends[0];
	return pid;
}

static void end(pid_t pid, int client)
{
	close(client);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ---- what is sent ------------------------------------------------------- */

static void test_format(void)
{
	char *text = http_format("GET", "/api/v1/vmm.ping", NULL);

	is_str(text, "GET /api/v1/vmm.ping HTTP/1.1\r\nHost: localhost\r\n\r\n",
	       "a request without a body has no length");
	free(text);
	text = http_format("PUT", "/api/v1/vm.create", "{\"a\":1}");
	is_str(text,
	       "PUT /api/v1/vm.create HTTP/1.1\r\nHost: localhost\r\n"
	       "Content-Type: application/json\r\nContent-Length: 7\r\n\r\n"
	       "{\"a\":1}",
	       "one with a body has its length");
	free(text);
}

/* The server says back what it was sent. */
static void test_sent_whole(void)
{
	int ends[2], status = -1;
	char *body = malloc(50001);
	pid_t pid;

	memset(body, 'x', 50000);
	body[50000] = '\0';
	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		exit(99);
	pid = fork();
	if (pid == 0) {
		static char got[60000];
		size_t len = 0;

		close(ends[0]);
		for (;;) {
			ssize_t n = read(ends[1], got + len, 1000);
			const char *stop;

			if (n <= 0)
				_exit(1);
			len += (size_t)n;
			stop = strstr(got, "\r\n\r\n");
			if (stop && len == (size_t)(stop + 4 - got) + 50000)
				break;
			usleep(100);
		}
		answer(ends[1], "HTTP/1.1 204 \r\n\r\n", AT_ONCE);
		/* Half a connection would be none: it must still be whole. */
		_exit(recv(ends[1], got, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN
			      ? 0
			      : 2);
	}
	close(ends[1]);
	is_num(http_request(ends[0], "PUT", "/x", body, &reply, 5000), 0,
	       "50000 bytes to a slow reader");
	waitpid(pid, &status, 0);
	is_num(WEXITSTATUS(status), 0,
	       "all of them, and the connection is not half closed");
	close(ends[0]);
	free(body);
}

/* ---- what comes back ---------------------------------------------------- */

#define JSON_HEAD                                                              \
	"Server: Cloud Hypervisor API\r\nConnection: keep-alive\r\n"           \
	"Content-Type: application/json\r\n"

static const struct answer good[] = {
	{"204 with an empty reason and no length",
	 "HTTP/1.1 204 \r\nServer: Cloud Hypervisor API\r\n"
	 "Connection: keep-alive\r\n\r\n",
	 204, "", 0},
	{"204 without the blank", "HTTP/1.1 204\r\n\r\n", 204, "", 0},
	{"204 with a length of 0", "HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n",
	 204, "", 0},
	{"200 of no bytes",
	 "HTTP/1.1 200 \r\n" JSON_HEAD "Content-Length: 0\r\n\r\n", 200, "", 0},
	{"a body",
	 "HTTP/1.1 200 \r\n" JSON_HEAD "Content-Length: 14\r\n\r\n"
	 "{\"pid\": 123}\r\n",
	 200, "{\"pid\": 123}\r\n", 0},
	{"a name of the length in small letters, no blank",
	 "HTTP/1.1 200 OK\r\ncontent-length:2\r\n\r\n{}", 200, "{}", 0},
	{"a refusal as an array",
	 "HTTP/1.1 500 \r\n" JSON_HEAD "Content-Length: 34\r\n\r\n"
	 "[\"The VM could not boot\",\"locked\"]",
	 500, "[\"The VM could not boot\",\"locked\"]", 0},
	{"400 of no bytes",
	 "HTTP/1.1 400 \r\n" JSON_HEAD "Content-Length: 0\r\n\r\n", 400, "", 0},
	{"an answer of HTTP/1.0",
	 "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, "x", 0},
	{"a value with blanks around it",
	 "HTTP/1.1 200 OK\r\nContent-Length: \t 1 \r\n\r\nx", 200, "x", 0},
	{"a header whose name only begins like it",
	 "HTTP/1.1 200 OK\r\nContent-Length-X: 7\r\nContent-Length: "
	 "1\r\n\r\nx",
	 200, "x", 0},
};

static const struct answer bad[] = {
	{"no HTTP", "SSH-2.0-x\r\n\r\n", 0, "", EPROTO},
	{"another HTTP", "HTTP/2 200\r\nContent-Length: 0\r\n\r\n", 0, "",
	 EPROTO},
	{"no status", "HTTP/1.1 \r\nContent-Length: 0\r\n\r\n", 0, "", EPROTO},
	{"a status of two digits", "HTTP/1.1 20 \r\nContent-Length: 0\r\n\r\n",
	 0, "", EPROTO},
	{"a status of four digits",
	 "HTTP/1.1 2000\r\nContent-Length: 0\r\n\r\n", 0, "", EPROTO},
	{"a status that is none", "HTTP/1.1 099 \r\nContent-Length: 0\r\n\r\n",
	 0, "", EPROTO},
	{"no length", "HTTP/1.1 200 \r\n\r\nbody", 0, "", EPROTO},
	{"a length below 0", "HTTP/1.1 200 \r\nContent-Length: -1\r\n\r\n", 0,
	 "", EPROTO},
	{"a length that is no number",
	 "HTTP/1.1 200 \r\nContent-Length: 1x\r\n\r\nx", 0, "", EPROTO},
	{"an empty length", "HTTP/1.1 200 \r\nContent-Length:\r\n\r\n", 0, "",
	 EPROTO},
	{"two lengths",
	 "HTTP/1.1 200 \r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 0,
	 "", EPROTO},
	{"a length of more than all memory",
	 "HTTP/1.1 200 \r\nContent-Length: 99999999999999999999\r\n\r\n", 0, "",
	 EPROTO},
	{"a length over the limit",
	 "HTTP/1.1 200 \r\nContent-Length: 262145\r\n\r\n", 0, "", EPROTO},
	{"chunks",
	 "HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0, "",
	 EPROTO},
	{"bytes behind its end",
	 "HTTP/1.1 204 \r\n\r\nHTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", 0,
	 "", EPROTO},
	{"lines without a carriage return", "HTTP/1.1 204 \n\n", 0, "",
	 ETIMEDOUT},
	{"half a head", "HTTP/1.1 204 \r\nServer: x\r\n", 0, "", ETIMEDOUT},
	{"half a body", "HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\n1234", 0, "",
	 ETIMEDOUT},
	{"nothing", "", 0, "", ETIMEDOUT},
};

static void check(const struct answer *row, enum pace pace, enum then then)
{
	const char *const texts[] = {row->text, NULL};
	const char *how = pace == AT_ONCE ? "" : ", byte by byte";
	uint64_t begin = now_ms();
	int client, r;
	pid_t pid = serve(texts, pace, then, &client);

	errno = 0;
	r = http_request(client, "PUT", "/api/v1/vm.boot", NULL, &reply,
			 row->status ? 5000 : 300);
	if (row->status)
		ok(r == 0 && reply.status == row->status &&
			   strcmp(reply.body, row->body) == 0 &&
			   reply.len == strlen(row->body),
		   "%s%s", row->what, how);
	else
		ok(r == -1 && errno == row->error && now_ms() - begin < 2000,
		   "%s%s: %s", row->what, how, strerror(errno));
	end(pid, client);
}

static void test_answers(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		check(&good[i], AT_ONCE, STAYS);
		check(&good[i], BYTE_BY_BYTE, CLOSES);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		check(&bad[i], AT_ONCE, STAYS);
}

/* The same where the server closes: the reason is another one, and no wait. */
static void test_closed(void)
{
	static const char *const texts[] = {
		"", "HTTP/1.1 204 \r\nServ",
		"HTTP/1.1 200 \r\nContent-Length: 9\r\n\r\n1234"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct answer row = {"closed in the middle", texts[i], 0, "",
				     ECONNRESET};

		check(&row, AT_ONCE, CLOSES);
	}
}

static void test_many(void)
{
	static const char *const texts[] = {
		"HTTP/1.1 204 \r\n\r\n",
		"HTTP/1.1 200 \r\nContent-Length: 4\r\n\r\nping",
		"HTTP/1.1 500 \r\nContent-Length: 2\r\n\r\n[]",
		"HTTP/1.1 204 \r\n\r\n", NULL};
	static const int status[] = {204, 200, 500, 204};
	int client;
	pid_t pid = serve(texts, AT_ONCE, STAYS, &client);

	for (size_t i = 0; i < ARRAY_LEN(status); i++) {
		int r = http_request(client, "PUT", "/x", i % 2 ? "{}" : NULL,
				     &reply, 5000);

		ok(r == 0 && reply.status == status[i],
		   "request %zu of one connection", i + 1);
	}
	end(pid, client);
}

static void test_large(void)
{
	static char text[HTTP_BODY_MAX + HTTP_HEAD_MAX + 100];
	const char *const texts[] = {text, NULL};
	int client, n, r;
	pid_t pid;

	n = snprintf(text, sizeof(text),
		     "HTTP/1.1 200 \r\nContent-Length: %zu\r\n\r\n",
		     HTTP_BODY_MAX);
	memset(text + n, 'b', HTTP_BODY_MAX);
	pid = serve(texts, AT_ONCE, STAYS, &client);
	ok(http_request(client, "GET", "/x", NULL, &reply, 5000) == 0 &&
		   reply.len == HTTP_BODY_MAX &&
		   strspn(reply.body, "b") == HTTP_BODY_MAX,
	   "the largest body");
	end(pid, client);

	memset(text, '\0', sizeof(text));
	n = snprintf(text, sizeof(text), "HTTP/1.1 200 \r\nX: ");
	memset(text + n, 'h', 2 * HTTP_HEAD_MAX);
	pid = serve(texts, AT_ONCE, STAYS, &client);
	r = http_request(client, "GET", "/x", NULL, &reply, 5000);
	ok(r < 0 && errno == EPROTO, "a head without an end");
	end(pid, client);
}

/* The 11th connection: told so and closed, before anything was asked. */
static void test_full_server(void)
{
	static const char text[] =
		"HTTP/1.1 503 \r\nServer: Firecracker API\r\n"
		"Connection: close\r\nContent-Type: application/json\r\n"
		"Content-Length: 40\r\n\r\n"
		"{ \"error\": \"Too many open connections\" }";
	int ends[2];
	char why[100];

	for (int asked = 0; asked < 2; asked++) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
			exit(99);
		answer(ends[1], text, AT_ONCE);
		if (!asked)
			close(ends[1]);
		ok(http_request(ends[0], "GET", "/x", NULL, &reply, 1000) ==
				   0 &&
			   reply.status == 503,
		   "503, %s", asked ? "still open" : "closed already");
		http_reason(&reply, why, sizeof(why));
		is_str(why, "Too many open connections", "in its words");
		close(ends[0]);
		if (asked)
			close(ends[1]);
	}
}

static void test_stuck(void)
{
	static char body[4 << 20];
	uint64_t begin = now_ms();
	int ends[2], r;

	memset(body, 'x', sizeof(body) - 1);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
		exit(99);
	r = http_request(ends[0], "PUT", "/x", body, &reply, 300);
	ok(r < 0 && errno == ETIMEDOUT && now_ms() - begin < 2000,
	   "a server that reads nothing");
	close(ends[0]);
	close(ends[1]);
}

/* ---- in words ----------------------------------------------------------- */

static void test_reason(void)
{
	static const struct {
		const char *body, *why;
	} rows[] = {
		{"[\"The VM could not boot\",\"Error locking disk images: "
		 "Another instance likely holds a lock\"]",
		 "The VM could not boot: Error locking disk images: Another "
		 "instance likely holds a lock"},
		{"[\"one\"]", "one"},
		{"[]", "status 500"},
		{"[1, null, \"two\", {}]", "two"},
		{"{\"error\": \"short\"}", "short"},
		{"{\"error\": 1}", "{\"error\": 1}"},
		{"{ \"error\": \"Invalid method.\nAll previous unanswered "
		 "requests will be dropped.\" }",
		 "{ \"error\": \"Invalid method."},
		{"The VM is not created", "The VM is not created"},
		{"", "status 500"},
		{"\n", "status 500"},
		{"[\"\x1b[31mred\", \"a\\u001b[0m\\nb\"]", "[\"?[31mred\", "
							   "\"a\\u001b[0m\\nb"
							   "\"]"},
		{"[\"a\\u001b[0m\"]", "a?[0m"},
		{"[\"a\\nb\", \"c\"]", "a"},
		{"\xff\xfe", "??"},
	};
	char why[200];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		reply.status = 500;
		reply.len = strlen(rows[i].body);
		memcpy(reply.body, rows[i].body, reply.len + 1);
		http_reason(&reply, why, sizeof(why));
		is_str(why, rows[i].why, rows[i].body);
	}
	memset(reply.body, 'x', HTTP_BODY_MAX);
	reply.len = HTTP_BODY_MAX;
	http_reason(&reply, why, sizeof(why));
	ok(strlen(why) > 150 && strlen(why) < sizeof(why), "a very long one");
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	test_format();
	test_sent_whole();
	test_answers();
	test_closed();
	test_many();
	test_large();
	test_full_server();
	test_stuck();
	test_reason();
	return done();
}
