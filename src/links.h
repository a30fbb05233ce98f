/*
 * links.h - links, connections and namespaces, through ip, tc, conntrack; and
 * the slots that they belong to.
 */
#ifndef ARK_LINKS_H
#define ARK_LINKS_H

#include "plan.h"
#include "state.h"

/* The network namespace of a VMM, certainly its own and not ours, waiting until
 * it has one: a descriptor, or -1 and errno. */
int link_netns(const struct proc *vmm);

/* Call work() with this process in the namespace, and come back. */
int link_within(int netns, int (*work)(void *data), void *data);

/* `ip -batch` or `tc -batch`; an empty text runs nothing.  All of these: 0, or
 * the negative exit code, told. */
int link_batch(const char *program, const char *text, int netns);

/* Remove the uplink by its inner end: what is inside is ours, whatever its
 * other end is called, and whether or not it has its alias yet. */
int link_drop(int netns);

/* Remove what is left of an earlier uplink of this sandbox.  A link of that
 * name that is not ours is refused. */
int link_clear(const struct plan *p, const char *run, int netns);

/* Remove a link of the host when it is there and belongs to `run`. */
int link_remove(const char *name, const char *run);

/* Call `each` with the slot of every link of the host that belongs to `run`. */
int link_each(const char *run, int (*each)(int slot, void *data), void *data);

/* conntrack -D: the connections with this address (-s: from, -r: answered
 * by). */
int link_forget(int netns, const char *option, const char *address);
int link_forget_port(const char *outer, const char *protocol, const char *port);

struct slot {
	int number;
	int dir;
	char name[NAME_MAX_LEN + 2]; /* of the sandbox, or "" */
	bool alive;		     /* its VMM */
	bool held; /* somebody else's lock; else ours while `each` runs */
};

/* Call `each` with every slot of ARK_RUN; goes on after a failure and returns
 * the first one. */
int each_slot(int run, int (*each)(struct slot *slot, void *data), void *data);

#endif
