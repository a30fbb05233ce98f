/*
 * rest-exec.c - run a command in a sandbox: cmd, as Arrakis has it, and exec.
 *
 * ark-exec does it.  Its output is kept up to a limit, or passed on as JSON
 * Lines; how the command ended is read from --status-fd.  A client that goes
 * away ends ark-exec, and with it the command and all that it started.
 */
#include "metrics.h"
#include "rest-exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define HANG_UP_MS 5000

/* By bash where there is one.  Arrakis' has a directory of its own, and one
 * stream for both outputs. */
#define SHELL                                                                  \
	"command -v bash >/dev/null 2>&1 && exec bash -c -- \"$0\"; "          \
	"exec sh -c -- \"$0\""
#define ARRAKIS_SHELL                                                          \
	"exec 2>&1; mkdir -p /tmp/server_files && cd "                         \
	"/tmp/server_files; " SHELL

/* ---- its end ------------------------------------------------------------- */

/* The line of --status-fd (ark-exec(1)). */
static void read_status(struct exec *e)
{
	char text[8192];
	ssize_t n = read_full(e->status, text, sizeof(text) - 1);
	json_t *line = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	const json_t *code = json_object_get(line, "exit");
	const char *error = json_string_value(json_object_get(line, "error"));

	e->signal = (int)json_integer_value(json_object_get(line, "signal"));
	e->timed_out = json_is_true(json_object_get(line, "timeout"));
	e->oom = json_is_true(json_object_get(line, "oom"));
	e->has_code = json_is_integer(code) && !e->timed_out;
	e->code = (int)json_integer_value(code);
	if (e->timed_out)
		e->signal = SIGKILL;
	if (error)
		snprintf(e->error, sizeof(e->error), "%s", error);
	/* What could not be executed is a result as with a shell. */
	if (error && (e->exit == EX_CANNOT_RUN || e->exit == EX_NOT_FOUND)) {
		e->has_code = true;
		e->code = e->exit;
	} else if (!line || error) {
		e->failed = true;
	}
	json_decref(line);
}

static void close_stream(struct stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* ark-exec hangs up in good order when its output is closed, or at a second
 * SIGINT; killed, it would leave the agent with a reset connection, as a
 * restore does, and that lets the command live on. */
static void hang_up(struct exec *e)
{
	const struct timespec moment = {.tv_nsec = 50000000};
	uint64_t end = now_ms() + HANG_UP_MS;
	siginfo_t info = {0};

	close_stream(&e->out);
	close_stream(&e->err);
	while (now_ms() < end) {
		kill(e->pid, SIGINT);
		nanosleep(&moment, NULL);
		waitid(P_PID, (id_t)e->pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid)
			return;
	}
	kill(e->pid, SIGKILL);
}

static void await(struct exec *e)
{
	int status = 0;

	while (waitpid(e->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	e->exit = WIFEXITED(status) ? WEXITSTATUS(status)
				    : 128 + WTERMSIG(status);
}

/* ---- while it runs ------------------------------------------------------- */

static void take(struct exec *e, struct stream *s)
{
	static char data[65536];
	ssize_t n = read(s->fd, data, sizeof(data));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close_stream(s);
		return;
	}
	if (e->streamed)
		stream_line(e, s, data, (size_t)n);
	else
		stream_keep(s, data, (size_t)n);
}

static volatile sig_atomic_t told_to_end;

static void on_term(int sig)
{
	told_to_end = sig;
}

/* SIGTERM arrives while we wait, and at no other time. */
static void expect_term(sigset_t *others)
{
	const struct sigaction action = {.sa_handler = on_term};
	sigset_t term;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, others);
	sigdelset(others, SIGTERM);
	sigaction(SIGTERM, &action, NULL);
}

/* Until both outputs have ended; false when the client has gone, or nobody is
 * to be served any more. */
static bool pump(struct exec *e)
{
	sigset_t others;

	expect_term(&others);
	while (e->out.fd >= 0 || e->err.fd >= 0) {
		struct pollfd p[] = {
			{.fd = e->out.fd, .events = POLLIN},
			{.fd = e->err.fd, .events = POLLIN},
		};

		if ((client_poll(p, ARRAY_LEN(p), -1, &others) < 0 &&
		     errno != EINTR) ||
		    told_to_end || e->broken)
			return false;
		if (p[0].revents)
			take(e, &e->out);
		if (p[1].revents)
			take(e, &e->err);
	}
	return true;
}

static int pipe_to(struct stream *s, int *theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	s->fd = ends[0];
	*theirs = ends[1];
	return 0;
}

static int start(struct exec *e, struct command *cmd, int in)
{
	AUTO_CLOSE int out = -1;
	AUTO_CLOSE int err = -1;
	AUTO_CLOSE int status = -1;
	struct stream line = {.fd = -1};

	if (pipe_to(&e->out, &out) < 0 || pipe_to(&e->err, &err) < 0 ||
	    pipe_to(&line, &status) < 0)
		return -1;
	e->status = line.fd;
	e->pid = command_spawn(cmd, in, out, err, status);
	return e->pid < 0 ? -1 : 0;
}

bool exec_wait(struct exec *e, struct command *cmd, int in)
{
	bool there;

	e->out.fd = e->err.fd = e->status = -1;
	if (start(e, cmd, in) < 0) {
		snprintf(e->error, sizeof(e->error), "cannot run ark-exec: %s",
			 strerror(errno));
		e->failed = true;
		e->exit = EX_OSERR;
		return true;
	}
	there = pump(e);
	if (!there)
		hang_up(e);
	await(e);
	read_status(e);
	return there;
}

void exec_free(struct exec *e)
{
	const int fds[] = {e->out.fd, e->err.fd, e->status};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] > STDERR_FILENO)
			close(fds[i]);
	stream_free(&e->out);
	stream_free(&e->err);
}

