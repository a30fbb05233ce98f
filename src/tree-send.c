/*
 * tree-send.c - the sending end of tree.h.
 *
 * 1. The files may change while they are read, and whoever changes them may
 *    want to harm us: what is below the top is opened without following links
 *    and looked at again once it is open, and a device or a FIFO is never
 *    opened, because opening is an act (it rewinds a tape, it wakes a writer).
 * 2. A file that fits in one frame is read before it is announced, so its size
 *    is what was read: exact while it is written to, and right for the files
 *    of /proc and /sys, which lie about theirs.  A larger one is announced by
 *    fstat(2) and never more than that is sent; when it turns out shorter,
 *    that is an error, because the receiver could not tell the missing part
 *    from a hole.
 * 3. Small frames are collected and sent together: a source tree is mostly
 *    small files, and a packet each would cost more than the data.
 */
#include "tree-part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK (FRAME_MAX - 4096) /* whole pages, with room for the offset */
#define OFFSET_LEN 8

struct sender {
	int fd;
	int broken; /* the socket is: nobody is left to tell */
	struct tree_error *error;
	const char *top; /* what the caller calls it, for messages */
	size_t path_len;
	char path[TREE_PATH];
	size_t used;
	unsigned char out[64 * 1024];
	unsigned char chunk[OFFSET_LEN + CHUNK]; /* payload of a DATA frame */
};

static int fail_why(const struct sender *s, const char *verb, const char *why)
{
	return tree_fail(s->error, verb, s->top, s->path, why);
}

static int fail_errno(const struct sender *s, const char *verb)
{
	return fail_why(s, verb, strerror(errno));
}

static int flush(struct sender *s)
{
	size_t done = 0;

	while (done < s->used) {
		ssize_t n = send(s->fd, s->out + done, s->used - done,
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			s->broken = 1;
			return fail_errno(s, "send");
		}
		done += (size_t)n;
	}
	s->used = 0;
	return 0;
}

static int put(struct sender *s, enum frame_type type, const void *data,
	       size_t len)
{
	if (s->used + FRAME_HEAD + len > sizeof(s->out) && flush(s) < 0)
		return -1;
	if (FRAME_HEAD + len > sizeof(s->out)) {
		if (frame_send(s->fd, type, data, len) == 0)
			return 0;
		s->broken = 1;
		return fail_errno(s, "send");
	}
	frame_head(s->out + s->used, type, len);
	s->used += FRAME_HEAD;
	if (len > 0)
		memcpy(s->out + s->used, data, len);
	s->used += len;
	return 0;
}

static int put_entry(struct sender *s, const struct stat *st, uint64_t size)
{
	const uint64_t second = 1000000000;
	unsigned char entry[ENTRY_HEAD + TREE_PATH];
	uint64_t mtime = 0;

	/* Times before 1970 and after 2554 have no place in the frame. */
	if (st->st_mtim.tv_sec >= 0 &&
	    (uint64_t)st->st_mtim.tv_sec < UINT64_MAX / second)
		mtime = (uint64_t)st->st_mtim.tv_sec * second +
			(uint64_t)st->st_mtim.tv_nsec;
	put_u32(entry, st->st_mode);
	put_u64(entry + 4, size);
	put_u64(entry + 12, mtime);
	memcpy(entry + ENTRY_HEAD, s->path, s->path_len);
	return put(s, FRAME_ENTRY, entry, ENTRY_HEAD + s->path_len);
}

static int put_chunk(struct sender *s, uint64_t offset, size_t len)
{
	put_u64(s->chunk, offset);
	return put(s, FRAME_DATA, s->chunk, OFFSET_LEN + len);
}

/* Fill the chunk from `offset`: fewer bytes than `len` only at the end. */
static ssize_t fill(struct sender *s, int fd, size_t len, off_t offset)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, s->chunk + OFFSET_LEN + got, len - got,
				  offset + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_errno(s, "read");
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Argument 2 above. */
static int send_small(struct sender *s, int fd, const struct stat *st)
{
	ssize_t len = fill(s, fd, CHUNK, 0);

	if (len < 0)
		return -1;
	if (len == CHUNK && st->st_size < CHUNK) {
		if (st->st_size == 0)
			return fail_why(s, "read", "it does not say its size");
		len = st->st_size;
	}
	if (put_entry(s, st, (uint64_t)len) < 0 ||
	    (len > 0 && put_chunk(s, 0, (size_t)len) < 0))
		return -1;
	return put(s, FRAME_END, NULL, 0);
}

static int send_range(struct sender *s, int fd, off_t from, off_t to)
{
	while (from < to) {
		size_t want = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		ssize_t len = fill(s, fd, want, from);

		if (len < 0)
			return -1;
		if ((size_t)len < want)
			return fail_why(s, "read", "it became shorter");
		if (put_chunk(s, (uint64_t)from, want) < 0)
			return -1;
		from += len;
	}
	return 0;
}

static int send_ranges(struct sender *s, int fd, off_t size)
{
	off_t end = 0;

	while (end < size) {
		off_t data = lseek(fd, end, SEEK_DATA);

		/* A hole up to the end, or somebody has cut the file. */
		if ((data < 0 && errno == ENXIO) || data >= size)
			return 0;
		if (data < 0)
			return fail_errno(s, "read");
		end = lseek(fd, data, SEEK_HOLE);
		if (end < 0)
			return fail_errno(s, "read");
		if (end > size)
			end = size;
		if (send_range(s, fd, data, end) < 0)
			return -1;
	}
	return 0;
}

