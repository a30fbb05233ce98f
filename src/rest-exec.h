/*
 * rest-exec.h - a run of ark-exec, and what it writes.
 */
#ifndef REST_EXEC_H
#define REST_EXEC_H

#include "rest.h"

#define STREAM_HALF (512u * 1024) /* kept of the beginning, and of the end */

/* One of its two outputs. */
struct stream {
	int fd;
	bool cut; /* not all of it was kept */

	/* Kept: the first STREAM_HALF bytes, then a ring of as many. */
	char *head, *ring;
	size_t head_len, head_room, ring_at, ring_len;

	/* Passed on: the beginning of a character that is not whole yet. */
	char part[4];
	size_t part_len;
};

struct exec {
	pid_t pid;
	struct stream out, err;
	int status;    /* read end of --status-fd */
	bool streamed; /* JSON Lines as it comes */
	bool broken;   /* and nobody takes them any more */

	/* how it ended */
	int exit;    /* of ark-exec */
	bool failed; /* ark, the VM or the agent, and not the command: error */
	bool has_code, timed_out, oom;
	int code, signal;
	char error[1024];
};

/* Run it to its end; false when the client went away before. */
bool exec_wait(struct exec *e, struct command *cmd, int in);
void exec_free(struct exec *e);

/* {exitCode, signal, timedOut, oom} */
json_t *exec_json(const struct exec *e);

/* ---- rest-stream.c ------------------------------------------------------- */

void stream_keep(struct stream *s, const char *data, size_t len);
/* What was kept, owned by the caller. */
char *stream_text(struct stream *s, size_t *len);
/* The same as KEY, or as KEYBase64 when it is no UTF-8. */
void stream_into(json_t *object, const char *key, struct stream *s);
void stream_free(struct stream *s);

/* Pass it on as a line. */
void stream_line(struct exec *e, struct stream *s, const char *data,
		 size_t len);
/* The last line; takes the reference.  The status. */
int stream_end(struct exec *e, json_t *end);

#endif
