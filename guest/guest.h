/*
 * guest.h - the one program that runs in every guest: first as /init of the
 * initramfs, then, without an exec, as the agent.
 *
 * One process, one thread, one poll(2) loop.  Whatever can block on something
 * that the guest's own programs control (its user database, a directory, a
 * file that is copied) is done in a child, never in the loop.
 *
 * Objects (connections, execs) are unlinked and freed at one place only, at
 * the end of a turn of the loop, so that no handler can be left with a stale
 * pointer.
 */
#ifndef ARK_GUEST_H
#define ARK_GUEST_H

#include "ark.h"
#include "proto.h"

#include <stdarg.h>

#define PROBE_NAME "ark-probe" /* argv[0] of EXEC_PROBE */
#define CONNS_MAX (EXECS_MAX + 64)
#define ENDED_MAX 32 /* ended detached execs that stay readable */
#define NEVER UINT64_MAX
#define PATH_DEFAULT                                                           \
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* ---- init.c: from the kernel to the final root --------------- */

/* One line on the console. */
void say(const char *fmt, ...) PRINTF(1, 2);

/* Say why and power off: a guest that cannot boot is dead with a reason. */
NORETURN void fatal(const char *fmt, ...) PRINTF(1, 2);

/* ---- disk.c: the two drives --------------------------------------------- */

/* Mount base and disk and the overlay of both on `root`; fatal() otherwise. */
void disk_mount(const char *root, const char *base_type);

/* Write back and mark clean; the last thing before power off. */
void disk_close(void);

/* ---- system.c, net.c: what a userland expects to find ------------------- */

void system_mounts(void);
void net_up(void);

/* Replace an absolute path by the text: temporary file and rename, so that
 * neither a link nor a FIFO that the guest put there is ever opened.  0, or -1
 * and errno. */
int write_file(const char *path, mode_t mode, const char *text, size_t len);

/* Write to an existing file under dir (cgroups, /proc); 0, or -1 and errno. */
int write_to(int dir, const char *name, const char *text);

/* ---- request.c: pure parser of what a client sends ---------------------- */

struct strings {
	char *data; /* one after the other, each with its NUL */
	size_t len, cap, count;
};

struct request {
	enum op op;
	unsigned char hello_generation[GENERATION_LEN];
	uint64_t seen;	 /* a bit per frame type */
	size_t wire;	 /* bytes of option frames so far */
	const char *why; /* after REQUEST_BAD */
	struct strings args, envs;
	char **argv, **env; /* after REQUEST_DONE; NULL at the end */
	char *cwd, *user, *path;
	uint64_t timeout; /* ms, 0: none */
	uint32_t flags, id, signal;
	uint16_t rows, columns;
	unsigned char generation[GENERATION_LEN];
	unsigned char seed[SEED_LEN];
	uint64_t time;
	char hostname[64];
};

enum request_state { REQUEST_MORE, REQUEST_DONE, REQUEST_BAD };

/* Take the whole frames out of the `len` bytes at `data`, up to FRAME_GO, and
 * tell in *used how many bytes that were.  Call again with what is left and
 * more. */
enum request_state request_feed(struct request *r, const unsigned char *data,
				size_t len, size_t *used);
void request_free(struct request *r);

/* What a client sends to an exec that runs. */
struct live {
	enum frame_type type;
	const unsigned char *data; /* of FRAME_STDIN, inside the input */
	size_t len;
	uint32_t signal;
	uint16_t rows, columns;
};

/* The next whole frame: 1 and *used; 0 when there is none yet; -1 when it is
 * nothing that may come now. */
int live_feed(struct live *out, const unsigned char *data, size_t len,
	      size_t *used);

/* ---- log.c: the first and the last bytes of an output, bounded ---------- */

struct log {
	unsigned char *data; /* LOG_HEAD + LOG_TAIL, made at the first byte */
	size_t head;	     /* used bytes of the head */
	size_t start, len;   /* ring of the tail */
	uint64_t dropped;    /* bytes between the two */
};

typedef void log_sink(void *to, enum frame_type type, const void *data,
		      size_t len);

