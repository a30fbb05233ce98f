/*
 * rest-execs.c - the execs of a sandbox that nobody waits for.
 */
#include "rest-exec.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WAIT_MS 60000 /* when nothing is said */

/* One of ark-exec's lines as the contract has it. */
static json_t *info_of(json_t *line)
{
	json_t *info = json_object();
	static const char *const keys[][2] = {
		{"id", "id"},
		{"state", "state"},
		{"exit", "exitCode"},
		{"age", "age"},
		{"detached", "detached"},
		{"command", "command"},
	};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		json_t *value = json_object_get(line, keys[i][0]);

		json_object_set(info, keys[i][1], value);
	}
	return info;
}

static json_t *parse_lines(const char *text)
{
	json_t *list = json_array();

	while (text && *text) {
		size_t len = strcspn(text, "\n");
		json_t *line = json_loadb(text, len, 0, NULL);

		if (line)
			json_array_append_new(list, info_of(line));
		json_decref(line);
		text += len + (text[len] == '\n');
	}
	return list;
}

/* All of them; NULL when something else was answered. */
static json_t *list(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_COMMAND struct command cmd = {0};
	int r = open_running(c, &s);

	if (r)
		return NULL;
	command_add(&cmd, "ark-exec");
	command_add(&cmd, "ls");
	command_add(&cmd, "--json");
	command_add(&cmd, c->full);
	r = command_run(&cmd);
	if (r) {
		answer_failure(c, r, cmd.why);
		return NULL;
	}
	return parse_lines(cmd.output);
}

int rest_execs(struct call *c)
{
	json_t *all = list(c);

	if (!all)
		return answer_status();
	return answer_json(200, json_pack("{s:o}", "execs", all));
}

static int check_id(const struct call *c, long long *id)
{
	const char *why;

	if (parse_num(c->id, 1, INT64_MAX, id, &why))
		return 0;
	return answer_error(400, NULL, "bad id '%s': %s", c->id, why);
}

int rest_exec_get(struct call *c)
{
	long long id;
	json_t *all, *each, *found = NULL;
	size_t i;
	int r = check_id(c, &id);

	if (r)
		return r;
	all = list(c);
	if (!all)
		return answer_status();
	json_array_foreach(all, i, each)
	{
		if (json_integer_value(json_object_get(each, "id")) == id)
			found = json_incref(each);
	}
	json_decref(all);
	if (!found)
		return answer_error(404, NULL, "no such exec %lld", id);
	return answer_json(200, found);
}

/* ark-exec WORD [-s SIGNAL] NAME ID */
static int begin(struct call *c, struct command *cmd, const char *word,
		 const char *signal_name)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	long long id;
	int r = check_id(c, &id);

	if (r == 0)
		r = open_running(c, &s);
	command_add(cmd, "ark-exec");
	command_add(cmd, word);
	if (signal_name) {
		command_add(cmd, "-s");
		command_add(cmd, signal_name);
	}
	command_add(cmd, c->full);
	command_add(cmd, c->id);
	return r;
}

int rest_exec_kill(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	int r = begin(c, &cmd, "kill", call_text(c, F_SIGNAL));

	if (r)
		return r;
	r = command_run(&cmd);
	return r ? answer_failure(c, r, cmd.why) : answer_success();
}

/* ---- logs ---------------------------------------------------------------- */

/* attach ends with the exec's code, or, when it could not, with one of ours
 * and a line that says why. */
static int follow(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	struct exec e = {.streamed = true};
	int r = begin(c, &cmd, "attach", NULL);

	if (r)
		return r;
	if (!exec_wait(&e, &cmd, -1)) {
		exec_free(&e);
		return 499;
	}
	if (!answer_status() && (e.exit == EX_NOINPUT ||
				 e.exit == EX_CANTCREAT || e.exit == EX_ARK)) {
		r = answer_failure(c, e.exit, "the exec cannot be attached to");
	} else {
		e.has_code = e.exit != EX_TIMEOUT && e.exit <= 128;
		e.code = e.exit;
		e.timed_out = e.exit == EX_TIMEOUT;
		e.signal = e.exit > 128 ? e.exit - 128 : 0;
		r = stream_end(&e, exec_json(&e));
	}
	exec_free(&e);
	return r;
}

int rest_exec_logs(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	struct exec e = {0};
	json_t *logs;
	int r;

	if (call_truth(c, F_FOLLOW, false))
		return follow(c);
	r = begin(c, &cmd, "logs", NULL);
	if (r)
		return r;
	exec_wait(&e, &cmd, -1);
	if (e.exit) {
		r = answer_failure(c, e.exit, "no such exec");
	} else {
		logs = json_object();
		stream_into(logs, "stdout", &e.out);
		stream_into(logs, "stderr", &e.err);
		r = answer_json(200, logs);
	}
	exec_free(&e);
	return r;
}

/* ---- wait ---------------------------------------------------------------- */

/* True when it has ended in time. */
static bool wait_for(pid_t pid, uint64_t ms, int *code)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	bool ended = client_poll(&p, 1, (int)ms, NULL) > 0;
	int status = 0;

	if (!ended)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	*code = WIFEXITED(status) ? WEXITSTATUS(status) : EX_ARK;
	return ended;
}

int rest_exec_wait(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	uint64_t ms = WAIT_MS;
	int code, r = begin(c, &cmd, "wait", NULL);
	pid_t pid;

	if (r)
		return r;
	call_number(c, F_WAIT, &ms);
	pid = command_spawn(&cmd, -1, -1, -1, -1);
	if (pid < 0)
		return answer_failure(c, EX_OSERR, "cannot run ark-exec");
	if (!wait_for(pid, ms, &code))
		return answer_error(504, NULL, "exec %s still runs", c->id);
	/* What it came to is in the list, if it is known at all. */
	return rest_exec_get(c);
}
