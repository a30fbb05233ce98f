/*
 * disk.h - copy and format disks, sparsely.
 *
 * All of them take a directory descriptor and a name, leave no file when they
 * fail, and return 0 or the negative exit code, told (a full disk is -EX_IOERR
 * and says how much was needed).  Nothing is synced: who needs that, does it.
 */
#ifndef ARK_DISK_H
#define ARK_DISK_H

#include "ark.h"

/* Copy a regular file to a name that must be free: shared blocks where the
 * file system has them, else only what is data, holes stay holes. */
int disk_copy(int from_dir, const char *from, int to_dir, const char *to,
	      mode_t mode);

/* Format a fresh sparse file (0600) as ext4, the way that every writable disk
 * is: no label, growable while mounted. */
int disk_make(int dir, const char *name, uint64_t size);

/* Make the file longer; a shorter size is -EX_USAGE.  The guest's init grows
 * the file system in it when it boots next. */
int disk_grow(int dir, const char *name, uint64_t size);

/* The image's `disk` becomes the `disk` of a sandbox, `size` bytes long.  When
 * that is more than the template has, the guest grows its file system. */
int disk_clone(int image_dir, int vm_dir, uint64_t size);

/* Bytes that a file occupies; struct stat counts in units of 512. */
static inline uint64_t allocated_bytes(blkcnt_t blocks)
{
	return (uint64_t)blocks * 512;
}

#endif
