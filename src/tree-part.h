/*
 * tree-part.h - what tree.c, tree-send.c and tree-recv.c have in common; for
 * nobody else.  They are compiled into the agent too: no ark.h in them.
 */
#ifndef ARK_TREE_PART_H
#define ARK_TREE_PART_H

#include "proto.h"
#include "tree.h"

#include <limits.h>

#define TREE_DEPTH 128 /* directories in one another: a descriptor each */
#define TREE_PATH 4096 /* of a path in the stream, with its NUL */
#define ENTRY_HEAD 20  /* mode, size, mtime; the path follows */

/* "cannot VERB 'TOP/PATH': WHY"; always -1. */
int tree_fail(struct tree_error *error, const char *verb, const char *top,
	      const char *path, const char *why);

/* Where a received thing goes: holder/leaf, or without a leaf into the
 * directory `holder` itself. */
struct tree_place {
	int holder; /* a directory, owned; or -1 */
	char leaf[NAME_MAX + 1];
	char top[TREE_PATH + NAME_MAX + 2]; /* for messages */
};

/* By the rules of cp -r (tree.h).  0, or -1 and the reason; the place is set
 * either way. */
int tree_resolve(struct tree_place *place, int dir, const char *target,
		 const char *base, unsigned flags, struct tree_error *error);

#endif
