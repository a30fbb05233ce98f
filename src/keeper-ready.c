/*
 * keeper-ready.c - from a VMM that runs to a sandbox that may be used.
 *
 * 1. Host ports are held before there is a VMM: one that is taken fails the
 *    start before anything has been done.
 * 2. The network is made while the guest boots or loads.  Both must have
 *    succeeded.
 * 3. Only then, with the guest's identity confirmed, may a restored guest send
 *    and receive, and are the published ports opened, and then the generation
 *    is recorded, with which other commands may talk to the agent.  Whatever
 *    fails on the way ends the VM.
 */
#include "hello.h"
#include "keeper-loop.h"
#include "proto.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>

/* ---- steps -------------------------------------------------------------- */

/* As fork(2): 0 in the child, which says on *say why it could not. */
static pid_t fork_step(struct step *step, int *say)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	step->pid = fork();
	*say = ends[1];
	if (step->pid == 0)
		return 0;
	close(ends[1]);
	step->report = ends[0];
	if (step->pid > 0)
		return step->pid;
	close(ends[0]);
	step->pid = 0;
	return -1;
}

/* Run `ark-net VERB NAME`; what it says on stderr is the report. */
static int run_net(const struct sandbox *s, const char *verb, struct step *step)
{
	int say;
	pid_t pid = fork_step(step, &say);

	if (pid != 0)
		return pid < 0 ? -1 : 0;
	dup2(say, STDERR_FILENO);
	execl(sibling("ark-net"), "ark-net", verb, s->name, (char *)NULL);
	dprintf(STDERR_FILENO, "cannot run ark-net: %s", strerror(errno));
	_exit(EX_OSERR);
}

/* Wait for a step that is about to end: its wait status, and the first line
 * that it has said. */
static int end_step(struct step *step, char *why, size_t size)
{
	ssize_t n = read_full(step->report, why, size - 1);
	int status = 0;

	why[n > 0 ? n : 0] = '\0';
	why[strcspn(why, "\n")] = '\0';
	while (waitpid(step->pid, &status, 0) < 0 && errno == EINTR)
		;
	close(step->report);
	step->pid = 0;
	return status;
}

static void stop_step(struct step *step)
{
	if (!step->pid)
		return;
	kill(step->pid, SIGKILL);
	while (waitpid(step->pid, NULL, 0) < 0 && errno == EINTR)
		;
	close(step->report);
	step->pid = 0;
}

void ready_stop(struct keeper *k)
{
	stop_step(&k->load);
	stop_step(&k->hello);
	stop_step(&k->net);
}

void ready_disconnect(const struct sandbox *s)
{
	struct step step;
	char why[400];

	if (faccessat(s->run, "net", F_OK, 0) == 0 &&
	    run_net(s, "down", &step) == 0)
		end_step(&step, why, sizeof(why));
}

/* ---- ports -------------------------------------------------------------- */

int ready_reserve(struct keeper *k, char *why, size_t size)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	int n = -1;

	if (ports)
		n = ports_read(k->s->dir, "publish", ports, PORTS_MAX);
	if (n < 0) {
		snprintf(why, size, "cannot read its ports: %s",
			 strerror(errno));
		return -1;
	}
	for (int i = 0; i < n; i++)
		if (reserve(&k->sock.reserved, &ports[i], why, size) < 0)
			return -1;
	if (n > 0 && ports_write(k->s->run, "ports", ports, (size_t)n) < 0) {
		snprintf(why, size, "cannot record its ports: %s",
			 strerror(errno));
		return -1;
	}
	return 0;
}

void ready_reserve_again(struct keeper *k)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	struct step step;
	char why[256];
	int n = 0, kept = 0;

	if (ports)
		n = ports_read(k->s->run, "ports", ports, PORTS_MAX);
	for (int i = 0; i < n; i++)
		if (reserve(&k->sock.reserved, &ports[i], why, sizeof(why)) ==
		    0)
			ports[kept++] = ports[i];
	if (kept == n)
		return;
	/* Somebody has taken a port meanwhile: it is his, and the rule that
	 * would take his traffic goes. */
	if (ports_write(k->s->run, "ports", ports, (size_t)kept) == 0 &&
	    run_net(k->s, "open", &step) == 0)
		end_step(&step, why, sizeof(why));
}

static bool publishes(const struct keeper *k)
{
	return faccessat(k->s->run, "ports", F_OK, 0) == 0;
}

/* ---- the way to ready --------------------------------------------------- */

void ready_give_up(struct keeper *k, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(k->verdict, sizeof(k->verdict), fmt, args);
	va_end(args);
	ready_stop(k);
	k->settled = true;
	keeper_kill(k);
}

static void give_up(struct keeper *k, const char *what, const char *why)
{
	ready_give_up(k, "%s: %s", what, why);
}

