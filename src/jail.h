/*
 * jail.h - the place that a VMM lives in, and the way out of it for us.
 *
 * What it sees:
 *	/proc		its own PID namespace, processes only
 *	/dev		null, urandom; kvm and net/tun when it needs them
 *	its program, the libraries, what its driver reads: read-only
 *	/run		a few MiB, the one place that it can write to
 *	/run/restore	files of ours, read-only
 *	/run/save	empty, its own
 * and nothing else of the host.
 */
#ifndef ARK_JAIL_H
#define ARK_JAIL_H

#include "ark.h"

/* A file to be found in /run/restore; nothing of it is owned here. */
struct jail_file {
	const char *name;
	const void *data;
	size_t len;
};

/* Open a path of a VMM's jail, such as "run/save/state.json": no link in it is
 * followed, and no other process is met, whatever the pid is used for since.
 * Add O_NONBLOCK when opening what the VMM has made, and look with fstat(2) at
 * what it is.  A descriptor that the caller owns, or -1 and errno. */
int jail_open(const struct proc *vmm, const char *path, int flags);

#endif
