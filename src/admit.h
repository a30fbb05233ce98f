/*
 * admit.h - how much may run at once.
 *
 * ark.conf(5) says how far memory and processors of the host may be promised.
 * What is promised is counted from the slots of what runs, each time: there is
 * no counter that a crash could leave wrong.
 */
#ifndef ARK_ADMIT_H
#define ARK_ADMIT_H

#include "state.h"

/* What one sandbox asks for. */
struct demand {
	uint64_t memory; /* bytes, of the guest */
	unsigned cpus;
	const char *snapshot_id; /* whose memory it shares, or NULL */
};

/* Starts and gc, one at a time: a descriptor, the lock goes with it; or the
 * negative exit code, told. */
int admit_lock(int run);

/* May `count` sandboxes that ask for this start now?  0, or -EX_TEMPFAIL with
 * one line that has the numbers; `what` says who asks: "sandbox 'x'".  Only
 * under the lock is a yes more than a guess, and only until the slot has been
 * taken and admit_record() has been called. */
int admit_check(int run, const struct conf *conf, const struct demand *demand,
		unsigned count, const char *what);

/* Write into a slot that is held what it counts for: 0, or -1 and errno. */
int admit_record(int slot, const struct demand *demand);

/* What there is. */
struct host {
	uint64_t memory; /* bytes */
	unsigned cpus;
};

struct host admit_host(void);

/* ---- pure, for the tests ------------------------------------------------ */

struct promised {
	uint64_t memory;
	uint64_t cpus;
	unsigned sandboxes;
};

/* The words behind "no room for X: ", or false when all of it fits. */
bool admit_refuses(const struct promised *promised, const struct demand *demand,
		   unsigned count, bool shared_counted, const struct host *host,
		   const struct conf *conf, char *why, size_t size);

#endif
