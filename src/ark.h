/*
 * ark.h - what every ark program is built on.
 *
 * The rule of the tree: a file with main() is a command, every other file in
 * src/ is library.  Library functions that can fail in a way that the user
 * must hear of print their one line themselves, with fail() or fail_errno(),
 * and return the negative exit code (-EX_NOINPUT ...).  Whoever gets a negative
 * number passes it on and prints nothing: a failure is one line, said where it
 * is understood best.  main() returns the positive code.
 *
 * Sections in the order of the .c files: msg, num, name, file, proc, spawn.
 */
#ifndef ARK_H
#define ARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#define ARK_VERSION "0.1"

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN __attribute__((noreturn))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define STRING(number) STRING_OF(number)
#define STRING_OF(text) #text

/* Scope-owned resources: released when the variable leaves its scope.
 * steal_fd() and steal_ptr() hand ownership on to whoever called us. */
#define AUTO_CLOSE __attribute__((cleanup(close_at_exit_of_scope)))
#define AUTO_FREE __attribute__((cleanup(free_at_exit_of_scope)))

static inline int steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void close_at_exit_of_scope(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void free_at_exit_of_scope(void *pointer)
{
	free(*(void **)pointer);
}

/* What has bitten everybody before is not compiled here. */
#pragma GCC poison strcpy strcat sprintf vsprintf strtok gets system popen     \
	mktemp tmpnam gmtime localtime atoi atol

/* Exit codes that sysexits.h does not have.  A command run in a guest ends
 * with its own code or with one of these. */
enum {
	EX_TIMEOUT = 124, /* --timeout ran out */
	EX_ARK = 125, /* ark, the VMM or the agent failed, not the command */
	EX_CANNOT_RUN = 126,
	EX_NOT_FOUND = 127,
};

/* ---- msg.c: one line, one write(2), control bytes shown as '?' ---------- */

/* The name in front of every message; set once at the top of main(). */
extern const char *progname;

/* Print "progname: message" on stderr. */
void warn_line(const char *fmt, ...) PRINTF(1, 2);

/* Print the line and return -code, for `return fail(EX_USAGE, ...)`.
 * fail_errno() appends ": strerror(errno)" and keeps errno. */
int fail(int code, const char *fmt, ...) PRINTF(2, 3);
int fail_errno(int code, const char *fmt, ...) PRINTF(2, 3);

/* The last line that was told, without the program's name; "" before. */
const char *last_message(void);

/* Print the line and end the process; for commands only. */
NORETURN void die(int code, const char *fmt, ...) PRINTF(2, 3);

/* Print "usage: text" plus a hint at --help on stderr and exit with 64. */
NORETURN void die_usage(const char *usage);

/* After getopt(3), with opterr 0, has said '?': tell which word was bad and
 * exit with 64. */
NORETURN void die_option(char *const argv[]);

/* Flush stdout; a full disk or a broken device is -EX_IOERR and one line, a
 * reader that went away (EPIPE) is quiet and -EX_IOERR as well. */
int flush_stdout(void);

/* The exit code when `code` says how the work went: a good one becomes bad
 * when stdout could not be written.  `return finish(r)` ends every main(). */
int finish(int code);

/* Copy `text` with every control byte and invalid UTF-8 byte as '?', so that a
 * guest's bytes cannot drive the user's terminal.  Always terminated. */
void printable(char *out, size_t size, const char *text);

/* ---- num.c: strict parsers; on failure *why names the reason ------------ */

/* Decimal integer, nothing around it, within [min, max]. */
bool parse_num(const char *text, long long min, long long max, long long *out,
	       const char **why);

/* Bytes: 123, 64K, 512M, 4G, 1T (powers of 1024; an i, iB or B may follow). */
bool parse_size(const char *text, uint64_t *bytes, const char **why);

/* Milliseconds from 2, 1.5, 30s, 500ms, 5m, 1h, 1d; a bare number is seconds.
 * At most 10 years. */
bool parse_duration(const char *text, uint64_t *ms, const char **why);

/* "512M", "4G", "1.5G": at most `size` bytes (8 is enough), terminated. */
void format_size(char *out, size_t size, uint64_t bytes);

/* "5s", "3m", "2h", "9d". */
void format_age(char *out, size_t size, uint64_t seconds);

/* RFC 3339 of seconds since 1970, UTC, "2026-12-01T04:05:06Z"; "" for a year
 * that has no four digits. */
#define UTC_SIZE 21
void format_utc(char out[UTC_SIZE], long long seconds);

/* ---- name.c: the one place that says what a name is --------------------- */

#define NAME_MAX_LEN 63

/* [A-Za-z0-9][A-Za-z0-9_.-]{0,62} for sandboxes, snapshots and images alike.
 * A name is a file name, a host name and a word of a command line: anything
 * else (a slash, a leading dot or dash, a newline) is somebody's attack. */
bool name_ok(const char *name);

/* 0, or one line and -EX_USAGE; `kind` is "sandbox", "image" ... */
int check_name(const char *kind, const char *name);

/* ---- file.c: files under a directory descriptor, never joined as text --- */

/* Read at most size-1 bytes of a regular file, terminate, return the length;
 * -1 and errno, EFBIG when the file is longer. */
ssize_t read_file(int dir, const char *name, char *buf, size_t size);

/* Value file: one line, the trailing newline cut off.  Same results. */
ssize_t read_value(int dir, const char *name, char *buf, size_t size);

/* Value file holding a number in [min, max]: 0, or -1 and errno (EINVAL). */
int read_number(int dir, const char *name, long long min, long long max,
		long long *out);

/* Replace dir/name by the text: temporary file, fsync, rename.  0, or -1 and
 * errno with nothing left behind. */
int write_value(int dir, const char *name, const char *fmt, ...) PRINTF(3, 4);

/* write(2) and read(2) until all is done; -1 and errno.  read_full() returns
 * fewer bytes than asked for only at end of file. */
int write_full(int fd, const void *data, size_t len);
int pwrite_full(int fd, const void *data, size_t len, off_t at);
ssize_t read_full(int fd, void *data, size_t len);

/* Open dir/name as a directory, O_NOFOLLOW; -1 and errno. */
int open_dir(int dir, const char *name);

/* mkdir -p of an absolute path, the last part with `mode`; an open directory
 * descriptor, or -1 and errno. */
int make_dir(const char *path, mode_t mode);

/* Remove dir/name and what is below it, without following a link and without
 * leaving the file system; absent is fine.  0, or -1 and errno. */
int remove_tree(int dir, const char *name);

/* flock(2) with a limit: polls until `ms` have passed, then -1 and EWOULDBLOCK.
 * ms = 0 tries once.  `op` is LOCK_EX or LOCK_SH. */
int lock_file(int fd, int op, unsigned ms);

/* ---- proc.c: processes named so that a recycled pid is never taken ------ */

struct proc {
	pid_t pid;
	unsigned long long
		start; /* clock ticks after boot, /proc/PID/stat 22 */
};

/* Fill in the start time of a live process; -1 and errno. */
int proc_of(pid_t pid, struct proc *p);

/* Value file "PID START"; -1 and errno. */
int proc_read(int dir, const char *name, struct proc *p);
int proc_write(int dir, const char *name, const struct proc *p);

/* Alive and the same process; a zombie is not alive. */
bool proc_alive(const struct proc *p);

/* A pidfd of exactly that process, or -1 and ESRCH.  Owned by the caller. */
int proc_pidfd(const struct proc *p);

/* In a child: end when `parent`, which has forked it, does. */
void die_with(pid_t parent);

/* Its folder in /proc: what is opened below it is that process', or fails.
 * Owned by the caller; -1 and errno. */
int proc_dir(const struct proc *p);

/* Milliseconds of CLOCK_MONOTONIC. */
uint64_t now_ms(void);

/* Milliseconds of CLOCK_BOOTTIME: those of process start times, and of
 * deadlines, which go on while the host sleeps. */
uint64_t boot_ms(void);

/* ---- spawn.c: children by argv, never by a shell ------------------------ */

/* Run argv, wait: 0..255 its exit code, 128+n when signal n killed it, or -1
 * and errno when it could not be started. */
int run_wait(const char *const argv[]);

/* A child that is fed text and whose output is kept. */
struct run {
	const char *const *argv;
	const char *text;	 /* its stdin; NULL: /dev/null */
	const char *environment; /* one more "NAME=value", or NULL */
	int netns;	  /* network namespace to run in; 0: the caller's */
	char **output;	  /* its stdout, owned by the caller; NULL: dropped */
	char errors[200]; /* out: first line of its stderr, printable */
};

/* As run_wait(). */
int run_text(struct run *r);

/* Absolute path of a sibling command (libexec or the folder of this program),
 * in a static buffer; for `ark-disk` called by `ark-vm` and the like. */
const char *sibling(const char *command);

#endif
