/*
 * tree-recv.c - the receiving end of tree.h.  The sender may be a guest, and
 * then every byte of the stream is an attack.
 *
 * 1. Only what the caller named, the target, is looked up as the kernel looks
 *    up paths (tree_resolve()).  Below it every directory is opened on its own,
 * from the descriptor of the one it is in, as a directory and no link: neither
 * a
 *    ".." nor a link that the stream has made, or that was there, leads out.
 * 2. The thing itself is a file or a directory.  Were it a link, a second copy
 *    to the same name would go where the link says.
 * 3. A file grows under a temporary name that nobody can guess and that is
 *    created, never opened; rename(2) puts it in place.  So what was there is
 *    replaced and never written into: a link is not followed, a FIFO not
 *    waited for, a program that runs keeps its text, a half file is not seen.
 * 4. Mode bits come last, after the data, and without set-id bits when the
 *    sender is not trusted.  Directories stay 0700 until the stream has left
 *    them; their times would not survive the files made in them anyhow.
 * 5. Nothing is allocated by a number of the stream.  A size only bounds the
 *    offsets; a huge one makes a sparse file or an error.
 */
#include "tree-part.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_FORM ".ark-XXXXXXXX.tmp"

/* Mode and time, applied when the thing is complete. */
struct looks {
	mode_t mode;
	uint64_t mtime;
};

/* A directory that the stream is in, and `len` bytes of r->dir name it. */
struct level {
	int fd;
	size_t len;
	int made; /* by us: its looks are ours to set */
	struct looks looks;
};

struct receiver {
	struct tree_error *error;
	unsigned flags;
	struct tree_place place; /* of the thing itself */
	int begun;

	int depth; /* levels in use; 0 when the thing is no directory */
	struct level level[TREE_DEPTH];
	char dir[TREE_PATH]; /* path of the innermost level */

	int open; /* a file or symlink is; the rest is about it */
	int file; /* its descriptor; -1 of a symlink */
	int in;	  /* the directory it is in, not owned */
	int temp_made;
	char temp[sizeof(TEMP_FORM)];
	char name[NAME_MAX + 1];
	char path[TREE_PATH]; /* of the last entry, for messages */
	uint64_t size, at;
	struct looks looks;

	struct frame frame;
};

static int fail_why(const struct receiver *r, const char *verb, const char *why)
{
	return tree_fail(r->error, verb, r->place.top, r->path, why);
}

static int fail_errno(const struct receiver *r, const char *verb)
{
	return fail_why(r, verb, strerror(errno));
}

static int bad_stream(const struct receiver *r, const char *what)
{
	snprintf(r->error->text, sizeof(r->error->text),
		 "not a tree of files: %s", what);
	return -1;
}

/* ---- directories --------------------------------------------------------- */

static void get_times(struct timespec times[2], uint64_t mtime)
{
	const uint64_t second = 1000000000;

	times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
	times[1].tv_sec = (time_t)(mtime / second);
	times[1].tv_nsec = (long)(mtime % second);
}

static int set_looks(const struct receiver *r, int fd,
		     const struct looks *looks)
{
	mode_t mask = r->flags & TREE_UNTRUSTED ? 0777 : 07777;
	struct timespec times[2];

	get_times(times, looks->mtime);
	if (fchmod(fd, looks->mode & mask) < 0)
		return -1;
	return futimens(fd, times);
}

static int leave(struct receiver *r)
{
	struct level *l = &r->level[--r->depth];
	int result = 0;

	if (l->made && set_looks(r, l->fd, &l->looks) < 0)
		result = fail_errno(r, "set the mode above");
	close(l->fd);
	return result;
}

/* Go into a directory; `len` bytes of path name it.  Takes the descriptor. */
static struct level *enter(struct receiver *r, int fd, const char *path,
			   size_t len)
{
	struct level *l = &r->level[r->depth];

	if (r->depth == TREE_DEPTH) {
		close(fd);
		fail_why(r, "create", "more than 128 directories deep");
		return NULL;
	}
	r->depth++;
	*l = (struct level){.fd = fd, .len = len};
	memcpy(r->dir, path, len);
	return l;
}

/* Is the innermost level the directory of these bytes, or above it? */
static int leads_to(const struct receiver *r, const char *path, size_t len)
{
	size_t have = r->level[r->depth - 1].len;

	if (have == 0)
		return 1;
	return have <= len && memcmp(r->dir, path, have) == 0 &&
	       (have == len || path[have] == '/');
}

/* Make the directory that `len` bytes of path name the innermost level, one
 * step at a time (argument 1). */
