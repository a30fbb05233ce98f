/*
 * quota.h - how much a tenant may have, at once and per second.
 *
 * Nothing is counted up or down: what is used is read off the files each time
 * (vm/TENANT.*, snap/TENANT.*), so no crash can make it wrong.  What has been
 * admitted and is not in these files yet is a claim:
 *
 *	ARK_RUN/tenant/TENANT/claim.*	who holds flock on it is at work
 *	ARK_RUN/tenant/TENANT/bucket	when the next request fits
 *
 * Counting, and making a claim, happen under flock on ARK_RUN/tenant/TENANT,
 * for a moment; the command itself runs beside others.  The claim's descriptor
 * is meant to be inherited by the command, so the claim ends when the last of
 * them does, however that happens.
 *
 * Limits are ARK_ROOT/auth/TENANT/quota/KIND; no file: no limit.
 */
#ifndef ARK_QUOTA_H
#define ARK_QUOTA_H

#include "auth.h"

enum quota {
	QUOTA_SANDBOXES, /* in whatever state */
	QUOTA_CPUS,	 /* of all of them: a stopped one may start any time */
	QUOTA_MEMORY,	 /* bytes; likewise */
	QUOTA_DISK,	 /* bytes: sizes of their disks, as promised, and what
			  * the snapshots occupy */
	QUOTA_SNAPSHOTS,
	QUOTA_EXECS, /* requests at once that run something in a guest */
	QUOTA_CLAIMED,
	QUOTA_RATE = QUOTA_CLAIMED, /* requests per second, on average */
	QUOTA_BURST,		    /* at once; without it as the rate */
	QUOTA_KINDS,
};

/* "sandboxes", "cpus", "memory", "disk", "snapshots", "execs", "rate",
 * "burst". */
const char *quota_word(enum quota kind);

#define QUOTA_NONE UINT64_MAX /* no limit */

struct quota_limits {
	uint64_t limit[QUOTA_KINDS];
};

#define QUOTA_UNLIMITED                                                        \
	{                                                                      \
		{                                                              \
			QUOTA_NONE, QUOTA_NONE, QUOTA_NONE, QUOTA_NONE,        \
				QUOTA_NONE, QUOTA_NONE, QUOTA_NONE, QUOTA_NONE \
		}                                                              \
	}

/* The limits of a tenant; one that has none (or "host" without a directory) is
 * not limited.  A file that is damaged is a limit of 0.  0, or told. */
int quota_limits(const char *tenant, struct quota_limits *limits);

/* "KIND=N,KIND=N" onto `limits`: sizes as in ark(1) for memory and disk, "none"
 * for no limit.  NULL, or what is wrong, in a static buffer. */
const char *quota_parse(const char *text, struct quota_limits *limits);

/* Write all limits below the open directory auth/TENANT; 0, or told. */
int quota_write(int tenant_dir, const struct quota_limits *limits);

/* What a request is going to take.  With the name on the disk of the one
 * sandbox or snapshot that it makes, the claim is not counted beside what it
 * claims once that is there; without (a fork of many) both count until it ends.
 */
struct quota_ask {
	uint64_t amount[QUOTA_CLAIMED];
	const char *sandbox; /* or NULL */
	const char *snapshot;
};

struct quota_refusal {
	enum quota kind;
	uint64_t limit, used, asked; /* of QUOTA_RATE: limit per second */
	unsigned retry_after;	     /* seconds, at least 1 */
};

struct quota_claim {
	int fd; /* -1: none.  Not CLOEXEC: for the command to inherit */
	char tenant[TENANT_MAX + 1];
	char file[32];
};

#define CLAIM_NONE                                                             \
	{                                                                      \
		.fd = -1                                                       \
	}

/* 0: admitted, and the claim is held until quota_release(), or the end of all
 * who have its descriptor.  1: refused, *why filled in.  Negative: told
 * (-EX_TEMPFAIL: others were counting for ten seconds; -EX_NOINPUT: the tenant
 * has been removed since its token was read). */
int quota_claim(const char *tenant, const struct quota_ask *ask,
		struct quota_claim *claim, struct quota_refusal *why);

/* After the command has ended. */
void quota_release(struct quota_claim *claim);

/* One request, off the bucket: as above.  Only after the token was found to be
 * good; of the wrong ones the web server's limits are the bound. */
int quota_rate(const char *tenant, struct quota_refusal *why);

/* The lock that counting needs: a descriptor, or told.  It keeps claims from
 * being made, not commands from ending. */
int quota_lock(const char *tenant);

/* What is used, under that lock, the claims included. */
int quota_count(int lock, const char *tenant, uint64_t used[QUOTA_KINDS]);

/* The same with the lock of its own; [QUOTA_RATE] and [QUOTA_BURST] are 0. */
int quota_used(const char *tenant, uint64_t used[QUOTA_KINDS]);

/* Add to the ask what a snapshot of that sandbox may occupy at most, and the
 * snapshot itself.  The name on the disk; 0, or told. */
int quota_ask_snapshot(struct quota_ask *ask, const char *sandbox);

/* The refusal as a sentence: "quota of sandboxes: 5 of 5 used, 1 asked for". */
void quota_text(const struct quota_refusal *why, char *out, size_t size);

/* ---- pure, for the tests ------------------------------------------------ */

/* A bucket that leaks `rate` per second and holds `burst`: `*at` is when it is
 * empty, `now` the time, both ns.  0 and *at moved on, or the nanoseconds to
 * wait (generic cell rate algorithm, ITU-T I.371). */
uint64_t quota_bucket(uint64_t *at, uint64_t now, uint64_t rate,
		      uint64_t burst);

#endif
