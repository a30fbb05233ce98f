/*
 * lineage.h - what came of what: snapshots and sandboxes, and the snapshot that
 * each was taken or restored from.
 *
 * What is known of a parent is its name, which another snapshot may have got
 * since: that one is younger than the child, and none of its.
 */
#ifndef ARK_LINEAGE_H
#define ARK_LINEAGE_H

#include "ark.h"

struct relative {
	char name[NAME_MAX_LEN + 1];
	char parent[NAME_MAX_LEN + 2]; /* a snapshot, or "" */
	char created[UTC_SIZE];
	bool snapshot;	/* or a sandbox */
	char what[300]; /* "snapshot (disk)", or the state of a sandbox */
};

struct lineage {
	struct relative *all; /* owned */
	size_t n;
};

#define LINEAGE_NONE                                                           \
	{                                                                      \
		.all = NULL                                                    \
	}
#define AUTO_LINEAGE __attribute__((cleanup(lineage_free)))

/* Snapshots, then sandboxes, those whose name is wanted (NULL: all).  0, or the
 * negative exit code, told. */
int lineage_read(struct lineage *l,
		 bool (*wanted)(const char *name, const void *data),
		 const void *data);
void lineage_free(struct lineage *l);

bool lineage_child(const struct relative *parent, const struct relative *child);

/* Which of them is the parent of the i-th; `n` when none is.  Files of an odd
 * clock can make a loop. */
size_t lineage_parent(const struct lineage *l, size_t i);

#endif
