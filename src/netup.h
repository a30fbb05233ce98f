/*
 * netup.h - the network of one sandbox, from nothing to its ports and back.
 */
#ifndef ARK_NETUP_H
#define ARK_NETUP_H

#include "nethost.h"
#include "state.h"

/* All but net_settings() and net_plan() take net.lock, when they change
 * rules.  0, or the negative exit code, told. */

/* Policy and rate into the plan of a sandbox in whatever state. */
int net_settings(const struct sandbox *s, struct plan *p);

/* The plan of a sandbox that holds a slot. */
int net_plan(const struct nethost *h, const struct sandbox *s, struct plan *p);

/* Rules, uplink, addresses, routes; over whatever is there already. */
int net_up(struct nethost *h, struct sandbox *s);

/* The same, but no packet leaves or comes before net_open(). */
int net_prepare(struct nethost *h, struct sandbox *s);

/* Let packets through, if they are held; publish the ports of slot/ports, and
 * no others. */
int net_open(struct nethost *h, struct sandbox *s);

/* Take everything down that slot `dir` may have on the host; the VMM may be
 * dead, the sandbox removed. */
int net_down(struct nethost *h, int dir, int slot, const char *name);

/* Load the rules of the policy that vm/NAME/policy now says. */
int net_policy(struct nethost *h, struct sandbox *s);

/* Make the host's chains right, and the published ports of all slots. */
int net_init(struct nethost *h);

/* Remove what belongs to slots that are not alive; prints a line for each. */
int net_gc(struct nethost *h);

/* Forget the connections through a port that was published. */
int net_cut(const struct plan *p, const struct port *port);

#endif