/* ---- answers ------------------------------------------------------------- */

json_t *exec_json(const struct exec *e)
{
	return json_pack("{s:o,s:o,s:b,s:b}", "exitCode",
			 e->has_code ? json_integer(e->code) : json_null(),
			 "signal",
			 e->signal ? json_integer(e->signal) : json_null(),
			 "timedOut", e->timed_out, "oom", e->oom);
}

static void count(const struct exec *e, uint64_t began)
{
	metrics_time(TIME_EXEC, now_us() - began);
	if (e->failed)
		metrics_count(COUNT_EXEC_ERROR);
	else if (e->timed_out)
		metrics_count(COUNT_EXEC_TIMEOUT);
	else if (e->oom)
		metrics_count(COUNT_EXEC_OOM);
	else if (e->has_code && e->code == 0)
		metrics_count(COUNT_EXEC_OK);
	else
		metrics_count(COUNT_EXEC_FAILED);
}

/* What ark-exec could not do.  An end of the sandbox meanwhile is 503. */
static int answer_failed(const struct call *c, const struct exec *e)
{
	return answer_failure(c, e->exit ? e->exit : EX_ARK, e->error);
}

static int answer_end(const struct call *c, struct exec *e)
{
	json_t *end = exec_json(e);

	if (!e->streamed && e->failed) {
		json_decref(end);
		return answer_failed(c, e);
	}
	if (!e->streamed) {
		json_object_set_new(end, "truncated",
				    json_boolean(e->out.cut || e->err.cut));
		stream_into(end, "stdout", &e->out);
		stream_into(end, "stderr", &e->err);
		return answer_json(200, end);
	}
	if (e->failed && !answer_status()) {
		json_decref(end);
		return answer_failed(c, e);
	}
	if (e->failed)
		json_object_set_new(end, "error", json_string(e->error));
	return stream_end(e, end);
}

/* ---- exec ---------------------------------------------------------------- */

