/*
 * snap.h - snapshots: taken of a sandbox, restored to a sandbox.
 *
 * A snapshot is ARK_ROOT/snap/NAME, sealed: one instant of disk and, of a VM
 * that ran, of memory and devices.  snapfile.h is what it says of itself.
 */
#ifndef ARK_SNAP_H
#define ARK_SNAP_H

#include "snapfile.h"
#include "state.h"

/* How long the VM stood still, and how long all of it took. */
struct snap_times {
	double pause_ms, total_ms;
	uint64_t memory_bytes; /* written */
};

/* Take one of the sandbox, whatever it is doing.  An empty name is filled in,
 * "SANDBOX-N".  0, or the negative exit code, told; then there is nothing of
 * that name, and the VM goes on either way. */
int snap_take(struct sandbox *s, char name[NAME_MAX_LEN + 1],
	      struct snap_times *times);

/* A snapshot that is going to be restored, once or many times. */
struct snap {
	int dir;
	int ram; /* sealed memory, shared with all its live clones, or -1 */
	struct snap_manifest manifest;
};

#define SNAP_NONE                                                              \
	{                                                                      \
		.dir = -1, .ram = -1                                           \
	}
#define AUTO_SNAP __attribute__((cleanup(snap_close)))

/* Open and check it: name, manifest, files unchanged, this host able to go on
 * from it; with `load`, its memory as well.  0, or the negative exit code,
 * told. */
int snap_open(struct snap *snap, const char *name, bool load);
void snap_close(struct snap *snap);

/* Make the sandbox `name` out of it and start it: returns when an exec has
 * worked in it.  An empty name is filled in: the first of "BASE-FROM" and on
 * that is free, also when others make some at the same time.  0, or the
 * negative exit code, told, with nothing left of it.
 */
int snap_restore(const struct snap *snap, char name[NAME_MAX_LEN + 1],
		 const char *base, unsigned from);

bool snap_exists(const char *name);

/* A free name: "BASE-1", "BASE-2" ... in the folder "vm" or "snap".  */
int free_name(const char *folder, const char *base, unsigned from,
	      char out[NAME_MAX_LEN + 1], unsigned *number);

/* Print the tree of snapshots and sandboxes: 0, or the negative exit code,
 * told. */
int snap_tree(void);

/* Remove it; clones that run go on.  0, or the negative exit code, told. */
int snap_remove(const char *name);

#endif
