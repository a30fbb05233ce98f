/*
 * audit.c - append to the audit log.
 *
 * 1. One writer at a time, by flock on audit.head, which says number, hash and
 *    end of the last line.  It is written after the line is on the disk: behind
 *    it may be lines of writers that were killed in between, which are read and
 *    joined when they go on the chain; a torn one (a full disk, a power
 *    failure) was never acknowledged and is cut off.
 * 2. Nothing that is there is ever changed.  When the log is shorter than the
 *    head says, the chain goes on from the head: verify finds the gap.
 * 3. A request has a note in ARK_RUN/audit from before it does anything until
 *    its line is on the disk.  A note that can be locked is of a process that
 *    was killed: the next writer makes a line of it, unless one with its id is
 *    there already.  Notes are made and swept under flock on the folder.
 * 4. Text comes from requests: it is cut, made printable, and written as JSON
 *    by a library.
 */
#include "audit-line.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <syslog.h>

#define ROOM_MIN (1ULL << 20) /* bytes; with less no request is begun */

/* ---- the end of the log ------------------------------------------------- */

struct tail {
	int head_fd, log;
	struct audit_head head;
};

#define AUTO_TAIL __attribute__((cleanup(tail_close)))

static void tail_close(const struct tail *t)
{
	if (t->log >= 0)
		close(t->log);
	if (t->head_fd >= 0)
		close(t->head_fd);
}

