/*
 * audit-verify.c - is the audit log as it was written?
 *
 * After a fault the next line is compared with the faulty one as it stands: so
 * each fault is told once, at its place, and a line whose hash was made again
 * is told by the line after it.
 *
 * The head is read before the lines.  What it says must be among them; writers
 * may put more behind meanwhile.
 */
#include "audit-line.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>

struct walk {
	struct audit_check *check;
	const char *file; /* as it is told */
	long long line;
	struct audit_head at;	/* the last record */
	struct audit_head head; /* what must be among them; seq 0: nothing */
};

static void fault(struct walk *w, const char *fmt, ...) PRINTF(2, 3);

static void fault(struct walk *w, const char *fmt, ...)
{
	char text[400];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	w->check->faults++;
	warn_line("%s:%lld: %s", w->file, w->line, text);
}

/* Does the record stand where it was written? */
static void check_place(struct walk *w, const struct audit_record *r)
{
	if (r->seq == w->at.seq + 1 && strcmp(r->prev, w->at.hash) == 0)
		return;
	if (w->at.seq == 0)
		fault(w, "begins with record %lld: those before are missing",
		      r->seq);
	else if (r->seq > w->at.seq + 1)
		fault(w, "record %lld after %lld: those between are missing",
		      r->seq, w->at.seq);
	else if (r->seq <= w->at.seq)
		fault(w, "record %lld after %lld: put in or moved", r->seq,
		      w->at.seq);
	else
		fault(w,
		      "record %lld does not go on from the one before: that "
		      "was changed, or this was put in",
		      r->seq);
}

static void compare(struct walk *w, const struct audit_record *r, long long seq,
		    const char *hash, const char *whose)
{
	if (seq == r->seq && strcmp(hash, r->hash) != 0)
		fault(w, "record %lld is not the one of %s", seq, whose);
}

static void walk_line(struct walk *w, const char *line, size_t len)
{
	struct audit_record r = {0};
	const char *why = audit_parse(line, len, &r);

	if (why)
		fault(w, "%s", why);
	/* A line that says nothing of itself is passed over. */
	if (r.seq == 0)
		return;
	check_place(w, &r);
	compare(w, &r, w->head.seq, w->head.hash, AUDIT_HEAD);
	compare(w, &r, w->check->head_seq, w->check->head_hash, "--head");
	w->at.seq = r.seq;
	memcpy(w->at.hash, r.hash, sizeof(r.hash));
	w->check->lines++;
}

static int walk_file(struct walk *w, int fd)
{
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	if (!in) {
		r = fail_errno(EX_NOINPUT, "cannot read '%s'", w->file);
		if (fd >= 0)
			close(fd);
		return r;
	}
	w->line = 0;
	while ((len = getline(&line, &size, in)) > 0) {
		w->line++;
		if (line[len - 1] == '\n')
			walk_line(w, line, (size_t)len - 1);
		else
			fault(w, "ends within a line");
	}
	if (ferror(in))
		r = fail_errno(EX_IOERR, "cannot read '%s'", w->file);
	fclose(in);
	return r;
}

/* The log of ARK_ROOT: what is not there is empty. */
static int walk_log(struct walk *w, int root)
{
	AUTO_CLOSE int fd =
		openat(root, AUDIT_LOG, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	w->file = AUDIT_LOG;
	if (fd < 0 && errno == ENOENT)
		return 0;
	return walk_file(w, steal_fd(&fd));
}

static int read_head(int root, struct audit_head *head)
{
	AUTO_CLOSE int fd =
		openat(root, AUDIT_HEAD, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	audit_head_none(head);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || lock_file(fd, LOCK_SH, 10000) < 0)
		return fail_errno(EX_OSERR, "cannot read " AUDIT_HEAD);
	audit_head_read(fd, head);
	return 0;
}

static void check_end(struct walk *w)
{
	struct audit_check *c = w->check;

	c->last = w->at.seq;
	memcpy(c->hash, w->at.hash, sizeof(c->hash));
	if (w->at.seq < w->head.seq)
		fault(w,
		      "ends with record %lld, and " AUDIT_HEAD
		      " says %lld: those behind are missing",
		      w->at.seq, w->head.seq);
	if (w->at.seq < c->head_seq)
		fault(w, "ends with record %lld: %lld of --head is missing",
		      w->at.seq, c->head_seq);
}

int audit_verify(char *const older[], size_t n, struct audit_check *c)
{
	AUTO_CLOSE int root = root_open(NULL);
	struct walk w = {.check = c};
	int r = root < 0 ? root : read_head(root, &w.head);

	audit_head_none(&w.at);
	for (size_t i = 0; r == 0 && i < n; i++) {
		w.file = older[i];
		r = walk_file(&w, open(older[i], O_RDONLY | O_CLOEXEC));
	}
	if (r == 0)
		r = walk_log(&w, root);
	if (r < 0)
		return r;
	check_end(&w);
	return c->faults ? -EX_DATAERR : 0;
}
