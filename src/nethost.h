/*
 * nethost.h - the firewall of the host and of a sandbox, through whichever
 * iptables this host has.
 */
#ifndef ARK_NETHOST_H
#define ARK_NETHOST_H

#include "chains.h"

#include <limits.h>

/* Turn what a function prints on `out` into a string that the caller frees. */
#define AS_TEXT(text, call)                                                    \
	do {                                                                   \
		size_t length_;                                                \
		FILE *out = open_memstream(&(text), &length_);                 \
		if (!out)                                                      \
			return fail_errno(EX_OSERR, "no memory");              \
		call;                                                          \
		fclose(out);                                                   \
	} while (0)

struct nethost {
	int run;		 /* ARK_RUN */
	int lock;		 /* ARK_RUN/net.lock */
	char run_path[PATH_MAX]; /* canonical */
	char program[PATH_MAX];	 /* xtables-nft-multi or xtables-legacy-multi */
	struct chains want;
};

#define NETHOST_NONE                                                           \
	{                                                                      \
		.run = -1, .lock = -1                                          \
	}
#define AUTO_NETHOST __attribute__((cleanup(nethost_close)))

/* Open ARK_RUN and net.lock (not locked yet), find the back end and what the
 * chains should be.  All of these: 0, or the negative exit code, told. */
int nethost_open(struct nethost *h);
void nethost_close(struct nethost *h);

/* All reads and changes of host rules under LOCK_EX; links are made under
 * LOCK_SH, so that gc, under LOCK_EX, sees no half of them. */
int nethost_lock(struct nethost *h, int op);
void nethost_unlock(struct nethost *h);

/* iptables-save of all tables or of one; owned by the caller. */
int nethost_save(struct nethost *h, const char *table, char **save);

/* iptables-restore --noflush; an empty text runs nothing. */
int nethost_restore(struct nethost *h, const char *text);

/* iptables-restore of whole tables in another namespace.  `lock` is the lock
 * file that legacy iptables takes. */
int nethost_restore_in(struct nethost *h, int netns, const char *lock,
		       const char *text);

/* Make the host's chains right when they are not (or, `all`, look at each
 * part) and read back.  *mended: something was done, so published ports may
 * have gone with it.  Locked by the caller. */
int nethost_ensure(struct nethost *h, bool all, bool *mended);

/* Look only. */
int nethost_check(struct nethost *h);

/* Replace the published ports of a slot by these, in one step. */
int nethost_publish(struct nethost *h, const struct plan *p,
		    const struct port *ports, size_t n);

#endif
