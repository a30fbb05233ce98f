/*
 * cgi.h - one HTTP request, from the bytes of a web server to the answer.
 *
 *	cgi-head.c	CGI environment or SCGI netstring -> struct cgi_head
 *	cgi-uri.c	path and query -> route and fields
 *	cgi-field.c	what a value may be
 *	cgi-body.c	JSON -> fields
 *	cgi-parse.c	all of these, in a cage -> canonical request on a pipe
 *	cgi-cage.c	the cage: read, write, memory, exit
 *	cgi-request.c	the parent: start the parser, read the canonical
 *			request, believe none of it that is not checked again
 *	cgi-answer.c	what goes back
 *	cgi-client.c	whether the client still waits
 *	cgi-run.c	ark's commands by argv
 *	cgi-listen.c	the SCGI listener
 *	rest*.c		the routes
 *
 * The canonical request is a sequence of records, u8 field, u8 zero[3], u32
 * length (little-endian), bytes; ends with F_END.  Numbers are u64, truth is
 * one byte, the rest is UTF-8 text without NUL but for F_CONTENT and F_STDIN.
 */
#ifndef CGI_H
#define CGI_H

#include "auth.h"
#include "quota.h"

#include <jansson.h>
#include <poll.h>
#include <signal.h>

#define CGI_HEAD_MAX (64u * 1024)    /* all header lines */
#define CGI_JSON_MAX (1024u * 1024)  /* a JSON body */
#define CGI_FILES_MAX (4096u * 1024) /* the JSON body of POST files */
#define CGI_STREAM_MAX (1ULL << 40)  /* a file or a tar archive */
#define CGI_DEPTH_MAX 8		     /* of JSON */
#define CGI_VALUES_MAX 8192	     /* in a JSON body, of all kinds */
#define CGI_RECORDS_MAX 8192	     /* of a canonical request */
#define CGI_RECORD_HEAD 8
#define CGI_PATH_MAX 4095 /* of a path in a guest */

enum field {
	F_NONE,

	/* of every request */
	F_END,	  /* empty: the request is whole */
	F_ERROR,  /* u64 status, text: the answer */
	F_ROUTE,  /* u64 index */
	F_REMOTE, /* address of the client, or empty */
	F_REMOTE_PORT,
	F_SERVER, /* address that it is connected to */
	F_SERVER_PORT,
	F_ALLOW,  /* before an F_ERROR of 405: the methods that there are */
	F_CREDS,  /* Authorization, or empty */
	F_LENGTH, /* u64: so many bytes of body follow on stdin */
	F_NAME,	  /* {name} of the path */
	F_ID,	  /* {id} of the path */

	/* of the query or the body, by the table in cgi-field.c */
	F_VM_NAME,
	F_SNAPSHOT,
	F_KERNEL,
	F_ROOTFS,
	F_INITRAMFS,
	F_ENTRY,
	F_IMAGE,
	F_MEMORY,
	F_CPUS,
	F_DISK,
	F_RATE,
	F_POLICY,
	F_PORTS,
	F_TTL,
	F_REMOVE,
	F_START,
	F_STATUS,
	F_SIZE,
	F_CMD,
	F_BLOCKING,
	F_FILES,
	F_ARGV,
	F_ENV,
	F_CWD,
	F_USER,
	F_TIMEOUT,
	F_GRACE,
	F_WAIT,
	F_STDIN,
	F_STDIN64,
	F_STREAM,
	F_DETACH,
	F_SIGNAL,
	F_COUNT,
	F_PREFIX,
	F_PARTIAL,
	F_PATHS,
	F_PATH,
	F_MODE,
	F_FOLLOW,
	F_PROBE,
	F_GUEST_PORT,
	F_HOST_PORT,
	F_ADDRESS,
	F_PROTOCOL,
	F_DESCRIPTION,

	/* out of F_FILES: these three in turns */
	F_FILE_PATH,
	F_FILE_MODE,
	F_CONTENT,
	F_COUNT_OF_FIELDS
};

enum kind {
	KIND_NONE,
	KIND_TEXT,    /* min to max bytes; one of the words, if there are any */
	KIND_NAME,    /* name_ok() */
	KIND_PATH,    /* absolute */
	KIND_EMPTY,   /* must be the empty text */
	KIND_DATA,    /* text that may hold NUL */
	KIND_BASE64,  /* comes out as KIND_DATA */
	KIND_NUMBER,  /* min to max */
	KIND_SECONDS, /* comes out as KIND_NUMBER, milliseconds */
	KIND_MODE,    /* octal text, comes out as KIND_NUMBER */
	KIND_TRUTH,
	KIND_SIZE,  /* number, or text such as 4G; comes out as text */
	KIND_PORT,  /* number, or text that is a port or a range; as text */
	KIND_TEXTS, /* a list of them */
	KIND_MAP,   /* object of texts: comes out as NAME=VALUE each */
	KIND_FILES, /* list of {path, content, mode} */
	KIND_PORTS, /* list of {guestPort ...}: as ark-net(1) has it, each */
	KIND_IGNORED,
};

