/*
 * slot.h - slots: the one thing that ark allocates.
 *
 * mkdir of ARK_RUN/NNNN is the allocator.  Addresses, uids and names of kernel
 * objects are arithmetic on the number:
 *	1. uid (and gid) of the VMM	uid_base + slot
 *	2. directory			ARK_RUN/%04x
 */
#ifndef ARK_SLOT_H
#define ARK_SLOT_H

#include "state.h"

/* Allocate a slot for the locked sandbox and record it on both sides; s->slot
 * and s->run are set.  Returns the descriptor that holds flock on the slot, to
 * be inherited by the keeper; or the negative exit code, told. */
int slot_alloc(struct sandbox *s);

/* Give the slot of a VM that has ended back: its `exit` becomes the sandbox'
 * own, the directory goes.  The sandbox is locked; nothing of it runs.  0, or
 * the negative exit code, told (EX_TEMPFAIL: somebody still holds the slot). */
int slot_release(struct sandbox *s);

/* flock an existing slot for a new keeper: the descriptor, or -1 and errno
 * (EWOULDBLOCK: another keeper has it). */
int slot_hold(const struct sandbox *s);

#endif
