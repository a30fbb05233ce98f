/*
 * keeper-loop.c - watch a VMM and bury it.
 *
 * The end, in this order: the last console bytes, the last events (they say
 * why), then `exit` in the slot, then the slot's lock goes with the process.
 */
#include "hello.h"
#include "keeper-loop.h"
#include "proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void tell_starter(struct keeper *k, const char *text)
{
	if (k->result < 0)
		return;
	(void)!write(k->result, text, strlen(text));
	close(k->result);
	k->result = -1;
}

/* ---- the console -------------------------------------------------------- */

/* Give up a hello that is under way. */
static void stop_hello(struct keeper *k)
{
	if (!k->hello)
		return;
	kill(k->hello, SIGKILL);
	while (waitpid(k->hello, NULL, 0) < 0 && errno == EINTR)
		;
	close(k->report);
	k->hello = 0;
}

/* The agent's line on the console only tells when to try: a guest that prints
 * it early gains a connect that fails.  A hello that began before the line is
 * waiting for an answer to a packet that nobody got. */
static void look_for_hint(struct keeper *k, const char *data, size_t len)
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
		if (strcmp(k->hint, AGENT_READY) == 0) {
			stop_hello(k);
			k->next_hello = 0;
		}
	}
}

static void read_console(struct keeper *k)
{
	char data[16384];
	ssize_t n = read(k->launch.console, data, sizeof(data));

	if (n <= 0)
		return;
	console_write(&k->log, data, (size_t)n);
	if (!k->ready)
		look_for_hint(k, data, (size_t)n);
}

static void read_errors(struct keeper *k)
{
	char data[512];
	ssize_t n = read(k->launch.errors, data, sizeof(data));

	if (n == 0) {
		close(k->launch.errors);
		k->launch.errors = -1;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (k->errors_len + 1 == sizeof(k->errors)) {
			k->errors_len = sizeof(k->errors) / 2;
			memmove(k->errors, k->errors + k->errors_len - 1,
				k->errors_len);
		}
		k->errors[k->errors_len++] = data[i];
	}
}

/* ---- events ------------------------------------------------------------- */

static void one_event(struct keeper *k, enum vmm_event event)
{
	switch (event) {
	case EVENT_HELLO:
		write_value(k->s->run, "vmm-version", "%s %s", k->driver->name,
			    k->driver->version(k->watcher));
		break;
	case EVENT_PAUSED:
		write_value(k->s->run, "paused", "1");
		break;
	case EVENT_RESUMED:
		unlinkat(k->s->run, "paused", 0);
		break;
	case EVENT_POWEROFF:
	case EVENT_REBOOT:
	case EVENT_PANIC:
		/* A panic is followed by the shutdown that it causes. */
		if (k->last_event != EVENT_PANIC)
			k->last_event = event;
		break;
	case EVENT_NONE:
		break;
	}
}

static void read_events(struct keeper *k)
{
	bool closed = false;
	enum vmm_event event;

	while ((event = k->driver->event(k->watcher, &closed)) != EVENT_NONE)
		one_event(k, event);
	if (closed) {
		k->driver->unwatch(k->watcher);
		k->watcher = NULL;
		k->events = -1;
	}
}

/* ---- becoming ready ----------------------------------------------------- */

static void kill_vmm(const struct keeper *k)
{
	if (k->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
}

/* The guest cannot be used: end it and leave the reason. */
static void give_up(struct keeper *k, const char *why)
{
	char text[600];

	snprintf(text, sizeof(text), "guest did not become ready: %s", why);
	tell_starter(k, text);
	kill_vmm(k);
	k->ready = true;
}

static void hello_ended(struct keeper *k)
{
	char why[500] = "";
	ssize_t n = read_full(k->report, why, sizeof(why) - 1);
	int status = 0;

	if (n >= 0)
		why[n] = '\0';
	close(k->report);
	k->report = -1;
	while (waitpid(k->hello, &status, 0) < 0 && errno == EINTR)
		;
	k->hello = 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == HELLO_RETRY) {
		k->next_hello = now_ms() + HELLO_EVERY_MS;
		return;
	}
	if (status != 0) {
		give_up(k, *why ? why : "no answer");
		return;
	}
	if (write_value(k->s->run, "generation", "%s", k->generation) < 0) {
		give_up(k, "cannot record its generation");
		return;
	}
	k->ready = true;
	tell_starter(k, "ready");
}

