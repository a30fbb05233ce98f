/*
 * launch.h - start the VMM process of a sandbox, jailed.
 */
#ifndef ARK_LAUNCH_H
#define ARK_LAUNCH_H

#include "jail.h"
#include "vmm.h"

struct launch {
	const struct vmm *driver;
	enum accel accel;
	uid_t uid;
	int state;  /* saved devices to be loaded, or -1 for a cold start */
	int ram;    /* memory to map privately; -1: made here, and set */
	int cgroup; /* cgroup v2 directory that it is born in, or -1 */
	const struct jail_file *files; /* in its /run/restore */
	size_t n_files;
	pid_t pid;   /* set: a child of this process */
	int errors;  /* set: what the VMM prints on stderr */
	int console; /* set: read end of the console FIFO, non-blocking */
};

/* Start the VMM of a sandbox that holds its slot: opens all it needs from the
 * two directories, records it as SLOT/vmm, lets it go.  0, or -1 with one line
 * for people in `why`.  Descriptors are owned by the caller. */
int launch_vmm(const struct sandbox *s, struct launch *l, char *why,
	       size_t size);

/* Rate of the host's TSC, measured once per boot; 0 when unknown. */
unsigned host_tsc_khz(void);

/* Open the console FIFO of a slot for reading (a keeper's second start). */
int open_console(int run);

#endif
