/*
 * usage.h - what a sandbox takes of the host: the columns of `ark ps` and the
 * gauges of /metrics.
 *
 * Files and /proc, no lock, no question to anybody: some 60 us for all but the
 * private memory, which makes the kernel walk the VMM's page tables (1 ms for
 * each GiB that is touched) and is read on request only.
 */
#ifndef ARK_USAGE_H
#define ARK_USAGE_H

#include "state.h"

enum {
	USAGE_CPU = 1,
	USAGE_RESIDENT = 2,
	USAGE_DISK = 4,
	USAGE_NET = 8,
	USAGE_CHEAP = 15,
	USAGE_PRIVATE = 16,
};

struct usage {
	unsigned known;	   /* of these, what could be read */
	uint64_t cpu_ms;   /* user and system time of the VMM's process ... */
	uint64_t up_ms;	   /* ... and how long there is that one */
	uint64_t resident; /* bytes; what clones share is in each of them */
	uint64_t private;  /* bytes that only this VMM has: what its end
			    * would free (USS and swapped out) */
	uint64_t disk;	   /* bytes that its disk occupies */
	uint64_t rx, tx;   /* bytes to and from the sandbox by its uplink */
};

/* Read what is asked for; what does not run has a disk only. */
void usage_read(const struct sandbox *s, unsigned what, struct usage *u);

/* ---- pure, for the tests ------------------------------------------------ */

/* Ticks of utime and stime out of /proc/PID/stat. */
bool usage_parse_stat(const char *text, uint64_t *ticks);

/* Of one interface out of /proc/PID/net/dev. */
bool usage_parse_net(const char *text, const char *interface, uint64_t *rx,
		     uint64_t *tx);

/* Of one processor, over that time; 0 when there is none. */
uint64_t usage_permille(uint64_t cpu_ms, uint64_t up_ms);

/* Private_Clean, Private_Dirty and Swap out of smaps_rollup. */
bool usage_parse_smaps(const char *text, uint64_t *bytes);

#endif
