/*
 * rest-vm.c - sandboxes: list, make, start, stop, remove.
 */
#include "metrics.h"
#include "rest.h"

#include <poll.h>

#define WAIT_MS 60000 /* of wait, when nothing is said */
#define END_MS 3000   /* for the keeper to write down how a VMM ended */

int rest_health(struct call *c)
{
	char text[UTC_SIZE];

	(void)c;
	format_utc(text, time(NULL));
	return answer_json(200, json_pack("{s:s,s:s}", "status", "healthy",
					  "timestamp", text));
}

/* ---- list, get ----------------------------------------------------------- */

struct listing {
	struct call *c;
	json_t *list;
	bool probe;
};

static int list_one(const char *name, void *data)
{
	const struct listing *l = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	if (own_name(l->c, name) && sandbox_find(&s, name))
		json_array_append_new(l->list, vm_json(l->c, &s, l->probe));
	return 0;
}

int rest_list(struct call *c)
{
	struct listing l = {c, json_array(), call_truth(c, F_PROBE, false)};
	int r = sandbox_each(list_one, &l);

	if (r < 0) {
		json_decref(l.list);
		return answer_failure(c, -r, last_message());
	}
	return answer_json(200, json_pack("{s:o}", "vms", l.list));
}

int rest_get(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_vm(c, &s);

	if (r)
		return r;
	return answer_json(200, vm_json(c, &s, call_truth(c, F_PROBE, false)));
}

/* ---- commands ------------------------------------------------------------ */

/* ark-vm VERB [OPTION VALUE] NAME: its exit code, answered when it is not 0. */
static int run_verb(struct call *c, const char *verb, const char *option,
		    const char *value, const char *name)
{
	AUTO_COMMAND struct command cmd = {0};
	int code;

	command_add(&cmd, "ark-vm");
	command_add(&cmd, verb);
	if (option)
		command_add(&cmd, option);
	if (value)
		command_add(&cmd, value);
	command_add(&cmd, name);
	code = command_run(&cmd);
	if (code)
		answer_failure(c, code, cmd.why);
	return code;
}

/* The verb on the sandbox of the path, and then how it is. */
static int change(struct call *c, const char *verb)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_vm(c, &s);

	if (r)
		return r;
	return run_verb(c, verb, NULL, NULL, c->full) ? answer_status()
						      : answer_vm(c, c->full);
}

int start_vm(struct call *c, const char *full)
{
	uint64_t began = now_us();

	if (run_verb(c, "start", NULL, NULL, full))
		return answer_status();
	metrics_time(TIME_START, now_us() - began);
	return answer_vm(c, full);
}

int rest_start(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_vm(c, &s);

	return r ? r : start_vm(c, c->full);
}

int rest_stop(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char time[DIGITS_SIZE];
	const char *grace = call_digits(c, F_GRACE, time);
	int r = open_vm(c, &s);

	if (r)
		return r;
	return run_verb(c, "stop", grace ? "-t" : NULL, grace, c->full)
		       ? answer_status()
		       : answer_vm(c, c->full);
}

int rest_kill(struct call *c)
{
	return change(c, "kill");
}

/* 0 when it is done: paused or resumed, or so already. */
static int pause_or_resume(struct call *c, bool pause)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_vm(c, &s);

	if (r)
		return r;
	if (s.state == (pause ? VM_PAUSED : VM_RUNNING) && !s.starting)
		return 0;
	if (s.state != VM_RUNNING && s.state != VM_PAUSED)
		return answer_error(409, "not_running",
				    "'%s' does not run: it is %s", c->name,
				    state_word(&s));
	return run_verb(c, pause ? "pause" : "resume", NULL, NULL, c->full)
		       ? answer_status()
		       : 0;
}

int rest_pause(struct call *c)
{
	int r = pause_or_resume(c, true);

	return r ? r : answer_vm(c, c->full);
}

int rest_resume(struct call *c)
{
	int r = pause_or_resume(c, false);

	return r ? r : answer_vm(c, c->full);
}

