/*
 * fuzz-tree.c - a hostile sender of a tree.  After every stream the directory
 * around the target must be as it was, and the target without leftovers.
 *
 * The first byte chooses: the rest is the stream itself, or a program of which
 * well-formed frames are made, so that the fuzzer gets past the parser and at
 * the paths.
 */
#include "../../src/proto.h"
#include "../../src/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned char stream[1 << 17];
static size_t stream_len;

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz-tree: %s\n", what);
	abort();
}

static void put_frame(unsigned type, const void *payload, size_t len)
{
	if (stream_len + FRAME_HEAD + len > sizeof(stream))
		return;
	frame_head(stream + stream_len, (enum frame_type)type, len);
	memcpy(stream + stream_len + FRAME_HEAD, payload, len);
	stream_len += FRAME_HEAD + len;
}

/* Four letters of the alphabet below, as a path. */
static size_t put_path(unsigned char *to, const uint8_t *from)
{
	static const char *const parts[] = {"",	  "a", "b",    "l",
					    "..", "/", "jail", "victim"};
	size_t len = 0;

	for (int i = 0; i < 4; i++) {
		const char *part = parts[from[i] & 7];

		if (i > 0 && from[i] & 8)
			to[len++] = '/';
		memcpy(to + len, part, strlen(part));
		len += strlen(part);
	}
	return len;
}

static void put_entry(unsigned kind, const uint8_t *from)
{
	static const unsigned types[] = {S_IFDIR, S_IFREG, S_IFLNK, S_IFIFO};
	unsigned char entry[20 + 64];

	put_u32(entry, types[kind] | 07000 | from[4]);
	put_u64(entry + 4, from[5]);
	put_u64(entry + 12, from[6]);
	put_frame(FRAME_ENTRY, entry, 20 + put_path(entry + 20, from));
}

/* Data of a file, and the target of a link: it leads to the victim or up. */
static void put_data(const uint8_t *from)
{
	unsigned char data[8 + 64];

	put_u64(data, from[4] & 15);
	put_frame(FRAME_DATA, data, 8 + put_path(data + 8, from));
}

/* Eight bytes make a frame, and most likely one that fits. */
static void translate(const uint8_t *data, size_t size)
{
	stream_len = 0;
	for (; size >= 8; data += 8, size -= 8) {
		switch (data[0] % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			put_entry(data[0] % 4, data + 1);
			break;
		case 4:
			put_data(data + 1);
			break;
		case 5:
			put_frame(FRAME_END, data, 0);
			break;
		case 6:
			put_frame(FRAME_DONE, data, 0);
			break;
		default:
			put_frame(data[1], data, data[2] % 9);
			break;
		}
	}
}

static char scratch[] = "/tmp/fuzz-tree-XXXXXX";
static char in_path[sizeof(scratch) + sizeof("/jail/in")];
static int top = -1; /* the same as a descriptor */

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *where)
{
	(void)st;
	(void)type;
	return where->level > 0 ? remove(path) : 0;
}

static void empty(const char *path)
{
	nftw(path, remove_one, 16, FTW_PHYS | FTW_DEPTH);
}

static void tear_down(void)
{
	empty(scratch);
	rmdir(scratch);
}

/* scratch/{victim,jail/in}: only "in" may change. */
static void set_up(void)
{
	int fd;

	must(mkdtemp(scratch) != NULL, scratch);
	atexit(tear_down);
	snprintf(in_path, sizeof(in_path), "%s/jail/in", scratch);
	top = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(mkdirat(top, "jail", 0755) == 0 &&
		     mkdirat(top, "jail/in", 0755) == 0,
	     "mkdir");
	fd = openat(top, "victim", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0 && write(fd, "v", 1) == 1 && close(fd) == 0, "victim");
}

/* No temporary file there, and so many entries (-1: any number). */
static void count(const char *path, int want, const char *what)
{
	DIR *dir = fdopendir(openat(top, path, O_RDONLY | O_DIRECTORY));
	const struct dirent *entry;
	int n = 0;

	must(dir != NULL, path);
	while ((entry = readdir(dir))) {
		must(strncmp(entry->d_name, ".ark-", 5) != 0, "leftover");
		n++;
	}
	closedir(dir);
	must(want < 0 || n == want, what);
}

static void check(void)
{
	struct stat st;

	must(fstatat(top, "victim", &st, 0) == 0 && st.st_size == 1 &&
		     (st.st_mode & 07777) == 0600 && st.st_nlink == 1,
	     "the victim has changed");
	count(".", 4, "something outside");
	count("jail", 3, "something beside the target");
	must(fstatat(top, "jail/in", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		     S_ISDIR(st.st_mode) && !(st.st_mode & 07000),
	     "the target has changed");
	count("jail/in", -1, "");
}

static void receive(int fd, int named)
{
	struct tree_error error;

	must(ftruncate(fd, 0) == 0 &&
		     pwrite(fd, stream, stream_len, 0) == (ssize_t)stream_len &&
		     lseek(fd, 0, SEEK_SET) == 0,
	     "memfd");
	must(symlinkat("../../victim", top, "jail/in/l") == 0 &&
		     symlinkat("..", top, "jail/in/a") == 0,
	     "symlink");
	tree_recv(fd, top, named ? "jail" : "jail/in", named ? "in" : "",
		  TREE_UNTRUSTED, &error);
	check();
	empty(in_path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (fd < 0) {
		set_up();
		fd = memfd_create("stream", MFD_CLOEXEC);
	}
	if (size == 0 || size > sizeof(stream))
		return -1;
	if (data[0] & 1) {
		translate(data + 1, size - 1);
	} else {
		stream_len = size - 1;
		memcpy(stream, data + 1, stream_len);
	}
	receive(fd, data[0] & 2);
	return 0;
}