struct field_rule {
	const char *key;
	enum kind kind;
	uint64_t min, max;
	const char *words; /* "open|none", or NULL; of a name: what it is not */
	unsigned most;	   /* of a list; 0: one */
};

/* The rule of a field. */
const struct field_rule *field_rule(enum field f);

/* ---- routes (rest.c) ----------------------------------------------------- */

struct call;

enum route_flag {
	ROUTE_V1 = 1,	   /* only below /v1, and no field that is not known */
	ROUTE_STREAM = 2,  /* the body is not JSON and is left to the route */
	ROUTE_CHANGES = 8, /* is written to the audit log */
	ROUTE_BIG = 16,	   /* CGI_FILES_MAX instead of CGI_JSON_MAX */
};

#define ROUTE_FIELDS 18

struct route {
	const char *method;
	const char *path;   /* "/vms/{name}/execs/{id}" */
	const char *action; /* word of the audit log and the metrics */
	enum scope scope;
	unsigned flags;
	int (*run)(struct call *c);	    /* the status that was answered */
	unsigned char fields[ROUTE_FIELDS]; /* of body and query */
	unsigned char must[3];		    /* of them, that have to be there */
};

extern const struct route routes[];
extern const size_t routes_count;

/* ---- cgi-head.c ---------------------------------------------------------- */

struct cgi_head {
	const char *method, *uri, *script, *info, *query, *type;
	const char *creds, *origin, *host, *remote, *remote_port;
	const char *server, *server_port;
	long long length; /* of the body, 0 without */
};

/* Out of the environment (CGI/1.1); NULL, or what is wrong. */
const char *head_of_environment(struct cgi_head *h);

/* Out of a netstring (SCGI) that is read from `in`, and not a byte more, into
 * `text`, CGI_HEAD_MAX bytes that the head points into. */
const char *head_of_scgi(struct cgi_head *h, int in, char *text);

/* ---- cgi-parse.c: runs in the cage --------------------------------------- */

struct parser {
	int in, out;
	bool scgi;
	bool caged; /* false in a fuzz target only */
	bool open;  /* no tokens: auth = none */
	/* Are these a tenant's?  In constant time, and without a system call.
	 */
	bool (*known)(const char *creds);
};

/* Read one request, write the canonical one; memory is left to the exit. */
void cgi_parse(const struct parser *p);

/* What a part of the parser answers instead. */
struct refusal {
	int status; /* 0: none */
	char why[200];
};

struct refusal refuse(int status, const char *fmt, ...) PRINTF(2, 3);

void emit(int out, enum field f, const void *data, size_t len);
void emit_text(int out, enum field f, const char *text);
void emit_number(int out, enum field f, uint64_t number);

/* ---- cgi-field.c: what a value may be ------------------------------------ */

/* Check a value, which has `len` bytes and a NUL behind them, and emit it. */
struct refusal put_text(enum field f, const char *text, size_t len, int out);
struct refusal put_number(enum field f, long long number, int out);
struct refusal put_seconds(enum field f, double seconds, int out);
struct refusal put_truth(enum field f, bool truth, int out);
struct refusal put_base64(enum field f, const char *text, size_t len, int out);

/* One that came in a query. */
struct refusal put_query(enum field f, char *text, int out);

/* Is a record what a parser that was not taken over would have sent? */
bool field_ok(enum field f, const char *data, size_t len);

/* A port as ark-net(1) has it; parts that are empty are left out. */
void port_spec(char *out, size_t size, const char *address, const char *host,
	       const char *guest, const char *protocol, const char *what);

/* ---- cgi-code.c ---------------------------------------------------------- */

/* NULL, or what is wrong; in place, len is set. */
const char *base64_decode(char *text, size_t *len);
/* Owned by the caller; NULL without memory. */
char *base64_encode(const char *data, size_t len);

/* Valid UTF-8, no overlong form, no surrogate. */
bool utf8_ok(const char *text, size_t len);
/* So many bytes of it are. */
size_t utf8_span(const char *text, size_t len);

/* Bytes of a guest as a JSON string: U+FFFD for what is no UTF-8. */
json_t *json_guest(const char *data, size_t len);

/* ---- cgi-uri.c, cgi-body.c ----------------------------------------------- */

struct target {
	const struct route *route;
	char name[NAME_MAX_LEN + 1], id[NAME_MAX_LEN + 1];
};

/* Find the route of a path (decoded by parts); `allowed` gets the methods that
 * the path has when it has not this one. */
struct refusal uri_route(const struct cgi_head *h, struct target *t,
			 char allowed[64]);

/* %41 and, in a query, + are decoded in place: the length, or -1. */
ssize_t uri_decode(char *text, bool plus);

/* The fields of a query string; `seen` collects a bit of each. */
struct refusal uri_query(const char *query, const struct route *r, int out,
			 uint64_t *seen);

