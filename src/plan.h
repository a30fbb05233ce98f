/*
 * plan.h - everything that `ark-net up` and `open` feed to other programs, as
 * text made from a slot and a policy and nothing else.
 *
 * Arithmetic on the slot n (those of slot.h go on here):
 *	3. outer address		net + n (ark.conf: net, 10.20.0.0/16)
 *	4. uplink, host's end		ark%04x
 * The same in every sandbox:
 *	5. uplink, sandbox' end		eth0
 *	6. MAC addresses of the ends	02:00:0a:14:00:01 and ...:02
 *	7. the sandbox' next hop	169.254.1.1, which nobody has: both ends
 *					have permanent neighbours
 */
#ifndef ARK_PLAN_H
#define ARK_PLAN_H

#include "ark.h"
#include "publish.h"

#define UPLINK "eth0"
#define UPLINK_MAC "02:00:0a:14:00:02"
#define LINK_MAC "02:00:0a:14:00:01"
#define NEXT_HOP "169.254.1.1"
#define LINK_PREFIX "ark"
#define OWN_MAX 32

/* What no guest may reach: private, shared, link-local (metadata), reserved
 * and multicast networks.  NULL at the end. */
extern const char *const private_networks[];

struct plan {
	int slot;
	char name[NAME_MAX_LEN + 1];
	uint32_t net;	  /* host order */
	char outer[16];	  /* address */
	char link[16];	  /* name of the host's end */
	char dns[16];	  /* resolver, or "" */
	bool open;	  /* policy */
	uint64_t rate;	  /* bits per second; 0: no limit */
	char mark[24];	  /* ark:HASH:NNNN: of ARK_RUN and slot */
	char comment[96]; /* that and the name; of rules and of the link */
	size_t owned;
	char own[OWN_MAX][16]; /* the host's addresses: denied as well */
};

/* Slot, name and what follows from them; `run` is ARK_RUN, canonical. */
void plan_make(struct plan *p, int slot, const char *name, const char *run,
	       uint32_t net);

/* The name of the host's end. */
void plan_link(int slot, char link[16]);

/* "ark:HASH:" of all that belongs to an ARK_RUN; at least 16 bytes. */
void plan_mark(const char *run, char mark[16]);

/* FNV-1a, for marks: what has to be told apart is not chosen by an attacker. */
uint32_t plan_hash(const char *text);

/* In the sandbox' namespace: iptables-restore, whole tables. */
void plan_rules(const struct plan *p, FILE *out);

/* In the sandbox' namespace: ip -batch.  `host` is the path of a file of the
 * host's network namespace. */
void plan_inside(const struct plan *p, const char *host, FILE *out);

/* In the sandbox' namespace: tc -batch; nothing without a rate. */
void plan_shape(const struct plan *p, FILE *out);

/* "NAME VALUE" lines, names below /proc/sys/net. */
void plan_inside_sysctl(FILE *out);
void plan_host_sysctl(const struct plan *p, FILE *out);

/* On the host: ip -batch.  First whose the link is, then the rest. */
void plan_mark_link(const struct plan *p, FILE *out);
void plan_host(const struct plan *p, FILE *out);

/* On the host: the rule of one port, for iptables-restore --noflush. */
void plan_port(const struct plan *p, const struct port *port, FILE *out);

#endif
