/*
 * audit-line.h - what audit.c and audit-verify.c share: the head, the lines.
 */
#ifndef ARK_AUDIT_LINE_H
#define ARK_AUDIT_LINE_H

#include "audit.h"

#define AUDIT_LOG "audit.log"
#define AUDIT_HEAD "audit.head"

/* Number, hash and end (offset) of the last line that was finished. */
struct audit_head {
	long long seq; /* 0: none */
	char hash[65];
	long long end;
};

/* What the first line goes on from. */
void audit_head_none(struct audit_head *head);

/* Out of audit.head: false, and none, when it is not there or not one. */
bool audit_head_read(int fd, struct audit_head *head);
int audit_head_write(int fd, const struct audit_head *head);

/* The line of a record with its newline, prev and hash; r->hash is filled in.
 * The length, or -1: it does not fit. */
int audit_format(struct audit_record *r, char line[AUDIT_LINE_MAX]);

#endif
