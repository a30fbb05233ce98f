/*
 * proto.h - what ark says to the agent in a guest, and the agent to ark.
 * ark-proto(7) is the manual; both sides compile this file.
 *
 * One request per connection.  A frame is 8 bytes of head and a payload:
 *
 *	u8 type, u8 zero[3], u32 length (little-endian), payload
 *
 * Request:  FRAME_HELLO, then option frames in any order, then FRAME_GO.
 * Then what the operation says, both ways, until the agent has sent FRAME_EXIT
 * or FRAME_ERROR, which is its last frame, and closes.
 *
 * Both ends parse bytes of somebody hostile: a length over FRAME_MAX, a type
 * that is not known here or not expected now, a string with a NUL inside, ends
 * the connection.  Nothing is ever allocated by a number out of a frame.
 */
#ifndef ARK_PROTO_H
#define ARK_PROTO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROTO_VERSION 1
#define AGENT_PORT 1024 /* TCP on the tap, or vsock */
#define GUEST_ADDRESS "10.0.2.2"
#define GATEWAY_ADDRESS "10.0.2.1" /* the only peer that the agent accepts */
#define AGENT_READY "ark: agent ready" /* on the console: a hint only */

#define FRAME_HEAD 8
#define FRAME_MAX (128u * 1024)	       /* = Linux' limit of one argument */
#define REQUEST_MAX (2u * 1024 * 1024) /* all option frames of one request */
#define STDIN_WINDOW (256u * 1024)     /* credit that a client starts with */
#define GENERATION_LEN 16
#define SEED_LEN 64
#define EXECS_MAX 512	      /* at once in one guest, detached ones included */
#define LOG_HEAD (64u * 1024) /* of a detached exec: the first bytes ... */
#define LOG_TAIL (192u * 1024) /* ... and the last ones are kept */

enum frame_type {
	/* request, client to agent */
	FRAME_HELLO = 1,  /* u32 version, u8 op, u8[16] generation */
	FRAME_GO,	  /* empty: the request is complete */
	FRAME_ARG,	  /* one word of argv, no NUL at the end; repeated */
	FRAME_ENV,	  /* NAME=VALUE; repeated */
	FRAME_CWD,	  /* absolute path */
	FRAME_USER,	  /* name or uid, optionally :group or :gid */
	FRAME_TIMEOUT,	  /* u64 milliseconds */
	FRAME_FLAGS,	  /* u32, EXEC_* or FILE_* */
	FRAME_ID,	  /* decimal number of an exec, as text */
	FRAME_PATH,	  /* path in the guest */
	FRAME_GENERATION, /* u8[16]: who this guest is from now on */
	FRAME_SEED,	  /* u8[64] from the host's RNG */
	FRAME_TIME,	  /* u64 ns of CLOCK_REALTIME on the host */
	FRAME_HOSTNAME,	  /* text */

	/* while it runs, client to agent */
	FRAME_STDIN = 32, /* data; empty = end of file */
	FRAME_WINSIZE,	  /* u16 rows, u16 columns; also as an option */
	FRAME_SIGNAL,	  /* u32 Linux signal number; an option of OP_KILL */

	/* agent to client */
	FRAME_STARTED = 64, /* id of the exec, as text */
	FRAME_STDOUT,	    /* data */
	FRAME_STDERR,	    /* data */
	FRAME_CREDIT,	    /* u32: so many more bytes of FRAME_STDIN */
	FRAME_ITEM,	    /* OP_LIST: one exec, tab-separated text (below) */
	FRAME_EXIT,	    /* u32 code, u32 signal, u32 flags RESULT_* */
	FRAME_ERROR,	    /* u32 exit code for the client, then text */