/* The same of a JSON text. */
struct refusal body_fields(char *text, size_t len, const struct route *r,
			   int out, uint64_t *seen);

/* Are the fields of the route those of a JSON body, or of the query? */
bool route_has_json(const struct route *r);

/* The field of that key in the route, or F_NONE. */
enum field route_field(const struct route *r, const char *key);

/* ---- cgi-cage.c ---------------------------------------------------------- */

/* From here on read, write, memory and the end; anything else kills.  0, or -1
 * and errno. */
int cage(void);

/* ---- cgi-request.c ------------------------------------------------------- */

struct record {
	enum field field;
	size_t len;
	char *data; /* followed by a NUL */
};

struct call {
	const struct route *route;
	char *buffer;		/* owned */
	struct record *records; /* owned */
	size_t count;
	const char *name, *id;	     /* of the path, as the client says them */
	const struct token *token;   /* whose request this is */
	char full[NAME_MAX_LEN + 1]; /* `name` as it is on the disk, or "" */
	const char *remote, *creds;
	struct quota_claim claim;
	uint64_t length; /* of the body on stdin */
	uint64_t began;	 /* now_ms() */
};

/* Run the parser on stdin and read what it says.  0, or the status that was
 * answered already. */
int request_read(struct call *c, const struct parser *p);

/* Decode and check canonical bytes; `len` bytes and a NUL, which are changed
 * and pointed into.  NULL, or what is wrong; F_ERROR gives *status and the
 * text of the client's fault. */
const char *request_check(struct call *c, char *data, size_t len, int *status);

void call_free(struct call *c);

const struct record *call_record(const struct call *c, enum field f,
				 size_t nth);
/* NULL when it was not given. */
const char *call_text(const struct call *c, enum field f);
bool call_truth(const struct call *c, enum field f, bool otherwise);
bool call_number(const struct call *c, enum field f, uint64_t *number);

#define DIGITS_SIZE 24
/* A number as an option has it, a time with its unit: text, or NULL. */
const char *call_digits(const struct call *c, enum field f,
			char text[DIGITS_SIZE]);

/* ---- cgi-answer.c -------------------------------------------------------- */

/* The status line and head; `length` < 0: until the connection ends. */
int answer_begin(int status, const char *type, long long length);

/* A whole answer; takes the reference.  All return the status. */
int answer_json(int status, json_t *body);
int answer_text(int status, const char *type, const char *text, size_t len);
/* A code of NULL is the one of the status. */
int answer_error(int status, const char *code, const char *fmt, ...)
	PRINTF(3, 4);

/* One more line of the head of the next answer. */
void answer_header(const char *fmt, ...) PRINTF(1, 2);

/* What has been answered so far; 0: nothing. */
int answer_status(void);

/* ---- cgi-client.c -------------------------------------------------------- */

/* The two ends of the client's connection to the web server. */
void client_watch(const char *local, uint16_t local_port, const char *remote,
		  uint16_t remote_port);

/* ppoll(2) of at most CLIENT_POLL_MAX descriptors that also ends when the
 * client has gone: -1 and EPIPE. */
#define CLIENT_POLL_MAX 4
int client_poll(struct pollfd *p, size_t n, int ms, const sigset_t *mask);

/* stdin when it is a connection, else -1. */
int client_fd(void);

/* ---- cgi-run.c ----------------------------------------------------------- */

#define COMMAND_WORDS 5200

struct command {
	char path[4096];
	const char *argv[COMMAND_WORDS + 1];
	size_t n;
	char *output;  /* set: stdout, owned */
	char why[200]; /* set: first line of stderr, without the program */
};

/* Another word; too many of them are noticed when it is run. */
void command_add(struct command *cmd, const char *word);

/* An option and its value; neither without a value. */
void command_option(struct command *cmd, const char *option, const char *value);

/* Run it: its exit code.  The words live as long as the caller's. */
int command_run(struct command *cmd);

/* Start it with these as its descriptors 0, 1, 2 and 3 (-1: /dev/null; of 3:
 * none); it dies with us.  Its pid, or -1 and errno. */
pid_t command_spawn(struct command *cmd, int in, int out, int err, int status);
/* Let it write to the client until it ends or the client goes. */
void command_stream(struct command *cmd);
void command_free(struct command *cmd);
#define AUTO_COMMAND __attribute__((cleanup(command_free)))

/* Answer with what has failed, by the exit code of one of ark's commands or
 * of the library; names as the client knows them. */
int answer_failure(const struct call *c, int code, const char *why);

/* ---- cgi-listen.c -------------------------------------------------------- */

/* Accept on a socket that is made at this path, for that group (NULL: ours), or
 * on an open descriptor, and run this program for each connection, `limit` at
 * once, until a signal comes.  0, or the negative exit code, told. */
int cgi_listen(const char *where, const char *group, unsigned limit);

#endif
