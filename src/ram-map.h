/*
 * ram-map.h - the mappings of a guest's memory in its VMM.
 */
#ifndef ARK_RAM_MAP_H
#define ARK_RAM_MAP_H

#include "ark.h"

#include <sys/stat.h>

#define RAM_PIECES_MAX 8

struct ram_piece {
	uint64_t start, end; /* addresses in the VMM */
	uint64_t offset;     /* in the memfd */
};

struct ram_map {
	int n;
	bool shared;
	struct ram_piece piece[RAM_PIECES_MAX]; /* by offset, without a gap */
};

/* Read the mappings of that memfd by the process whose folder of /proc this
 * is; *m is empty.  0, or the negative exit code, told. */
int ram_map_read(int proc, const struct stat *base, struct ram_map *m);

/* Where the bytes from `at` on are, an offset in the memfd that is within its
 * size: how many of `len` of them are there in one piece. */
size_t ram_map_at(const struct ram_map *m, uint64_t at, size_t len,
		  uint64_t *address);

/* -EX_UNAVAILABLE, told with what it is that the VMM has done. */
int ram_not_as_given(const char *what);

#endif