static void become_ready(struct keeper *k)
{
	if (write_value(k->s->run, "generation", "%s", k->generation) < 0) {
		give_up(k, "cannot record its generation", strerror(errno));
		return;
	}
	k->settled = true;
	tell_starter(k, "ready");
}

static void connect_it(struct keeper *k, const char *verb)
{
	if (run_net(k->s, verb, &k->net) < 0)
		give_up(k, "no network", strerror(errno));
}

/* Greeted and connected: let packets pass, if they are held, and open the
 * ports, if there are any. */
static void open_network(struct keeper *k)
{
	if (!k->greeted || !k->connected)
		return;
	if (!publishes(k) && faccessat(k->s->run, "held", F_OK, 0) < 0)
		become_ready(k);
	else if (run_net(k->s, "open", &k->net) < 0)
		give_up(k, "cannot open its ports", strerror(errno));
}

static void net_ended(struct keeper *k)
{
	char why[400];
	bool opening = k->connected;

	if (end_step(&k->net, why, sizeof(why)) != 0)
		give_up(k, opening ? "cannot open its ports" : "no network",
			*why ? why : "ark-net failed");
	else if (opening)
		become_ready(k);
	k->connected = true;
	if (!opening && !k->settled)
		open_network(k);
}

static void hello_ended(struct keeper *k)
{
	char why[400];
	int status = end_step(&k->hello, why, sizeof(why));

	if (WIFEXITED(status) && WEXITSTATUS(status) == HELLO_RETRY) {
		k->next_hello = now_ms() + HELLO_EVERY_MS;
		return;
	}
	if (status != 0) {
		give_up(k, "guest did not become ready",
			*why ? why : "no answer");
		return;
	}
	k->greeted = true;
	open_network(k);
}

/* A restored guest's agent listens as soon as it runs. */
static void load_ended(struct keeper *k)
{
	bool restored = k->launch.state >= 0;
	char why[400];

	if (end_step(&k->load, why, sizeof(why)) != 0)
		give_up(k, restored ? "cannot load its state" : "cannot boot",
			*why ? why : "no answer");
	if (!restored)
		return;
	close(k->launch.state);
	k->launch.state = -1;
	k->next_hello = 0;
}

/* A child loads: that takes the time that the VMM needs to come up, and the
 * console has a reader meanwhile. */
static int start_load(struct keeper *k)
{
	struct vmm_plan plan = {.accel = k->launch.accel,
				.restore = k->launch.state >= 0};
	char why[400] = "cannot read its settings";
	pid_t self = getpid(), pid;
	int say, r;

	pid = fork_step(&k->load, &say);
	if (pid != 0)
		return pid < 0 ? -1 : 0;
	die_with(self);
	r = vmm_plan_read(k->s, &plan);
	if (r == 0)
		r = k->driver->load(k->s, &plan, k->launch.state, why,
				    sizeof(why));
	if (r < 0)
		(void)!write(say, why, strlen(why));
	_exit(r < 0 ? EX_OSERR : 0);
}

void ready_step(struct keeper *k, struct step *step)
{
	if (step == &k->load)
		load_ended(k);
	else if (step == &k->hello)
		hello_ended(k);
	else
		net_ended(k);
}

void ready_begin(struct keeper *k)
{
	bool restored = k->launch.state >= 0;
	bool boots = k->ours && k->driver->boots_by_load;

	/* A guest that boots has nothing to say to anybody yet; one that goes
	 * on where it was must not before it knows who it is now. */
	connect_it(k, restored ? "prepare" : "up");
	if ((restored || boots) && start_load(k) < 0)
		give_up(k, restored ? "cannot load its state" : "cannot boot",
			strerror(errno));
}

/* The agent's line on the console only tells when to try: a guest that prints
 * it early gains a connect that fails.  A hello that began before the line is
 * waiting for an answer to a packet that nobody got. */
void ready_console(struct keeper *k, const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r') {
			k->hint_len = 0;
			continue;
		}
		if (k->hint_len + 1 == sizeof(k->hint))
			continue;
		k->hint[k->hint_len++] = data[i];
		k->hint[k->hint_len] = '\0';
		if (strcmp(k->hint, AGENT_READY) == 0 && !k->greeted) {
			stop_step(&k->hello);
			k->next_hello = 0;
		}
	}
}

int ready_tick(struct keeper *k)
{
	uint64_t now = now_ms();

	if (k->settled)
		return -1;
	if (now >= k->give_up) {
		give_up(k, "guest did not become ready", "no answer in time");
		return -1;
	}
	if (k->greeted || k->hello.pid || k->load.pid)
		return (int)(k->give_up - now);
	if (now < k->next_hello)
		return (int)(k->next_hello - now);
	k->hello.pid = hello_start(k->s, k->generation, &k->hello.report);
	if (k->hello.pid < 0) {
		k->hello.pid = 0;
		k->next_hello = now + HELLO_EVERY_MS;
	}
	return (int)(k->give_up - now);
}
