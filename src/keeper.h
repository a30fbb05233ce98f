/*
 * keeper.h - the one parent of a VMM.
 *
 * It waits for the VMM, writes the bounded console log, makes the guest ready,
 * notices pauses, and records the cause of death.  It writes only into its
 * slot (and the console log) and never takes the sandbox' lock: stop waits for
 * it while holding that.
 */
#ifndef ARK_KEEPER_H
#define ARK_KEEPER_H

#include "jail.h"
#include "vmm.h"

struct start {
	const struct vmm *driver;
	enum accel accel;
	uid_t uid;
	int held;		 /* the slot's lock; taken over */
	int state;		 /* saved devices, or -1 for a cold start */
	int ram;		 /* the memory they belong to, sealed, or -1 */
	const char *snapshot_id; /* whose memory that is, or NULL */
	const struct jail_file *files; /* for its /run/restore */
	size_t n_files;
};

/* Start the keeper of a sandbox that has just got a slot, and with it the VMM.
 * `held` is the slot's lock, taken over.  Returns when the guest is ready: 0;
 * or the negative exit code, told, with nothing of it running any more. */
int keeper_start(struct sandbox *s, const struct start *how);

/* A new keeper for a VM whose keeper has died.  0 also when there is nothing
 * to do (another one was quicker, the VMM is gone). */
int keeper_adopt(struct sandbox *s);

#endif