static int walk(struct receiver *r, const char *path, size_t len)
{
	size_t at;

	while (!leads_to(r, path, len))
		if (leave(r) < 0)
			return -1;
	at = r->level[r->depth - 1].len;
	while (at < len) {
		const char *part = path + at + (at > 0);
		size_t part_len = strcspn(part, "/");
		char name[NAME_MAX + 1];
		int fd;

		if (part_len >= sizeof(name))
			return fail_why(r, "create", strerror(ENAMETOOLONG));
		memcpy(name, part, part_len);
		name[part_len] = '\0';
		fd = openat(r->level[r->depth - 1].fd, name,
			    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return fail_errno(r, "create");
		at = (size_t)(part - path) + part_len;
		if (!enter(r, fd, path, at))
			return -1;
	}
	return 0;
}

static int begin_dir(struct receiver *r)
{
	int made = mkdirat(r->in, r->name, 0700) == 0;
	struct level *l;
	int fd;

	if (!made && errno != EEXIST)
		return fail_errno(r, "create directory");
	fd = openat(r->in, r->name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fail_errno(r, "create directory");
	l = enter(r, fd, r->path, strlen(r->path));
	if (!l)
		return -1;
	l->made = made;
	l->looks = r->looks;
	return 0;
}

/* ---- files --------------------------------------------------------------- */

static int name_temp(struct receiver *r)
{
	static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
	unsigned char random[8];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return fail_errno(r, "create");
	memcpy(r->temp, TEMP_FORM, sizeof(TEMP_FORM));
	for (size_t i = 0; i < sizeof(random); i++)
		r->temp[strlen(".ark-") + i] = letters[random[i] & 31];
	return 0;
}

static int begin_file(struct receiver *r)
{
	r->open = 1;
	r->at = 0;
	if (name_temp(r) < 0)
		return -1;
	if (S_ISLNK(r->looks.mode))
		return 0;
	r->file = openat(r->in, r->temp,
			 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (r->file < 0)
		return fail_errno(r, "create");
	r->temp_made = 1;
	return 0;
}

/* Forget the file; what is left under the temporary name goes. */
static void end_file(struct receiver *r)
{
	if (r->temp_made)
		unlinkat(r->in, r->temp, 0);
	if (r->file >= 0)
		close(r->file);
	r->temp_made = 0;
	r->file = -1;
	r->open = 0;
}

static int recv_target(struct receiver *r, const char *text, size_t len)
{
	if (r->temp_made || r->at != 0 || len != r->size || len >= TREE_PATH ||
	    memchr(text, '\0', len))
		return bad_stream(r, "a bad symbolic link");
	if (symlinkat(text, r->in, r->temp) < 0)
		return fail_errno(r, "create");
	r->temp_made = 1;
	r->at = len;
	return 0;
}

static int recv_data(struct receiver *r)
{
	const unsigned char *data = r->frame.data + 8;
	size_t len = r->frame.len - 8;
	uint64_t offset;

	if (!r->open || r->frame.len <= 8)
		return bad_stream(r, "data in the wrong place");
	offset = get_u64(r->frame.data);
	if (offset < r->at || offset > r->size || len > r->size - offset)
		return bad_stream(r, "data beyond the size of its file");
	if (r->file < 0)
		return recv_target(r, (const char *)data, len);
	while (len > 0) {
		ssize_t n = pwrite(r->file, data, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(r, "write");
		data += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	r->at = offset;
	return 0;
}

static int complete_link(const struct receiver *r)
{
	struct timespec times[2];

	if (!r->temp_made)
		return bad_stream(r, "an empty link");
	get_times(times, r->looks.mtime);
	if (utimensat(r->in, r->temp, times, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(r, "set the time of");
	return 0;
}

/* The size of a hole at the end, then the looks (argument 4). */
static int complete(struct receiver *r)
{
	if (r->file < 0)
		return complete_link(r);
	if (r->at < r->size && ftruncate(r->file, (off_t)r->size) < 0)
		return fail_errno(r, "write");
	if (set_looks(r, r->file, &r->looks) < 0)
		return fail_errno(r, "set the mode of");
	return 0;
}

static int recv_end(struct receiver *r)
{
	if (!r->open || r->frame.len != 0)
		return bad_stream(r, "the end of a file in the wrong place");
	if (complete(r) < 0)
		return -1;
	if (renameat(r->in, r->temp, r->in, r->name) < 0)
		return fail_errno(r, "replace");
	r->temp_made = 0;
	end_file(r);
	return 0;
}

/* ---- the stream ---------------------------------------------------------- */

/* Where the first entry goes: r->in and r->name, or nowhere because the
 * target itself is the directory that it stands for. */
static int begin_thing(struct receiver *r)
{
	int dir = S_ISDIR(r->looks.mode);

	if (r->begun)
		return bad_stream(r, "it begins twice");
	r->begun = 1;
	if (S_ISLNK(r->looks.mode))
		return bad_stream(r, "it is a symbolic link");
	if (r->place.leaf[0] != '\0') {
		r->in = r->place.holder;
		memcpy(r->name, r->place.leaf, sizeof(r->name));
		return dir ? begin_dir(r) : begin_file(r);
	}
	if (!dir)
		return fail_why(r, "replace", strerror(EISDIR));
	enter(r, r->place.holder, "", 0);
	r->place.holder = -1;
	return 0;
}

static int begin_below(struct receiver *r)
{
	const char *slash = strrchr(r->path, '/');
	const char *name = slash ? slash + 1 : r->path;
	size_t len = strlen(name);

	if (!tree_path_ok(r->path))
		return bad_stream(r, "a path that leads out of it");
	if (r->depth == 0)
		return bad_stream(r, "an entry that is in no directory");
	if (len >= sizeof(r->name))
		return fail_why(r, "create", strerror(ENAMETOOLONG));
	memcpy(r->name, name, len + 1);
	if (walk(r, r->path, slash ? (size_t)(slash - r->path) : 0) < 0)
		return -1;
	r->in = r->level[r->depth - 1].fd;
	return S_ISDIR(r->looks.mode) ? begin_dir(r) : begin_file(r);
}

static int recv_entry(struct receiver *r)
{
	const unsigned char *data = r->frame.data;
	size_t len = r->frame.len - ENTRY_HEAD;

	if (r->open)
		return bad_stream(r, "an entry inside a file");
	if (r->frame.len < ENTRY_HEAD || len >= TREE_PATH ||
	    memchr(data + ENTRY_HEAD, '\0', len))
		return bad_stream(r, "a bad entry");
	memcpy(r->path, data + ENTRY_HEAD, len);
	r->path[len] = '\0';
	r->looks.mode = get_u32(data);
	r->size = get_u64(data + 4);
	r->looks.mtime = get_u64(data + 12);
	if (r->size > INT64_MAX)
		return bad_stream(r, "a size that no file has");
	if (!S_ISREG(r->looks.mode) && !S_ISDIR(r->looks.mode) &&
	    !S_ISLNK(r->looks.mode))
		return bad_stream(r, "neither file, directory nor link");
	return len == 0 ? begin_thing(r) : begin_below(r);
}

static int recv_abort(struct receiver *r)
{
	const char *text = frame_text(&r->frame);

	snprintf(r->error->text, sizeof(r->error->text), "%s",
		 text && *text ? text
			       : "the sender failed and does not say why");
	return -1;
}

static int recv_done(struct receiver *r)
{
	if (r->open || !r->begun || r->frame.len != 0)
		return bad_stream(r, "its end in the wrong place");
	while (r->depth > 0)
		if (leave(r) < 0)
			return -1;
	return 1;
}

/* One frame: 0 to go on, 1 at the end of the tree, -1 and the reason. */
static int recv_one(struct receiver *r, int fd)
{
	int n = frame_recv(fd, &r->frame);

	if (n < 0)
		return fail_why(r, "receive", strerror(errno));
	if (n == 0)
		return fail_why(r, "receive", "the connection ended early");
	switch ((int)r->frame.type) {
	case FRAME_ENTRY:
		return recv_entry(r);
	case FRAME_DATA:
		return recv_data(r);
	case FRAME_END:
		return recv_end(r);
	case FRAME_DONE:
		return recv_done(r);
	case FRAME_ABORT:
		return recv_abort(r);
	default:
		return bad_stream(r, "an unexpected frame");
	}
}

int tree_recv(int fd, int dir, const char *target, const char *base,
	      unsigned flags, struct tree_error *error)
{
	struct receiver *r = calloc(1, sizeof(*r));
	struct tree_error scratch;
	int result;

	if (!r)
		return tree_fail(error, "create", target, "", strerror(ENOMEM));
	r->error = error;
	r->flags = flags;
	r->file = -1;
	result = tree_resolve(&r->place, dir, target, base, flags, error);
	while (result == 0)
		result = recv_one(r, fd);
	end_file(r);
	r->error = &scratch; /* the first reason is the one to tell */
	while (r->depth > 0)
		leave(r);
	if (r->place.holder >= 0)
		close(r->place.holder);
	free(r);
	return result < 0 ? -1 : 0;
}
