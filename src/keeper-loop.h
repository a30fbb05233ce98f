/*
 * keeper-loop.h - the state of a keeper: what keeper.c becomes and
 * keeper-loop.c does.
 */
#ifndef ARK_KEEPER_LOOP_H
#define ARK_KEEPER_LOOP_H

#include "console.h"
#include "keeper-sock.h"
#include "launch.h"

#define READY_LIMIT_MS 120000 /* TCG on a busy host is slow, not dead */
#define HELLO_BLIND_MS 5000   /* without the agent's line on the console */
#define HELLO_EVERY_MS 500    /* after one that met nobody */

/* A child that does one thing and says on a pipe why it could not. */
struct step {
	pid_t pid; /* 0: none */
	int report;
};

struct keeper {
	struct sandbox *s;
	const struct vmm *driver;
	struct launch launch;
	struct console log;
	int pidfd;
	bool ours; /* the VMM is our child: its exit status is known */
	void *watcher;
	int events;

	/* what other commands ask, and the host ports that are held */
	struct keeper_sock sock;
	enum { HOLD_NONE, HOLD_WAITS, HOLD_GIVEN } hold[KEEPER_CLIENTS];
	bool paused_for_hold, vmm_paused;

	int expiry; /* readable when its time is over, or -1 */

	/* becoming ready (keeper-ready.c) */
	bool settled; /* ready, or given up */
	bool greeted, connected;
	int result; /* pipe to `ark-vm start`, or -1 */
	char generation[37];
	struct step load, hello, net;
	uint64_t next_hello, give_up;
	char hint[64]; /* the console's last line so far */
	size_t hint_len;

	/* the end */
	enum vmm_event last_event;
	char verdict[512]; /* why we ended it, if we did */
	char errors[1024]; /* the end of the VMM's stderr */
	size_t errors_len;
};

/* ---- keeper-ready.c ----------------------------------------------------- */

/* Hold the host ports that the sandbox publishes and write them into the slot;
 * 0, or -1 with the reason. */
int ready_reserve(struct keeper *k, char *why, size_t size);

/* Hold again what the slot says that another keeper held. */
void ready_reserve_again(struct keeper *k);

/* Begin: the network, while the guest boots. */
void ready_begin(struct keeper *k);

/* New bytes of the console, which may hold the agent's line. */
void ready_console(struct keeper *k, const char *data, size_t len);

/* A step has something to say; `step` is &k->load, &k->hello or &k->net. */
void ready_step(struct keeper *k, struct step *step);

/* Do what is due; the milliseconds until something is, or -1. */
int ready_tick(struct keeper *k);

/* The guest cannot be used, or no longer: end it.  The reason is told at the
 * burial, where it is known whether this was the end or a VMM that was dying by
 * itself, which takes its network and its answers along. */
void ready_give_up(struct keeper *k, const char *fmt, ...) PRINTF(2, 3);

/* End the steps that are under way. */
void ready_stop(struct keeper *k);

/* Take the network of the slot down; waits for it. */
void ready_disconnect(const struct sandbox *s);

/* ---- keeper-hold.c ------------------------------------------------------ */

/* The keeper's socket has something to say. */
void hold_serve(struct keeper *k);

/* The VM has been paused: whoever waits for that is told. */
void hold_paused(struct keeper *k);

/* ---- keeper-loop.c ------------------------------------------------------ */

/* Watch the VM of k->s until its end, record that, carry out `rm`. */
void keeper_watch(struct keeper *k);

/* End the VMM, if it can be seen. */
void keeper_kill(const struct keeper *k);

/* Answer `ark-vm start`, which waits: "ready", or a line for people. */
void tell_starter(struct keeper *k, const char *text);

#endif
