/*
 * audit.h - who has changed what, ARK_ROOT/audit.log.
 *
 * One line of JSON for each request that changes something or runs something,
 * of these keys in this order, never a secret and no output:
 *
 *	seq	1, 2, 3 ...
 *	time	of its begin, RFC 3339 with milliseconds, UTC
 *	id	of the request, 16 hexadecimal digits
 *	tenant, token (its id), address (of the client)
 *	action	a word such as "start"; object: the name on the disk, or ""
 *	result	the HTTP status; null: whoever did it was killed before its end
 *	ms	that it took; null as well
 *	prev	hash of the line before; 64 zeros in the first
 *	hash	SHA-256 of this line up to, without, `,"hash":`
 *
 * What `ark audit verify` finds:
 *   1. a line that was changed, removed, put in or moved inside;
 *   2. lines cut off at the beginning, for the first is number 1;
 *   3. lines cut off at the end, by audit.head, which has number and hash of
 *	the last one;
 *   4. a chain and a head that somebody with root's rights has made again:
 *	only by what went elsewhere.  Each line's number and hash go to
 *	syslog(3), LOG_AUTHPRIV; `verify --head SEQ:HASH` compares.
 */
#ifndef ARK_AUDIT_H
#define ARK_AUDIT_H

#include "auth.h"

#define AUDIT_LINE_MAX 2048
#define AUDIT_ID_LEN 16

struct audit {
	/* set by the caller; cut at 127 bytes, made printable */
	const char *tenant, *token, *address, *action, *object;
	/* set by audit_begin() */
	char id[AUDIT_ID_LEN + 1]; /* fit for X-Request-Id */
	uint64_t started;	   /* now_ms() */
	int pending;		   /* descriptor */
	char time[32];
};

/* Before the first thing is done: leaves a note below ARK_RUN/audit that is
 * held until audit_end().  A note that nobody holds becomes a line with result
 * null when the next one is written, so a kill -9 leaves a trace too (a power
 * failure in the middle does not).  0, or the negative exit code, told: then
 * the request must be refused, for what is done is on record. */
int audit_begin(struct audit *a);

/* Append the line, on the disk when this returns.  Calls of one audit are one
 * begin and one end.  0, or the negative exit code, told; it was done by then,
 * so the answer is what it is, and the note stays for the next writer. */
int audit_end(struct audit *a, int result);

/* ---- for ark-audit(8) --------------------------------------------------- */

struct audit_record {
	long long seq;
	char time[32], id[AUDIT_ID_LEN + 1];
	char tenant[128], token[128], address[128], action[128], object[128];
	long long result, ms; /* -1: null */
	char prev[65], hash[65];
};

/* One line, without its newline: NULL, or what is wrong: "is not a record", and
 * r->seq is 0, or "was changed": its hash is not what it says. */
const char *audit_parse(const char *line, size_t len, struct audit_record *r);

struct audit_check {
	/* in: what one of the lines must be, from elsewhere; seq 0: none */
	long long head_seq;
	char head_hash[65];
	/* out */
	long long lines, last; /* number of the last; 0: none */
	char hash[65];	       /* of the last */
	unsigned faults;
};

/* Read these older files, in this order, and then the log, and print a line on
 * stderr for every fault.  Writers may go on.  0, -EX_DATAERR when there were
 * faults, or the negative exit code, told. */
int audit_verify(char *const older[], size_t n, struct audit_check *c);

#endif
