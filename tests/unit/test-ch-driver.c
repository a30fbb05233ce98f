/*
 * test-ch-driver - what the Cloud Hypervisor driver asks, in which order, and
 * what it makes of the answers, against a server with a script.
 */
#include "http-play.h"

#include "ch-api.h"
#include "unixsock.h"
#include "vmm.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OK_204 "HTTP/1.1 204 \r\n\r\n"
#define REFUSED(n, text)                                                       \
	"HTTP/1.1 500 \r\nContent-Length: " n "\r\n\r\n[\"" text "\"]"
#define PING(version)                                                          \
	"HTTP/1.1 200 \r\nContent-Length: 20\r\n\r\n{\"version\":\"" version   \
	"\"}"
#define RUNNING                                                                \
	"HTTP/1.1 200 \r\nContent-Length: 19\r\n\r\n{\"state\":\"Running\"}"
#define PAUSED                                                                 \
	"HTTP/1.1 200 \r\nContent-Length: 18\r\n\r\n{\"state\":\"Paused\"}"

static int dir;
static struct sandbox s = {.name = "box"};

struct turn {
	const char *request; /* begins like this */
	const char *answer;  /* NULL: the connection is closed instead */
};

#define TURNS_MAX 6

/* Ends with 0 when it was asked for just these things; else with the number of
 * the turn that was another. */
static pid_t serve(const struct turn *turns)
{
	static char text[16384];
	int listener;
	pid_t pid;

	fflush(stdout);
	listener = unix_listen(dir, CH_API_SOCKET, SOCK_STREAM);
	if (listener < 0)
		exit(99);
	pid = fork();
	if (pid == 0) {
		int fd = accept(listener, NULL, NULL);

		for (int i = 0; i < TURNS_MAX && turns[i].request; i++) {
			if (!read_request(fd, text, sizeof(text)) ||
			    !strstr(text, turns[i].request))
				_exit(i + 1);
			if (!turns[i].answer)
				_exit(0);
			(void)!write(fd, turns[i].answer,
				     strlen(turns[i].answer));
		}
		_exit(read(fd, text, 1) == 0 ? 0 : 50);
	}
	close(listener);
	return pid;
}