	/* a tree of files, either way (tree.h) */
	FRAME_ENTRY = 96, /* u32 mode, u64 size, u64 mtime ns, path */
	FRAME_DATA,	  /* u64 offset, bytes; what is never sent is a hole */
	FRAME_END,	  /* empty: this file is complete */
	FRAME_DONE,	  /* empty: the tree is complete */
	FRAME_ABORT,	  /* text: the sender failed, nothing follows */
};

enum op {
	OP_IDENTITY = 1, /* GENERATION SEED TIME HOSTNAME; a guest without a
			    generation accepts nothing else but OP_PING */
	OP_PING,	 /* answers FRAME_EXIT 0 */
	OP_EXEC,	 /* ARG... [ENV CWD USER TIMEOUT FLAGS WINSIZE] */
	OP_LIST,	 /* ITEM per exec, then EXIT */
	OP_LOGS,	 /* ID: what was kept, then EXIT 0 */
	OP_ATTACH,	 /* ID: what was kept, then live like OP_EXEC */
	OP_KILL,	 /* ID [SIGNAL]: the whole tree (default 9), EXIT 0 */
	OP_WAIT,	 /* ID: its EXIT when it ends */
	OP_GET,		 /* PATH: STARTED, then a tree from the guest, EXIT */
	OP_PUT,		 /* PATH ARG(base name) [FLAGS]: a tree to the guest;
			    STARTED, then the tree, then EXIT 0 or ERROR */
	OP_POWEROFF,	 /* EXIT 0, then the guest syncs and goes down */
};

enum exec_flag {
	EXEC_TTY = 1,	   /* pty; stdout only */
	EXEC_DETACH = 2,   /* STARTED is followed by EXIT 0 at once */
	EXEC_NO_STDIN = 4, /* /dev/null */
	EXEC_PROBE = 8,	   /* no ARG: the agent runs itself, to show that an
			      exec works in an image without any program */
};

enum file_flag {
	FILE_PARENTS = 1, /* make missing parents of PATH */
	FILE_INTO = 2,	  /* PATH must be a directory (it ended in a slash) */
};

enum result_flag {
	RESULT_TIMEOUT = 1, /* --timeout ran out; code is 124 */
	RESULT_OOM = 2,	    /* the guest's kernel killed one of its tree */
};

/* FRAME_ITEM: id \t state (exited, or running while any process of its tree
 * is alive) \t result (0 while it runs, else the code as a shell sees it) \t
 * age in seconds \t detached (0|1) \t argv joined by blanks, control bytes as
 * '?', at most 1000 bytes. */

/* ---- frame.c: blocking, for ark, and for the agent's file transfers ----- */

struct frame {
	enum frame_type type;
	size_t len;
	/* One byte more than a payload: text[len] is always NUL. */
	unsigned char data[FRAME_MAX + 1];
};

void frame_head(unsigned char head[FRAME_HEAD], enum frame_type type,
		size_t len);

/* Type and length out of a head; -1 when it is not one. */
int frame_parse_head(const unsigned char head[FRAME_HEAD],
		     enum frame_type *type, size_t *len);

/* Send one frame whole; 0, or -1 and errno.  Never raises SIGPIPE on a
 * socket. */
int frame_send(int fd, enum frame_type type, const void *data, size_t len);
int frame_send_text(int fd, enum frame_type type, const char *text);
int frame_send_u32(int fd, enum frame_type type, uint32_t value);
int frame_send_u64(int fd, enum frame_type type, uint64_t value);

/* The next frame: 1; 0 at a clean end of file; -1 and errno (EPROTO when it
 * is not a frame or was cut). */
int frame_recv(int fd, struct frame *f);

/* The payload as text: NULL when there is a NUL in it. */
const char *frame_text(const struct frame *f);

uint16_t get_u16(const unsigned char *p);
uint32_t get_u32(const unsigned char *p);
uint64_t get_u64(const unsigned char *p);
void put_u16(unsigned char *p, uint16_t value);
void put_u32(unsigned char *p, uint32_t value);
void put_u64(unsigned char *p, uint64_t value);

#endif
