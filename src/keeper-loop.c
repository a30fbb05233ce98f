/*
 * keeper-loop.c - watch a VMM and bury it.
 *
 * The end, in this order: the last console bytes, the last events (they say
 * why), the network down (its address is not given away before), the cgroup
 * (which knows whether memory was the reason), then `exit` in the slot, then
 * the slot's lock and the held ports go with the process.
 */
#include "cgroup.h"
#include "expiry.h"
#include "keeper-loop.h"

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

static void read_console(struct keeper *k)
{
	char data[16384];
	ssize_t n = read(k->launch.console, data, sizeof(data));

	if (n <= 0)
		return;
	console_write(&k->log, data, (size_t)n);
	if (!k->settled)
		ready_console(k, data, (size_t)n);
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

void keeper_kill(const struct keeper *k)
{
	if (k->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, k->pidfd, SIGKILL, NULL, 0);
}

static void one_event(struct keeper *k, enum vmm_event event)
{
	switch (event) {
	case EVENT_HELLO:
		write_value(k->s->run, "vmm-version", "%s %s", k->driver->name,
			    k->driver->version(k->watcher));
		break;
	case EVENT_PAUSED:
		/* A hold is short: whoever comes meanwhile just waits. */
		if (!k->paused_for_hold)
			write_value(k->s->run, "paused", "1");
		hold_paused(k);
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
		if (k->driver->outlives_guest && event != EVENT_POWEROFF)
			keeper_kill(k);
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

static bool ended_by_us(const struct keeper *k, const siginfo_t *info)
{
	return *k->verdict && (!k->ours || info->si_status == SIGKILL);
}

static void describe_end(struct keeper *k, const siginfo_t *info, char *why,
			 size_t size)
{
	const char *errors = last_error(k);

	if (cgroup_oom(k->s, why, size))
		return;
	if (ended_by_us(k, info))
		snprintf(why, size, "%s", k->verdict);
	else if (k->last_event == EVENT_PANIC)
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
	ready_stop(k);
	ready_disconnect(k->s);
	describe_end(k, &info, why, sizeof(why));
	cgroup_remove(k->s->slot);
	printable(clean, sizeof(clean), why);
	if (faccessat(k->s->run, "stopping", F_OK, 0) == 0)
		write_value(k->s->run, "exit", "stopped");
	else
		write_value(k->s->run, "exit", "dead: %s", clean);
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

/* What a keeper waits for, in this order. */
enum {
	ON_END,
	ON_CONSOLE,
	ON_ERRORS,
	ON_EVENTS,
	ON_LOAD,
	ON_HELLO,
	ON_NET,
	ON_EXPIRY,
	ON_SOCK,
	ON_CLIENT,
	ON_COUNT = ON_CLIENT + KEEPER_CLIENTS
};

static void collect(const struct keeper *k, struct pollfd p[ON_COUNT])
{
	const int fd[ON_CLIENT] = {
		[ON_END] = k->pidfd,
		[ON_CONSOLE] = k->launch.console,
		[ON_ERRORS] = k->launch.errors,
		[ON_EVENTS] = k->events,
		[ON_LOAD] = k->load.pid ? k->load.report : -1,
		[ON_HELLO] = k->hello.pid ? k->hello.report : -1,
		[ON_NET] = k->net.pid ? k->net.report : -1,
		[ON_EXPIRY] = k->expiry,
		[ON_SOCK] = k->sock.listener,
	};

	for (int i = 0; i < ON_COUNT; i++) {
		p[i].fd = i < ON_CLIENT ? fd[i] : k->sock.client[i - ON_CLIENT];
		p[i].events = POLLIN;
		p[i].revents = 0;
	}
}

static bool clients_spoke(const struct pollfd p[ON_COUNT])
{
	for (int i = ON_SOCK; i < ON_COUNT; i++)
		if (p[i].revents)
			return true;
	return false;
}

/* Once: what it was ended for already stays the reason. */
static void expired(struct keeper *k)
{
	close(k->expiry);
	k->expiry = -1;
	if (!*k->verdict)
		ready_give_up(k, "expired");
}

static void watch(struct keeper *k)
{
	struct pollfd p[ON_COUNT];

	/* Without the limit that was asked for it must not run. */
	if (expiry_watch(k->s, &k->expiry) < 0)
		ready_give_up(k, "cannot watch its time: %s", strerror(errno));

	do {
		int timeout = ready_tick(k);

		collect(k, p);
		if (poll(p, ON_COUNT, timeout) < 0 && errno != EINTR)
			return;
		if (p[ON_CONSOLE].revents)
			read_console(k);
		if (p[ON_ERRORS].revents)
			read_errors(k);
		if (p[ON_EVENTS].revents)
			read_events(k);
		if (p[ON_LOAD].revents)
			ready_step(k, &k->load);
		if (p[ON_HELLO].revents)
			ready_step(k, &k->hello);
		if (p[ON_NET].revents)
			ready_step(k, &k->net);
		if (p[ON_EXPIRY].revents)
			expired(k);
		if (clients_spoke(p))
			hold_serve(k);
	} while (!p[ON_END].revents);
	bury(k);
}

void keeper_watch(struct keeper *k)
{
	k->pidfd = proc_pidfd(&k->s->vmm);
	k->watcher = k->driver->watch(k->s->run, &k->events);
	if (!k->watcher)
		k->events = -1;
	/* The keeper before us may have died with a hold in its hands. */
	else if (!k->ours && faccessat(k->s->run, "paused", F_OK, 0) < 0)
		k->driver->pause(k->watcher, false);
	if (k->pidfd >= 0) {
		watch(k);
	} else if (k->ours) {
		/* It cannot be watched: it must not live.  It is our child,
		 * so its pid is still its own. */
		kill(k->s->vmm.pid, SIGKILL);
		bury(k);
	} else if (proc_alive(&k->s->vmm)) {
		return; /* the next command tries again */
	} else {
		bury(k);
	}
	remove_if_asked(k->s);
}
