/*
 * tar.h - a POSIX tar archive (pax, ustar, and what GNU tar writes) to and from
 * the frames of a tree (tree.h).
 */
#ifndef ARK_TAR_H
#define ARK_TAR_H

#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512

/* Read an archive of `length` bytes from `in` and write it to `out` as a tree
 * that begins with a directory, FRAME_ENTRY to FRAME_DONE.  Nothing but read(2)
 * and write(2) is called, so it works in a cage.  NULL; or what is wrong with
 * the archive, a static text, after FRAME_ABORT; or "" when `out` is broken. */
const char *tar_read(int in, uint64_t length, int out);

/* The head of an entry: a file, directory or symbolic link (S_IFMT of mode),
 * with pax records before it where ustar has no room.  `link` is the target of
 * a symbolic link.  The bytes in `out`, at most TAR_HEAD_MAX. */
#define TAR_HEAD_MAX (TAR_BLOCK * 2 + 4096 * 2 + 1024)
size_t tar_head(char *out, const char *path, uint32_t mode, uint64_t size,
		uint64_t mtime, const char *link);

/* So many zeros follow so many bytes of a file. */
size_t tar_padding(uint64_t size);

#endif