/* A file in memory: nobody has to feed it. */
static int input_of(const struct call *c)
{
	const struct record *in = call_record(c, F_STDIN, 0);
	AUTO_CLOSE int fd = -1;

	if (!in)
		in = call_record(c, F_STDIN64, 0);
	if (!in)
		return -1;
	fd = memfd_create("ark-stdin", MFD_CLOEXEC);
	if (fd < 0 || write_full(fd, in->data, in->len) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return steal_fd(&fd);
}

/* ark-exec's words up to the command. */
static void begin(struct command *cmd, const struct call *c, bool detach,
		  bool in, char time[DIGITS_SIZE])
{
	const struct record *variable;

	command_add(cmd, "ark-exec");
	command_add(cmd, "-T");
	if (detach)
		command_add(cmd, "-d");
	else
		command_option(cmd, "--status-fd", "3");
	if (!in)
		command_add(cmd, "-n");
	command_option(cmd, "--timeout", call_digits(c, F_TIMEOUT, time));
	command_option(cmd, "-u", call_text(c, F_USER));
	command_option(cmd, "-w", call_text(c, F_CWD));
	for (size_t i = 0; (variable = call_record(c, F_ENV, i)); i++)
		command_option(cmd, "-e", variable->data);
	command_add(cmd, c->full);
	command_add(cmd, "--");
}

static void add_shell(struct command *cmd, const char *shell, const char *line)
{
	command_add(cmd, "/bin/sh");
	command_add(cmd, "-c");
	command_add(cmd, shell);
	command_add(cmd, line);
}

/* Its id, or the status that was answered as a negative number. */
static long long detach(struct call *c, struct command *cmd)
{
	const char *why;
	long long id;
	int r = command_run(cmd);

	if (r)
		return -answer_failure(c, r, cmd->why);
	cmd->output[strcspn(cmd->output, "\n")] = '\0';
	if (!parse_num(cmd->output, 1, INT64_MAX, &id, &why))
		return -answer_error(500, NULL, "ark-exec tells no id");
	metrics_count(COUNT_EXEC_DETACHED);
	return id;
}

/* One that runs, within the quota of execs. */
static int prepare(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const struct quota_ask ask = {.amount = {[QUOTA_EXECS] = 1}};
	int r = open_running(c, &s);

	return r ? r : claim(c, &ask);
}

static int run_exec(struct call *c, struct command *cmd, int in)
{
	struct exec e = {.streamed = call_truth(c, F_STREAM, false)};
	uint64_t began = now_us();
	int r = 499; /* nobody waits for an answer */

	if (exec_wait(&e, cmd, in))
		r = answer_end(c, &e);
	count(&e, began);
	exec_free(&e);
	return r;
}

static int check_exec(const struct call *c)
{
	bool stream = call_truth(c, F_STREAM, false);
	bool detached = call_truth(c, F_DETACH, false);
	bool text = call_record(c, F_STDIN, 0);
	bool coded = call_record(c, F_STDIN64, 0);

	if (!call_record(c, F_ARGV, 0) == !call_record(c, F_CMD, 0))
		return answer_error(400, NULL, "one of argv and cmd is needed");
	if (text && coded)
		return answer_error(400, NULL,
				    "one of stdin and stdinBase64 at most");
	if (detached && (stream || text || coded))
		return answer_error(400, NULL,
				    "what is detached has no "
				    "stream and no input");
	return 0;
}

/* It is within the quotas, and cmd is empty. */
static int run_words(struct call *c, struct command *cmd, int in)
{
	bool detached = call_truth(c, F_DETACH, false);
	const struct record *word;
	char time[DIGITS_SIZE];
	long long id;

	begin(cmd, c, detached, in >= 0, time);
	if (call_record(c, F_CMD, 0))
		add_shell(cmd, SHELL, call_text(c, F_CMD));
	for (size_t i = 0; (word = call_record(c, F_ARGV, i)); i++)
		command_add(cmd, word->data);
	if (!detached)
		return run_exec(c, cmd, in);
	id = detach(c, cmd);
	return id < 0 ? (int)-id
		      : answer_json(200,
				    json_pack("{s:I}", "id", (json_int_t)id));
}

int rest_exec(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	AUTO_CLOSE int in = input_of(c);
	int r = check_exec(c);

	if (r == 0)
		r = prepare(c);
	return r ? r : run_words(c, &cmd, in);
}

/* ---- cmd ----------------------------------------------------------------- */

static int answer_cmd(const struct call *c, struct exec *e)
{
	AUTO_FREE char *output = NULL;
	char error[64] = "";
	size_t len;

	if (e->failed)
		return answer_failed(c, e);
	output = stream_text(&e->out, &len);
	if (e->timed_out)
		snprintf(error, sizeof(error), "timed out");
	else if (e->oom)
		snprintf(error, sizeof(error), "out of memory");
	else if (e->signal)
		snprintf(error, sizeof(error), "signal: %d", e->signal);
	else if (e->code)
		snprintf(error, sizeof(error), "exit status %d", e->code);
	return answer_json(
		200,
		json_pack("{s:s,s:o,s:o,s:b}", "error", error, "output",
			  json_guest(output, len), "exitCode",
			  e->has_code ? json_integer(e->code) : json_null(),
			  "truncated", e->out.cut));
}

int rest_cmd(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	bool wait = call_truth(c, F_BLOCKING, true);
	struct exec e = {0};
	uint64_t began = now_us();
	char time[DIGITS_SIZE];
	long long id;
	int r = prepare(c);

	if (r)
		return r;
	begin(&cmd, c, !wait, false, time);
	add_shell(&cmd, ARRAKIS_SHELL, call_text(c, F_CMD));
	if (!wait) {
		id = detach(c, &cmd);
		return id < 0 ? (int)-id
			      : answer_json(200,
					    json_pack("{s:s,s:s,s:I}", "error",
						      "", "output", "", "id",
						      (json_int_t)id));
	}
	r = exec_wait(&e, &cmd, -1) ? answer_cmd(c, &e) : 499;
	count(&e, began);
	exec_free(&e);
	return r;
}