/* Move the head over the lines behind it that go on from it. */
static int join(struct tail *t)
{
	int fd = fcntl(t->log, F_DUPFD_CLOEXEC, 0);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	ssize_t len;

	if (!in || fseeko(in, t->head.end, SEEK_SET) < 0) {
		if (in)
			fclose(in);
		else if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((len = getline(&line, &size, in)) > 0 && line[len - 1] == '\n') {
		struct audit_record r;

		if (audit_parse(line, (size_t)len - 1, &r) != NULL ||
		    r.seq != t->head.seq + 1 ||
		    strcmp(r.prev, t->head.hash) != 0)
			break;
		t->head.seq = r.seq;
		t->head.end += len;
		memcpy(t->head.hash, r.hash, sizeof(r.hash));
	}
	/* Nothing but a piece of a line, the last: torn. */
	if (len > 0 && line[len - 1] != '\n' &&
	    ftruncate(t->log, t->head.end) < 0)
		len = -2;
	fclose(in);
	return len == -2 ? -1 : 0;
}

/* What is at the end now, to append to. */
static int settle(struct tail *t, off_t *size)
{
	struct stat st;
	char last = '\n';

	if (fstat(t->log, &st) < 0)
		return -1;
	if (st.st_size > t->head.end && (join(t) < 0 || fstat(t->log, &st) < 0))
		return -1;
	if (st.st_size > 0 && pread(t->log, &last, 1, st.st_size - 1) != 1)
		return -1;
	if (last != '\n' && write_full(t->log, "\n", 1) < 0)
		return -1;
	*size = st.st_size + (last != '\n');
	return 0;
}

static int tail_open(struct tail *t, int root)
{
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;

	t->log = -1;
	t->head_fd = openat(root, AUDIT_HEAD, flags, 0600);
	if (t->head_fd < 0)
		return fail_errno(EX_IOERR, "cannot open " AUDIT_HEAD);
	if (lock_file(t->head_fd, LOCK_EX, 10000) < 0)
		return fail(EX_TEMPFAIL, "the audit log is busy");
	t->log = openat(root, AUDIT_LOG, flags | O_APPEND, 0600);
	if (t->log < 0)
		return fail_errno(EX_IOERR, "cannot open " AUDIT_LOG);
	audit_head_read(t->head_fd, &t->head);
	return 0;
}

/* ---- one line ----------------------------------------------------------- */

static int append(struct tail *t, struct audit_record *r)
{
	char line[AUDIT_LINE_MAX];
	off_t size = 0;
	int len;

	if (settle(t, &size) < 0)
		return -1;
	r->seq = t->head.seq + 1;
	memcpy(r->prev, t->head.hash, sizeof(r->prev));
	len = audit_format(r, line);
	if (len < 0) {
		errno = EMSGSIZE;
		return -1;
	}
	if (write_full(t->log, line, (size_t)len) < 0 || fsync(t->log) < 0) {
		int saved = errno;

		/* Not acknowledged: as if it had never been. */
		if (ftruncate(t->log, size) < 0)
			warn_line("cannot take back a torn line of " AUDIT_LOG);
		errno = saved;
		return -1;
	}
	t->head.seq = r->seq;
	t->head.end = size + len;
	memcpy(t->head.hash, r->hash, sizeof(r->hash));
	syslog(LOG_AUTHPRIV | LOG_NOTICE, "ark audit %lld:%s", r->seq, r->hash);
	return audit_head_write(t->head_fd, &t->head);
}

/* ---- notes -------------------------------------------------------------- */

/* time, tenant, token, address, action, object: a line each. */
static int write_note(int fd, const struct audit_record *r)
{
	return dprintf(fd, "%s\n%s\n%s\n%s\n%s\n%s\n", r->time, r->tenant,
		       r->token, r->address, r->action, r->object) < 0
		       ? -1
		       : 0;
}

static bool read_note(int folder, const char *id, struct audit_record *r)
{
	char text[AUDIT_LINE_MAX], *rest = text;
	struct {
		char *out;
		size_t size;
	} line[] = {
		{r->time, sizeof(r->time)},
		{r->tenant, sizeof(r->tenant)},
		{r->token, sizeof(r->token)},
		{r->address, sizeof(r->address)},
		{r->action, sizeof(r->action)},
		{r->object, sizeof(r->object)},
	};

	if (read_file(folder, id, text, sizeof(text)) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(line); i++) {
		const char *word = strsep(&rest, "\n");

		if (!rest || strlen(word) >= line[i].size)
			return false;
		memcpy(line[i].out, word, strlen(word) + 1);
	}
	snprintf(r->id, sizeof(r->id), "%.16s", id);
	r->result = r->ms = -1;
	return true;
}

static int note_folder(void)
{
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int fd = -1;

	if (run < 0)
		return run;
	if ((mkdirat(run, "audit", 0700) < 0 && errno != EEXIST) ||
	    (fd = open_dir(run, "audit")) < 0)
		return fail_errno(EX_OSERR, "cannot make ARK_RUN/audit");
	if (lock_file(fd, LOCK_EX, 10000) < 0)
		return fail(EX_TEMPFAIL, "ARK_RUN/audit is busy");
	return steal_fd(&fd);
}

/* Was the line written, and only the note left? */
static bool in_log(int log, const char *id)
{
	int fd = fcntl(log, F_DUPFD_CLOEXEC, 0);
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	char key[AUDIT_ID_LEN + 16];
	size_t size = 0;
	bool found = false;

	if (!in) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	snprintf(key, sizeof(key), "\"id\":\"%.16s\"", id);
	rewind(in);
	while (!found && getline(&line, &size, in) > 0)
		found = strstr(line, key) != NULL;
	fclose(in);
	return found;
}

static int is_note(const struct dirent *entry)
{
	return strlen(entry->d_name) == AUDIT_ID_LEN &&
	       strspn(entry->d_name, "0123456789abcdef") == AUDIT_ID_LEN;
}

static int sweep_note(struct tail *t, int folder, const char *id)
{
	AUTO_CLOSE int fd =
		openat(folder, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct audit_record r;

	if (fd < 0 || lock_file(fd, LOCK_EX, 0) < 0)
		return 0;
	/* Half written: its process was killed before it did anything. */
	if (read_note(folder, id, &r) && !in_log(t->log, id) &&
	    append(t, &r) < 0)
		return -1;
	return unlinkat(folder, id, 0);
}

/* Lines of those that were killed. */
static int sweep_notes(struct tail *t, int folder)
{
	struct dirent **list;
	int n = scandirat(folder, ".", &list, is_note, NULL);
	int result = n < 0 ? -1 : 0;

	for (int i = 0; i < n; i++) {
		if (result == 0)
			result = sweep_note(t, folder, list[i]->d_name);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return result;
}

/* ---- begin and end ------------------------------------------------------ */

static void clean(char out[128], const char *text)
{
	printable(out, 128, text ? text : "");
}

static void fill(struct audit_record *r, const struct audit *a)
{
	*r = (struct audit_record){.result = -1, .ms = -1};
	clean(r->tenant, a->tenant);
	clean(r->token, a->token);
	clean(r->address, a->address);
	clean(r->action, a->action);
	clean(r->object, a->object);
	memcpy(r->time, a->time, sizeof(r->time));
	memcpy(r->id, a->id, sizeof(r->id));
}

static int stamp(struct audit *a)
{
	unsigned char random[AUDIT_ID_LEN / 2];
	struct timespec now;
	struct tm tm;
	size_t len;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -1;
	to_hex(random, sizeof(random), a->id);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	len = strftime(a->time, sizeof(a->time), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(a->time + len, sizeof(a->time) - len, ".%03ldZ",
		 now.tv_nsec / 1000000);
	a->started = now_ms();
	return 0;
}

static int check_room(int root)
{
	struct statvfs fs;

	if (fstatvfs(root, &fs) < 0)
		return fail_errno(EX_IOERR, "cannot look at the audit log");
	if ((uint64_t)fs.f_bfree * fs.f_frsize < ROOM_MIN)
		return fail(EX_IOERR, "no room for the audit log");
	return 0;
}

int audit_begin(struct audit *a)
{
	AUTO_CLOSE int root = root_open(NULL);
	AUTO_CLOSE int folder = root < 0 ? root : note_folder();
	struct audit_record r;
	int result;

	a->pending = -1;
	if (folder < 0)
		return folder;
	result = check_room(root);
	if (result < 0)
		return result;
	if (stamp(a) < 0)
		return fail_errno(EX_OSERR, "no random bytes");
	fill(&r, a);
	a->pending = openat(folder, a->id,
			    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (a->pending >= 0 && lock_file(a->pending, LOCK_EX, 0) == 0 &&
	    write_note(a->pending, &r) == 0)
		return 0;
	result = fail_errno(EX_IOERR, "cannot note the request");
	if (a->pending >= 0) {
		unlinkat(folder, a->id, 0);
		close(a->pending);
		a->pending = -1;
	}
	return result;
}

int audit_end(struct audit *a, int result)
{
	AUTO_CLOSE int root = root_open(NULL);
	AUTO_CLOSE int folder = -1;
	AUTO_TAIL struct tail t = {.head_fd = -1, .log = -1};
	struct audit_record r;
	int code = root < 0 ? root : tail_open(&t, root);

	if (code == 0)
		code = folder = note_folder();
	if (code < 0)
		return code;
	fill(&r, a);
	r.result = result;
	r.ms = (long long)(now_ms() - a->started);
	code = sweep_notes(&t, folder);
	/* Others may begin while we wait for the disk. */
	flock(folder, LOCK_UN);
	if (code < 0 || append(&t, &r) < 0)
		return fail_errno(EX_IOERR, "cannot write the audit log");
	unlinkat(folder, a->id, 0);
	close(a->pending);
	a->pending = -1;
	return 0;
}
