/*
 * netfacts.h - what has to be known about the host's network, out of files.
 */
#ifndef ARK_NETFACTS_H
#define ARK_NETFACTS_H

#include "plan.h"

/* The first IPv4 resolver that is not on the loopback; "" when there is none.
 */
void find_resolver(char address[16]);

/* Out of the text of a resolv.conf; *loopback: there was one on 127/8. */
bool parse_resolver(const char *text, char address[16], bool *loopback);

/* The host's addresses into p->own, without those of the loopback. */
void find_own(struct plan *p);

/* Refuse (-EX_UNAVAILABLE, told) when a route or an address of the host that
 * is not ours lies within the /16. */
int check_net_free(uint32_t net);

/* Let what comes in by these interfaces be forwarded: those with a default
 * route (`egress`) and those that own the address of a port that is published
 * beyond the host.  0, or the negative exit code, told. */
int forward_uplinks(bool egress, const struct port *ports, size_t n);

/* Write "NAME VALUE" lines to files below /proc/sys/net of the caller's
 * network namespace.  A missing ipv6/ is fine.  0, or told. */
int write_sysctls(const char *text);

#endif