/* Append output of FRAME_STDOUT or FRAME_STDERR. */
void log_add(struct log *l, enum frame_type type, const unsigned char *data,
	     size_t len);
/* All that was kept, with a line where something is missing. */
void log_replay(const struct log *l, log_sink *sink, void *to);
void log_free(struct log *l);

/* ---- agent.c: the loop -------------------------------------------------- */

NORETURN void agent_main(void);
uint64_t clock_ms(void);

/* While a turn is prepared: call `ready` when fd is, wake up by `at`. */
typedef void ready_fn(void *object, short revents);
void watch(int fd, short events, ready_fn *ready, void *object);
void wake_at(uint64_t at);

/* ---- conn.c: one client ------------------------------------------------- */

enum conn_state {
	CONN_REQUEST, /* its request is not complete yet */
	CONN_EXEC,    /* holds an exec: input and output flow */
	CONN_WAIT,    /* waits for an exec, or for the hooks, to end */
	CONN_LAST,    /* has its last frame; waits for the client to close */
	CONN_DEAD,    /* to be freed */
};

struct conn {
	struct conn *next;
	int fd;
	enum conn_state state;
	bool shut; /* CONN_LAST: all is sent */
	struct request req;
	struct exec *exec; /* CONN_EXEC, CONN_WAIT */
	uint64_t deadline; /* CONN_LAST */
	size_t in_len;
	unsigned char *in; /* room for one frame of the largest size */
	size_t out_start, out_len, out_cap;
	unsigned char *out; /* frames that are to be sent */
};

void conn_new(int fd);
bool conn_room(void);
void conns_watch(void);
void conns_settle(void); /* send what is queued, free what is dead */

void conn_send(struct conn *c, enum frame_type type, const void *data,
	       size_t len);
/* The same with a struct conn as `to`, for log_replay(). */
void conn_sink(void *to, enum frame_type type, const void *data, size_t len);
void conn_flush(struct conn *c);

/* The last frame of a connection; it takes nothing from its client after. */
void conn_exit(struct conn *c, uint32_t code, uint32_t signal, uint32_t flags);
void conn_error(struct conn *c, int code, const char *fmt, ...) PRINTF(3, 4);

/* The connection belongs to a child from now on. */
void conn_give_up(struct conn *c);
/* Every waiting client of e gets its result. */
void conns_tell(const struct exec *e);
/* Drop all connections but one: those of before a restore. */
void conns_drop(const struct conn *but);
/* Tell all that the guest goes down: nothing else would, when it is off. */
void conns_goodbye(void);

/* ---- op.c: operations on complete requests ------------------------------ */

void op_run(struct conn *c);

/* ---- exec.c, stream.c: what runs ---------------------------------------- */

enum life {
	LIFE_STARTING, /* forked; not known yet whether exec(2) works */
	LIFE_RUNNING,
	LIFE_LEFT,  /* the leader has ended, some of its tree has not */
	LIFE_ENDED, /* a record that can be read */
	LIFE_GONE,  /* to be freed */
};

struct stream {
	int fd;
	enum frame_type type;
	size_t left; /* leader ended: so much was in it, and is sent still */
};

struct exec {
	struct exec *next;
	enum life life;
	uint32_t id;
	pid_t pid;  /* leader; 0 when it has been reaped */
	int cgroup; /* its directory */
	int events; /* LIFE_LEFT: cgroup.events */
	int error;  /* LIFE_STARTING: why exec(2) failed */
	int input;  /* stdin or pty; -1 when closed */
	bool tty;
	bool transfer; /* OP_GET or OP_PUT: no exec(2), no streams */
	bool detached; /* lives without a client, output is logged */
	bool kept;     /* stays readable when it has ended */
	bool doomed;   /* killed for want of a client: output is dropped */
	bool timed;    /* --timeout ran out */
	bool told;     /* the result is out */
	bool eof;      /* no more stdin after what is buffered */
	struct stream out[2];
	struct conn *conn;
	uint64_t deadline;	      /* kill at, ms, or NEVER */
	uint64_t orphan_until;	      /* client was reset: kill at, or NEVER */
	uint64_t started;	      /* ms */
	uint32_t code, signal, flags; /* result, as FRAME_EXIT */
	size_t credit, owed;	      /* of FRAME_STDIN */
	unsigned char *in;	      /* ring of STDIN_WINDOW bytes */
	size_t in_start, in_len;
	struct log log;
	char *title; /* argv for people */
};

