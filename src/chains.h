/*
 * chains.h - the host's own chains: what they should be, what they are, and the
 * text that makes the one of the other.
 */
#ifndef ARK_CHAINS_H
#define ARK_CHAINS_H

#include "plan.h"

struct chains {
	uint32_t net; /* host order */
	char dns[16]; /* resolver, or "" */
};

/* Is all in `save`, the output of iptables-save?  Else the reason. */
bool chains_ok(const struct chains *c, const char *save, char *why,
	       size_t size);

/* What iptables-restore --noflush must be fed when `save` is what there is;
 * nothing when that is right.  ARK-PF keeps its rules. */
void chains_mend(const struct chains *c, const char *save, FILE *out);

/* The same for ip6tables: all IPv6 from a sandbox is dropped. */
bool chains6_ok(const char *save);
void chains6_mend(const char *save, FILE *out);

/* Is any chain of ark's in it? */
bool chains_any(const char *save);

/* Print a "-D ARK-PF" line for each published port in `save` (table nat) whose
 * comment begins with `comment`; the number of them. */
size_t chains_unpublish(const char *save, const char *comment, FILE *out);

/* Call `each` with the slot in the comment of each published port that begins
 * with `mark` (plan_mark). */
void chains_slots(const char *save, const char *mark,
		  void (*each)(int slot, void *data), void *data);

#endif
