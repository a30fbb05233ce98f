/*
 * netns.h - the network namespace that a sandbox' VMM lives in.
 *
 * The inside is the same in every sandbox, so that nothing in a guest has to
 * change when its memory is mapped into many:
 *	tap0	10.0.2.1/30, 02:00:0a:00:02:01
 *	guest	10.0.2.2, 02:00:0a:00:02:02, a permanent neighbour (a clone's
 *		ARP cache and ours are right from the first packet on)
 * Nothing else is in it: no loopback, no route, no IPv6.
 */
#ifndef ARK_NETNS_H
#define ARK_NETNS_H

#include <stdbool.h>
#include <sys/types.h>

#define TAP_NAME "tap0"
#define GUEST_MAC "02:00:0a:00:02:02"
#define TAP_MAC "02:00:0a:00:02:01"

/* Move this process into a new network namespace and make tap0 in it.  The
 * tap's descriptor, owned by the caller (the device goes with the last one),
 * or -1 and errno, *step naming what failed.  `by_name`: the tap stays and
 * belongs to `uid`, who opens it; the descriptor is one of /dev/null. */
int netns_enter_new(bool by_name, uid_t uid, const char **step);

#endif