/* As fork(2), but the child is in the cgroup from its first instruction. */
pid_t fork_into(int cgroup);
void exec_start(struct conn *c);
void exec_transfer(struct conn *c);
struct exec *exec_find(uint32_t id);
struct exec *exec_next(const struct exec *e); /* NULL: the first */
void exec_kill(struct exec *e, int signal);   /* the whole tree */
void exec_attach(struct exec *e, struct conn *c);
void exec_orphan(struct exec *e, bool reset); /* its client is gone */
void exec_reaped(pid_t pid, int status);
void execs_watch(void);
void execs_settle(void);
void execs_restored(void); /* generation has changed */

void exec_streams_watch(struct exec *e);
void exec_new_client(struct exec *e, struct conn *c);
/* A frame of its client; -1 when it is against the rules. */
int exec_live(struct exec *e, const struct live *l);
void exec_resize(struct exec *e, uint16_t rows, uint16_t columns);
/* The leader has ended: note what is in the pipes, then send just that.  True
 * when it is sent. */
void exec_count_pending(struct exec *e);
bool exec_drain(struct exec *e);
void exec_close_input(struct exec *e);
void exec_close_streams(struct exec *e);

/* ---- child.c, user.c: between fork and exec ----------------------------- */

struct child {
	const struct request *req;
	int stdio[3]; /* -1: /dev/null */
	int tty;      /* pty master, or -1 */
	int error;    /* CLOEXEC pipe for child_fail() */
};

NORETURN void child_run(const struct child *c);
/* Exit code and text into the pipe. */
NORETURN void child_fail(int code, const char *fmt, ...) PRINTF(2, 3);
/* What is the agent's own is taken off: signals, oom_score_adj, limits. */
void child_reset(void);

struct user {
	uid_t uid;
	gid_t gid;
	char name[256], home[256], shell[256];
	gid_t groups[64];
	size_t group_count;
};

/* "name", "uid", each with ":group" or ":gid"; NULL is root.  0, or -1 when
 * there is no such user or group. */
int user_find(struct user *u, const char *spec);

/* ---- transfer.c: OP_GET, OP_PUT, in a child ----------------------------- */

NORETURN void transfer_run(const struct request *r, int conn, uint32_t id);

/* ---- cgroup.c ----------------------------------------------------------- */

void cgroup_init(void);
int cgroup_make(uint32_t id);	 /* descriptor, or -1 and errno */
bool cgroup_remove(uint32_t id); /* false while somebody is in it */
/* Nobody is in it any more, but cgroups that the exec made in it may be. */
void cgroup_clear(uint32_t id);
int cgroup_kill(int dir, int signal); /* every process in it */
bool cgroup_oom(int dir);
/* POLLPRI when it may have become empty; asking arms the next notice. */
int cgroup_events(int dir);
bool cgroup_empty(int events);

/* ---- identity.c: who this guest is -------------------------------------- */

/* NULL while the guest has no generation. */
const unsigned char *identity(void);
/* Has it had one, in this life or before a restore? */
bool identity_had(void);
/* Everything but the generation: the guest is nobody until that is confirmed.
 * 0, or -1 with the reason in why. */
int identity_take(const struct request *r, char *why, size_t size);
int identity_confirm(const struct request *r, char *why, size_t size);
/* A generation as UUID. */
void identity_text(const unsigned char g[GENERATION_LEN], char text[37]);

/* ---- hooks.c: what the image does in a copy of itself ------------------- */

/* Run them for a client that gave an identity, and confirm that when they are
 * done. */
void hooks_run(struct conn *c);
/* An older identity whose hooks still run is given up. */
void hooks_abandon(void);
void hooks_reaped(pid_t pid, int status);
void hooks_watch(void);
void hooks_settle(void); /* before conns_settle(), which frees their client */

/* ---- power.c ------------------------------------------------------------ */

NORETURN void power_off(void);

#endif
