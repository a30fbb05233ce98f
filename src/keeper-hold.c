/*
 * keeper-hold.c - pauses that others lease from the keeper.
 *
 * The keeper pauses and resumes over its own connection to the VMM, so that it
 * can do so when the holder is dead.  What the user has paused stays so: only
 * a pause that a hold brought about is ended with the last hold.
 */
#include "keeper-loop.h"

#include <fcntl.h>

static bool anybody_holds(const struct keeper *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->hold[i] != HOLD_NONE)
			return true;
	return false;
}

static void hold(void *data, size_t client)
{
	struct keeper *k = data;
	bool paused = faccessat(k->s->run, "paused", F_OK, 0) == 0;

	if (!k->watcher) {
		keeper_sock_reply(&k->sock, client, "busy no VMM");
		return;
	}
	if (paused && !k->paused_for_hold) {
		k->hold[client] = HOLD_GIVEN;
		keeper_sock_reply(&k->sock, client, "ok paused");
		return;
	}
	k->hold[client] = HOLD_WAITS;
	if (!k->paused_for_hold) {
		k->paused_for_hold = true;
		k->driver->pause(k->watcher, true);
	} else if (k->vmm_paused) {
		hold_paused(k);
	}
}

void hold_paused(struct keeper *k)
{
	k->vmm_paused = true;
	for (size_t i = 0; i < KEEPER_CLIENTS; i++) {
		if (k->hold[i] != HOLD_WAITS)
			continue;
		k->hold[i] = HOLD_GIVEN;
		keeper_sock_reply(&k->sock, i, "ok running");
	}
}

static void release(void *data, size_t client)
{
	struct keeper *k = data;

	if (k->hold[client] == HOLD_NONE)
		return;
	k->hold[client] = HOLD_NONE;
	if (!k->paused_for_hold || anybody_holds(k))
		return;
	k->paused_for_hold = k->vmm_paused = false;
	if (k->watcher)
		k->driver->pause(k->watcher, false);
}

void hold_serve(struct keeper *k)
{
	const struct keeper_hooks hooks = {
		.hold = hold,
		.release = release,
		.data = k,
	};

	keeper_sock_serve(&k->sock, &hooks);
}
