/*
 * rest-file.h - one file or tree, between a client and the agent of a sandbox.
 */
#ifndef REST_FILE_H
#define REST_FILE_H

#include "rest.h"
#include "session.h"
#include "tree-part.h"

struct transfer {
	int sock, activity;

	/* what failed: EX_ARK for ark and the agent, else the guest's file */
	int code;
	char why[1024];

	/* of the last entry that came */
	uint32_t mode;
	uint64_t size, mtime, at;
	char path[TREE_PATH];

	struct frame frame;
};

/* Ends the process when there is no memory. */
struct transfer *transfer_new(void);
void transfer_end(struct transfer *t, const struct sandbox *s);

/* Ask for it, up to the agent's STARTED.  All of these: 0, or -1 with code and
 * why. */
int transfer_begin(struct transfer *t, struct sandbox *s, enum op op,
		   const char *path, unsigned flags);
/* The next frame ends it. */
int transfer_answer(struct transfer *t);
/* The frame that is there does. */
int transfer_judge(struct transfer *t);
int transfer_bad(struct transfer *t);

/* What a client asked to get, which has to be of `type`, called `what`; up to
 * its first entry.  0, and the head of the answer may follow, or what was
 * answered; then there is no transfer. */
int transfer_get(struct call *c, struct sandbox *s, mode_t type,
		 const char *what, struct transfer **t);
/* The frame that is there is an entry. */
int transfer_entry(struct transfer *t);

/* All bytes of a file, holes as zeros.  -1 also when `take` says so; then there
 * is no why. */
typedef int (*take_fn)(void *data, const char *bytes, size_t len);
int transfer_data(struct transfer *t, take_fn take, void *data);
/* One that writes to the client. */
int transfer_write(void *data, const char *bytes, size_t len);

/* Say what failed. */
int answer_transfer(const struct call *c, const struct transfer *t,
		    const char *path);

#endif