/* What Arrakis' clients use for all three. */
int rest_patch(struct call *c)
{
	const char *status = call_text(c, F_STATUS);
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r;

	if (strcmp(status, "stopped") != 0) {
		r = pause_or_resume(c, strcmp(status, "paused") == 0);
		return r ? r : answer_success();
	}
	r = open_vm(c, &s);
	if (r)
		return r;
	return run_verb(c, "stop", NULL, NULL, c->full) ? answer_status()
							: answer_success();
}

int rest_destroy(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_vm(c, &s);

	if (r)
		return r;
	return run_verb(c, "rm", "-f", NULL, c->full) ? answer_status()
						      : answer_success();
}

static int destroy_one(const char *name, void *data)
{
	struct call *c = data;

	if (!own_name(c, name))
		return 0;
	/* Go on after a failure; the first one is the answer. */
	if (answer_status()) {
		const char *const argv[] = {sibling("ark-vm"), "rm", "-f", name,
					    NULL};

		run_wait(argv);
		return 0;
	}
	run_verb(c, "rm", "-f", NULL, name);
	return 0;
}

int rest_destroy_all(struct call *c)
{
	int r = sandbox_each(destroy_one, c);

	if (r < 0 && !answer_status())
		return answer_failure(c, -r, last_message());
	return answer_status() ? answer_status() : answer_success();
}

int rest_resize(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_COMMAND struct command cmd = {0};
	struct quota_ask ask = {0};
	long long has = 0;
	uint64_t wants;
	const char *why;
	int r = open_vm(c, &s);

	if (r)
		return r;
	if (s.state == VM_RUNNING || s.state == VM_PAUSED)
		return answer_error(409, NULL, "'%s' runs", c->name);
	if (!parse_size(call_text(c, F_SIZE), &wants, &why))
		return answer_error(400, NULL, "bad size: %s", why);
	read_number(s.dir, "disk-size", 0, INT64_MAX, &has);
	if (wants > (uint64_t)has)
		ask.amount[QUOTA_DISK] = wants - (uint64_t)has;
	r = claim(c, &ask);
	if (r)
		return r;
	command_add(&cmd, "ark-disk");
	command_add(&cmd, "resize");
	command_add(&cmd, c->full);
	command_add(&cmd, call_text(c, F_SIZE));
	r = command_run(&cmd);
	return r ? answer_failure(c, r, cmd.why) : answer_vm(c, c->full);
}

/* ---- wait, logs ---------------------------------------------------------- */

static bool has_ended(struct sandbox *s)
{
	sandbox_probe(s);
	return s->state != VM_RUNNING && s->state != VM_PAUSED;
}

/* Until the VMM is gone, its end is written down, or the time is over. */
static bool await_end(struct sandbox *s, uint64_t ms)
{
	const struct timespec moment = {.tv_nsec = 10000000};
	AUTO_CLOSE int pidfd = proc_pidfd(&s->vmm);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	uint64_t end;

	if (has_ended(s))
		return true;
	if (pidfd >= 0 && client_poll(&p, 1, (int)ms, NULL) < 1)
		return false;
	end = now_ms() + END_MS;
	while (!has_ended(s)) {
		if (now_ms() > end)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

int rest_wait(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	uint64_t ms = WAIT_MS;
	char text[300];
	int r = open_vm(c, &s);

	if (r)
		return r;
	call_number(c, F_WAIT, &ms);
	if (!await_end(&s, ms))
		return answer_error(504, NULL, "'%s' still runs", c->name);
	snprintf(text, sizeof(text), "%s%s%s", state_word(&s),
		 *s.reason ? ": " : "", s.reason);
	return answer_json(200, json_pack("{s:s}", "end", text));
}

int rest_logs(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_COMMAND struct command cmd = {0};
	int r = open_vm(c, &s);

	if (r)
		return r;
	command_add(&cmd, "ark-vm");
	command_add(&cmd, "logs");
	if (call_truth(c, F_FOLLOW, false))
		command_add(&cmd, "-f");
	command_add(&cmd, c->full);
	answer_begin(200, "text/plain", -1);
	command_stream(&cmd);
	return 200;
}