static int send_large(struct sender *s, int fd, const struct stat *st)
{
	struct stat now;

	if (put_entry(s, st, (uint64_t)st->st_size) < 0 ||
	    send_ranges(s, fd, st->st_size) < 0)
		return -1;
	if (fstat(fd, &now) < 0)
		return fail_errno(s, "read");
	if (now.st_size < st->st_size)
		return fail_why(s, "read", "it became shorter");
	return put(s, FRAME_END, NULL, 0);
}

static int send_open_file(struct sender *s, int fd)
{
	struct stat st;
	int holes;

	if (fstat(fd, &st) < 0)
		return fail_errno(s, "read");
	if (!S_ISREG(st.st_mode))
		return fail_why(s, "read", "it was replaced meanwhile");
	/* Files of /sys have no blocks, but a page of text. */
	holes = st.st_size > 4096 && (off_t)st.st_blocks * 512 < st.st_size;
	if (st.st_size <= CHUNK && !holes)
		return send_small(s, fd, &st);
	return send_large(s, fd, &st);
}

static int send_file(struct sender *s, int dir, const char *name, int follow)
{
	int fd = openat(dir, name,
			O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | follow);
	int result;

	if (fd < 0)
		return fail_errno(s, "open");
	result = send_open_file(s, fd);
	close(fd);
	return result;
}

static int send_link(struct sender *s, int dir, const char *name,
		     const struct stat *st)
{
	ssize_t len =
		readlinkat(dir, name, (char *)s->chunk + OFFSET_LEN, TREE_PATH);

	if (len < 0)
		return fail_errno(s, "read");
	if (len == 0 || len == TREE_PATH)
		return fail_why(s, "read", "a strange symbolic link");
	if (put_entry(s, st, (uint64_t)len) < 0 ||
	    put_chunk(s, 0, (size_t)len) < 0)
		return -1;
	return put(s, FRAME_END, NULL, 0);
}

static int send_any(struct sender *s, int dir, const char *name, int follow,
		    int depth);

/* The path of something in the directory that the path names now. */
static int send_below(struct sender *s, int dir, const char *name, int depth)
{
	size_t before = s->path_len, len = strlen(name);
	int slash = before > 0, result;

	if (before + (size_t)slash + len >= sizeof(s->path))
		return fail_why(s, "send what is in", "the path is too long");
	if (slash)
		s->path[before] = '/';
	memcpy(s->path + before + slash, name, len + 1);
	s->path_len = before + (size_t)slash + len;
	result = send_any(s, dir, name, O_NOFOLLOW, depth);
	if (result == 0) {
		s->path_len = before;
		s->path[before] = '\0';
	}
	return result;
}

static int send_entries(struct sender *s, DIR *stream, int depth)
{
	for (;;) {
		const struct dirent *entry;

		errno = 0;
		entry = readdir(stream);
		if (!entry)
			return errno ? fail_errno(s, "read") : 0;
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (send_below(s, dirfd(stream), entry->d_name, depth) < 0)
			return -1;
	}
}

static int send_dir(struct sender *s, int dir, const char *name, int follow,
		    int depth)
{
	struct stat st;
	DIR *stream;
	int fd, result;

	if (depth == TREE_DEPTH)
		return fail_why(s, "send", "more than 128 directories deep");
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
	if (fd < 0)
		return fail_errno(s, "open");
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return fail_errno(s, "open");
	}
	if (fstat(fd, &st) < 0)
		result = fail_errno(s, "read");
	else if (put_entry(s, &st, 0) < 0)
		result = -1;
	else
		result = send_entries(s, stream, depth + 1);
	closedir(stream);
	return result;
}

static int send_any(struct sender *s, int dir, const char *name, int follow,
		    int depth)
{
	struct stat st;

	if (fstatat(dir, name, &st, follow ? AT_SYMLINK_NOFOLLOW : 0) < 0)
		return fail_errno(s, "read");
	if (S_ISREG(st.st_mode))
		return send_file(s, dir, name, follow);
	if (S_ISDIR(st.st_mode))
		return send_dir(s, dir, name, follow, depth);
	if (S_ISLNK(st.st_mode))
		return send_link(s, dir, name, &st);
	if (S_ISFIFO(st.st_mode))
		return fail_why(s, "send", "it is a FIFO");
	if (S_ISSOCK(st.st_mode))
		return fail_why(s, "send", "it is a socket");
	return fail_why(s, "send", "it is a device");
}

/* The first reason stays in *error: this one has nobody to hear it. */
static void send_abort(struct sender *s)
{
	struct tree_error scratch, *first = s->error;

	s->error = &scratch;
	if (put(s, FRAME_ABORT, first->text, strlen(first->text)) == 0)
		flush(s);
	s->error = first;
}

int tree_send(int fd, int dir, const char *name, struct tree_error *error)
{
	struct sender *s = calloc(1, sizeof(*s));
	int result;

	if (!s)
		return tree_fail(error, "send", name, "", strerror(ENOMEM));
	s->fd = fd;
	s->error = error;
	s->top = name;
	result = send_any(s, dir, name, 0, 0);
	if (result == 0)
		result = put(s, FRAME_DONE, NULL, 0);
	if (result == 0)
		result = flush(s);
	else if (!s->broken)
		send_abort(s);
	free(s);
	return result;
}
