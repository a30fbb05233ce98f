/*
 * ram.h - the memory of a guest: made, saved, loaded.
 *
 * A VM has one memfd.  Booted from nothing, it maps that shared: the memfd is
 * its memory.  Restored, it maps a sealed memfd private: what it has not
 * written since is in the memfd, which it may share with siblings, the rest
 * are pages of its own.
 */
#ifndef ARK_RAM_H
#define ARK_RAM_H

#include "ark.h"

struct ram_stats {
	uint64_t bytes;		/* written: what is not all zero */
	uint64_t private_pages; /* that the VMM has of its own */
};

/* Empty memory for a VM that boots; a descriptor, or -1 and errno. */
int ram_create(uint64_t size);

/* The memory of a snapshot, for any number of VMs to map private.  Every uid
 * can open it through /proc/self/fd, also for writing, which some VMMs insist
 * on, and none can ever change a byte.  A descriptor, or -1 and errno; EINVAL
 * when the file is not exactly `size` bytes long. */
int ram_load(int dir, const char *name, uint64_t size);

/* Write the memory of a paused VM to a new sparse file (0600), not synced;
 * `base` is the memfd that it runs on.  0, or the negative exit code, told,
 * and no file. */
int ram_save(const struct proc *vmm, int base, uint64_t size, int out_dir,
	     const char *name, struct ram_stats *stats);

#endif