static int served(pid_t pid)
{
	int status = 0;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

/* ---- pause and resume --------------------------------------------------- */

static void test_commands(void)
{
	static const struct {
		const char *what;
		enum vmm_command command;
		struct turn turns[TURNS_MAX];
		const char *told; /* NULL: it works */
	} rows[] = {
		{"pause",
		 VMM_PAUSE,
		 {{"PUT /api/v1/vm.pause HTTP/1.1\r\n", OK_204}},
		 NULL},
		{"resume",
		 VMM_RESUME,
		 {{"PUT /api/v1/vm.resume HTTP/1.1\r\n", OK_204}},
		 NULL},
		{"pause of what is paused",
		 VMM_PAUSE,
		 {{"vm.pause ", REFUSED("11", "invalid")},
		  {"GET /api/v1/vm.info HTTP/1.1\r\n", PAUSED}},
		 NULL},
		{"resume of what runs",
		 VMM_RESUME,
		 {{"vm.resume ", REFUSED("11", "invalid")},
		  {"vm.info ", RUNNING}},
		 NULL},
		{"a pause that works at the second time",
		 VMM_PAUSE,
		 {{"vm.pause ", REFUSED("11", "invalid")},
		  {"vm.info ", RUNNING},
		  {"vm.pause ", OK_204}},
		 NULL},
		{"one that never does",
		 VMM_PAUSE,
		 {{"vm.pause ", REFUSED("9", "first")},
		  {"vm.info ", RUNNING},
		  {"vm.pause ", REFUSED("10", "second")}},
		 "VMM of sandbox 'box': first"},
		{"no VM any more",
		 VMM_RESUME,
		 {{"vm.resume ", REFUSED("11", "none...")},
		  {"vm.info ", REFUSED("11", "invalid")},
		  {"vm.resume ", REFUSED("11", "invalid")}},
		 "VMM of sandbox 'box': none..."},
		{"no answer",
		 VMM_PAUSE,
		 {{"vm.pause ", NULL}},
		 "what became of vm.pause is not known: "},
		{"an answer that is none",
		 VMM_PAUSE,
		 {{"vm.pause ", "+OK\r\n\r\n"}},
		 "what became of vm.pause is not known: "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		pid_t pid = serve(rows[i].turns);
		int r = vmm_ch.command(&s, rows[i].command);

		is_num(r, rows[i].told ? -EX_UNAVAILABLE : 0, rows[i].what);
		is_num(served(pid), 0, "it was asked for that");
		ok(rows[i].told ? told(rows[i].told) : told_nothing(), "%s",
		   rows[i].told ? rows[i].told : "nothing is told");
	}
	unlinkat(dir, CH_API_SOCKET, 0);
	is_num(vmm_ch.command(&s, VMM_PAUSE), -EX_UNAVAILABLE, "no socket");
	ok(told("does not answer"), "told");
}

/* ---- start -------------------------------------------------------------- */

static void test_load(void)
{
	static const struct {
		const char *what;
		bool restore;
		struct turn turns[TURNS_MAX];
		const char *why; /* NULL: it works */
	} rows[] = {
		{"a boot",
		 false,
		 {{"GET /api/v1/vmm.ping HTTP/1.1\r\n", PING("53.0.0")},
		  {"\"shared\":true", OK_204},
		  {"PUT /api/v1/vm.boot HTTP/1.1\r\n", OK_204}},
		 NULL},
		{"a restore",
		 true,
		 {{"vmm.ping ", PING("51.2.0")},
		  {"{\"source_url\":\"file:///run/restore\"}", OK_204},
		  {"PUT /api/v1/vm.resume HTTP/1.1\r\n", OK_204}},
		 NULL},
		{"a version that is refused",
		 false,
		 {{"vmm.ping ", PING("52.0.0")}},
		 "version 52.0.0 keeps a second copy"},
		{"no version",
		 false,
		 {{"vmm.ping ", PING("nobody")}},
		 "it tells no version"},
		{"a disk that is locked",
		 false,
		 {{"vmm.ping ", PING("54.0.0")},
		  {"PUT /api/v1/vm.create ", OK_204},
		  {"vm.boot ", REFUSED("10", "locked")}},
		 "locked"},
		{"a state that it does not take",
		 true,
		 {{"vmm.ping ", PING("53.0.0")},
		  {"PUT /api/v1/vm.restore ", REFUSED("10", "broken")}},
		 "broken"},
		{"its death",
		 true,
		 {{"vmm.ping ", PING("53.0.0")}, {"vm.restore ", NULL}},
		 "what became of vm.restore is not known: "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vmm_plan plan = {.cpus = 1,
					.memory = 64ULL << 20,
					.restore = rows[i].restore};
		pid_t pid = serve(rows[i].turns);
		char why[400] = "";
		int r = vmm_ch.load(&s, &plan, -1, why, sizeof(why));

		is_num(r, rows[i].why ? -1 : 0, rows[i].what);
		ok(rows[i].why ? strstr(why, rows[i].why) != NULL : !why[0],
		   "in words: %s", why);
		is_num(served(pid), 0, "it was asked for that");
	}
	ok(told_nothing(), "a keeper's child tells nobody");
}

static void test_noted_version(void)
{
	static const struct turn turns[TURNS_MAX] = {
		{"vmm.ping ", PING("53.1.0")},
		{"vm.create ", REFUSED("8", "none")}};
	const struct vmm_plan plan = {.cpus = 1, .memory = 64ULL << 20};
	pid_t pid = serve(turns);
	char text[64] = "", why[100];

	vmm_ch.load(&s, &plan, -1, why, sizeof(why));
	served(pid);
	read_value(dir, "vmm-version", text, sizeof(text));
	is_str(text, "ch 53.1.0", "the version is in the slot");
}

/* ---- files for a restore ------------------------------------------------ */

static int with_state(const char *text, size_t len)
{
	put_file(dir, "state", text, len);
	return openat(dir, "state", O_RDONLY | O_CLOEXEC);
}

static void test_files(void)
{
	const struct vmm_plan plan = {
		.cpus = 1, .memory = 64ULL << 20, .restore = true};
	struct jail_file files[VMM_FILES_MAX];
	AUTO_CLOSE int state = with_state("{\"a\":\"b\"}", 9);
	AUTO_CLOSE int empty = -1;
	int n = vmm_ch.files(&plan, state, files);

	is_num(n, 2, "two files");
	is_str(files[0].name, "config.json", "the configuration");
	ok(memmem(files[0].data, files[0].len, "\"shared\":false", 14) != NULL,
	   "of a clone");
	is_str(files[1].name, "state.json", "the state");
	ok(files[1].len == 9 && memcmp(files[1].data, "{\"a\":\"b\"}", 9) == 0,
	   "as it is");
	while (n-- > 0)
		free((void *)(uintptr_t)files[n].data);
	empty = with_state("", 0);
	is_num(vmm_ch.files(&plan, empty, files), -EX_IOERR, "an empty state");
	ok(told("cannot read the state"), "told");
	is_num(vmm_ch.files(&plan, dir, files), -EX_IOERR, "a directory");
	ok(told("cannot read the state"), "told");
}

/* ---- events ------------------------------------------------------------- */

static void test_watch(void)
{
	static const char event[] =
		"{\"source\":\"vm\",\"event\":\"paused\"}\n";
	static const struct turn turns[TURNS_MAX] = {
		{"PUT /api/v1/vm.pause HTTP/1.1\r\n", OK_204},
		{"PUT /api/v1/vm.resume HTTP/1.1\r\n", NULL}};
	pid_t pid = serve(turns);
	bool closed = false;
	int fd = -1;
	AUTO_CLOSE int vmm = -1;
	void *watcher = vmm_ch.watch(dir, &fd);

	ok(!watcher, "no FIFO, no watcher");
	if (mkfifoat(dir, "events", 0600) < 0)
		exit(99);
	watcher = vmm_ch.watch(dir, &fd);
	ok(watcher && fd >= 0, "watched");
	/* The connection of the first try was closed: it was another one. */
	served(pid);
	vmm_ch.unwatch(watcher);
	pid = serve(turns);
	watcher = vmm_ch.watch(dir, &fd);
	vmm = openat(dir, "events", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	ok(vmm_ch.event(watcher, &closed) == EVENT_NONE && !closed, "nothing");
	(void)!write(vmm, event, sizeof(event) - 1);
	(void)!write(vmm, event, 10);
	ok(vmm_ch.event(watcher, &closed) == EVENT_PAUSED, "an event");
	ok(vmm_ch.event(watcher, &closed) == EVENT_NONE && !closed,
	   "and the beginning of one");
	(void)!write(vmm, event + 10, sizeof(event) - 11);
	ok(vmm_ch.event(watcher, &closed) == EVENT_PAUSED, "and its end");
	vmm_ch.pause(watcher, true);
	usleep(100000);
	vmm_ch.pause(watcher, false);
	is_num(served(pid), 0, "paused and resumed");
	vmm_ch.unwatch(watcher);
}

int main(void)
{
	signal(SIGPIPE, SIG_DFL);
	progname = "test";
	dir = tap_dir();
	s.run = dir;
	catch_stderr();
	test_commands();
	test_load();
	test_noted_version();
	test_files();
	test_watch();
	return done();
}
