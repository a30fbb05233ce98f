/*
 * expiry.h - the time that a sandbox may run (--ttl).
 *
 * vm/NAME/ttl has how many seconds, for every start anew; SLOT/expires has when
 * this one ends, on the clock that goes on while the host sleeps and that
 * nobody can set.  It is written before there is a VM, so that a keeper that
 * comes later goes on with the same end.
 */
#ifndef ARK_EXPIRY_H
#define ARK_EXPIRY_H

#include "state.h"

/* Write the deadline of a sandbox that has just got its slot; without a ttl
 * nothing.  0, or -1 and errno. */
int expiry_record(const struct sandbox *s);

/* A descriptor that can be read from the deadline on, owned by the caller, or
 * -1 without one.  0, or -1 and errno when there is one and it cannot be
 * watched. */
int expiry_watch(const struct sandbox *s, int *timer);

/* The milliseconds left of one that runs (0: it is over); false without a
 * deadline. */
bool expiry_left(const struct sandbox *s, uint64_t *ms);

#endif
