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

/* A descriptor that the VMM may open once more by /proc/self/fd/N. */
struct jail_fd {
	int fd;
	bool write;
};

struct jail {
	const char *program;	  /* absolute path */
	const char *const *reads; /* directories, NULL at the end */
	const struct jail_file *files;
	size_t n_files;
	uid_t uid; /* and gid */
	bool kvm, tun;
	uint64_t memory; /* bytes of the guest's */
	uint64_t disk;	 /* bytes of the largest file that it writes */
	const struct jail_fd *fds;
	size_t n_fds;
};

/* For the child of a clone3(CLONE_NEWPID), as root: into a place of its own.
 * What was open stays open; no path of the host leads anywhere afterwards.  0,
 * or -1 and errno, *step naming what failed. */
int jail_enter(const struct jail *j, const char **step);

/* The last thing before exec: limits, uid, capabilities, Landlock, seccomp.
 * Same results. */
int jail_lock(const struct jail *j, const char **step);

/* What the kernel can do of Landlock: its ABI, 0 for nothing. */
int jail_landlock_abi(void);

/* Open a path of a VMM's jail, such as "run/save/state.json": no link in it is
 * followed, and no other process is met, whatever the pid is used for since.
 * Add O_NONBLOCK when opening what the VMM has made, and look with fstat(2) at
 * what it is.  A descriptor that the caller owns, or -1 and errno. */
int jail_open(const struct proc *vmm, const char *path, int flags);

#endif
