/*
 * keeper-loop.h - the state of a keeper: what keeper.c becomes and
 * keeper-loop.c does.
 */
#ifndef ARK_KEEPER_LOOP_H
#define ARK_KEEPER_LOOP_H

#include "console.h"
#include "launch.h"

#define READY_LIMIT_MS 120000 /* TCG on a busy host is slow, not dead */
#define HELLO_BLIND_MS 5000   /* without the agent's line on the console */
#define HELLO_EVERY_MS 500    /* after one that met nobody */

struct keeper {
	struct sandbox *s;
	const struct vmm *driver;
	struct launch launch;
	struct console log;
	int pidfd;
	bool ours; /* the VMM is our child: its exit status is known */
	void *watcher;
	int events;

	/* becoming ready */
	bool ready;
	int result; /* pipe to `ark-vm start`, or -1 */
	char generation[37];
	pid_t hello;
	int report;
	uint64_t next_hello, give_up;
	char hint[64]; /* the console's last line so far */
	size_t hint_len;

	/* the end */
	enum vmm_event last_event;
	char errors[1024]; /* the end of the VMM's stderr */
	size_t errors_len;
};

/* Watch the VM of k->s until its end, record that, carry out `rm`. */
void keeper_watch(struct keeper *k);

/* Answer `ark-vm start`, which waits: "ready", or a line for people. */
void tell_starter(struct keeper *k, const char *text);

#endif