static void try_hello(struct keeper *k)
{
	if (now_ms() >= k->give_up) {
		give_up(k, "no answer in time");
		return;
	}
	if (now_ms() < k->next_hello)
		return;
	k->hello = hello_start(k->s, k->generation, &k->report);
	if (k->hello < 0) {
		k->hello = 0;
		k->next_hello = now_ms() + HELLO_EVERY_MS;
	}
}

/* ---- the end ------------------------------------------------------------ */

/* The last line that the VMM printed on stderr. */
static const char *last_error(struct keeper *k)
{
	char *line;

	while (k->errors_len > 0 && k->errors[k->errors_len - 1] == '\n')
		k->errors_len--;
	k->errors[k->errors_len] = '\0';
	line = strrchr(k->errors, '\n');
	return line ? line + 1 : k->errors;
}

static void describe_end(struct keeper *k, const siginfo_t *info, char *why,
			 size_t size)
{
	const char *errors = last_error(k);

	if (k->last_event == EVENT_PANIC)
		snprintf(why, size, "guest panicked");
	else if (k->last_event == EVENT_POWEROFF)
		snprintf(why, size, "guest powered off");
	else if (k->last_event == EVENT_REBOOT)
		snprintf(why, size, "guest rebooted");
	else if (!k->ours)
		snprintf(why, size, "VMM ended, how is not known");
	else if (info->si_code == CLD_EXITED && *errors)
		snprintf(why, size, "VMM exited with %d: %.300s",
			 info->si_status, errors);
	else if (info->si_code == CLD_EXITED)
		snprintf(why, size, "VMM exited with %d", info->si_status);
	else
		snprintf(why, size, "VMM killed by signal %d (%s)",
			 info->si_status, strsignal(info->si_status));
}

static void bury(struct keeper *k)
{
	char why[512], clean[512];
	siginfo_t info = {0};

	if (k->ours)
		waitid(P_PID, (id_t)k->s->vmm.pid, &info, WEXITED);
	for (int i = 0; i < 64 && k->launch.console >= 0; i++)
		read_console(k);
	for (int i = 0; i < 64 && k->launch.errors >= 0; i++)
		read_errors(k);
	if (k->watcher)
		read_events(k);
	describe_end(k, &info, why, sizeof(why));
	printable(clean, sizeof(clean), why);
	if (faccessat(k->s->run, "stopping", F_OK, 0) == 0)
		write_value(k->s->run, "exit", "stopped");
	else
		write_value(k->s->run, "exit", "dead: %s", clean);
	stop_hello(k);
	tell_starter(k, clean);
}

/* Sandboxes made to be removed at their end are, by a process that waits for
 * whoever still holds the lock. */
static void remove_if_asked(const struct sandbox *s)
{
	if (faccessat(s->dir, "rm", F_OK, 0) < 0 || fork() != 0)
		return;
	execl(sibling("ark-vm"), "ark-vm", "rm", "-f", s->name, (char *)NULL);
	_exit(EX_OSERR);
}

/* ---- the loop ----------------------------------------------------------- */

static int poll_timeout(const struct keeper *k)
{
	uint64_t now = now_ms();

	if (k->ready || k->hello)
		return -1;
	return k->next_hello <= now ? 0 : (int)(k->next_hello - now);
}

static void watch(struct keeper *k)
{
	for (;;) {
		struct pollfd p[] = {
			{.fd = k->pidfd, .events = POLLIN},
			{.fd = k->launch.console, .events = POLLIN},
			{.fd = k->launch.errors, .events = POLLIN},
			{.fd = k->events, .events = POLLIN},
			{.fd = k->hello ? k->report : -1, .events = POLLIN},
		};

		if (poll(p, ARRAY_LEN(p), poll_timeout(k)) < 0 &&
		    errno != EINTR)
			return;
		if (p[1].revents)
			read_console(k);
		if (p[2].revents)
			read_errors(k);
		if (p[3].revents)
			read_events(k);
		if (p[4].revents)
			hello_ended(k);
		if (p[0].revents)
			break;
		if (!k->ready && !k->hello)
			try_hello(k);
	}
	bury(k);
}

void keeper_watch(struct keeper *k)
{
	k->pidfd = proc_pidfd(&k->s->vmm);
	k->watcher = k->driver->watch(k->s->run, &k->events);
	if (!k->watcher)
		k->events = -1;
	if (k->pidfd >= 0)
		watch(k);
	else
		bury(k);
	remove_if_asked(k->s);
}
