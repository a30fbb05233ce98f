/*
 * test-tree-stream.c - hostile streams of tree.h: nothing that one says leads
 * out of the target, and nothing of it stays behind.
 */
#include "tap.h"
#include "tree.h"
#include "proto.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define MTIME 1234567890

static struct tree_error why; /* of the last failure */

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

/* ok(), and the last reason when it is not. */
static void expect(bool good, const char *what)
{
	if (!ok(good, "%s", what))
		printf("# reason: %s\n", why.text);
}

static void socket_pair(int pair[2])
{
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0,
	     "socketpair");
}

static bool failed(const char *reason)
{
	return strstr(why.text, reason) != NULL;
}

static bool exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

/* Does the file hold exactly this text? */
static bool holds(const char *path, const char *text)
{
	char data[256];
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

	close(fd);
	return n == (ssize_t)strlen(text) && memcmp(data, text, (size_t)n) == 0;
}

/* Is nothing with a temporary name left in the directory? */
static bool tidy(const char *path)
{
	DIR *stream = opendir(path);
	const struct dirent *entry;
	bool result = true;

	while (stream && (entry = readdir(stream)))
		if (strncmp(entry->d_name, ".ark-", 5) == 0)
			result = false;
	if (stream)
		closedir(stream);
	return result;
}

struct step {
	enum frame_type type; /* 0 ends the list */
	unsigned mode;
	uint64_t number; /* size of an entry, offset of data */
	const char *text;
};

#define DIRECTORY(path)                                                        \
	{                                                                      \
		FRAME_ENTRY, S_IFDIR | 0755, 0, path                           \
	}
#define REGULAR(path, size)                                                    \
	{                                                                      \
		FRAME_ENTRY, S_IFREG | 0644, size, path                        \
	}
#define LINK(path, size)                                                       \
	{                                                                      \
		FRAME_ENTRY, S_IFLNK | 0777, size, path                        \
	}
#define DATA(offset, text)                                                     \
	{                                                                      \
		FRAME_DATA, 0, offset, text                                    \
	}
#define END                                                                    \
	{                                                                      \
		FRAME_END, 0, 0, ""                                            \
	}
#define DONE                                                                   \
	{                                                                      \
		FRAME_DONE, 0, 0, ""                                           \
	}
#define TO(target) LINK("l", sizeof(target) - 1), DATA(0, target), END

static const struct {
	const char *what;
	const char *reason; /* NULL: it is good */
	struct step step[12];
} streams[] = {
	{"a good one",
	 NULL,
	 {DIRECTORY(""), REGULAR("a", 5), DATA(0, "he"), DATA(3, "o"), END,
	  DIRECTORY("d"), TO("../.."), DONE}},
	{"a path with ..",
	 "leads out",
	 {DIRECTORY(""), REGULAR("../outside", 1), DATA(0, "x"), END, DONE}},
	{".. in the middle",
	 "leads out",
	 {DIRECTORY(""), DIRECTORY("d"), REGULAR("d/../../outside", 1), DONE}},
	{"an absolute path",
	 "leads out",
	 {DIRECTORY(""), REGULAR("/outside", 1), DONE}},
	{"a path ending in a slash",
	 "leads out",
	 {DIRECTORY(""), DIRECTORY("d/"), DONE}},
	{"a link of the stream to a directory",
	 "Not a directory",
	 {DIRECTORY(""), TO(".."), REGULAR("l/outside", 1), DONE}},
	{"a directory where the stream made a link",
	 "Not a directory",
	 {DIRECTORY(""), TO(".."), DIRECTORY("l"), DONE}},
	{"a link that was there",
	 "Not a directory",
	 {DIRECTORY(""), REGULAR("there/outside", 1), DONE}},
	{"a file over a link of the stream",
	 NULL,
	 {DIRECTORY(""), TO("../outside"), REGULAR("l", 1), DATA(0, "x"), END,
	  DONE}},
	{"the thing is a link",
	 "it is a symbolic link",
	 {LINK("", 2), DATA(0, ".."), END, DONE}},
	{"no thing", "in no directory", {REGULAR("outside", 1), DONE}},
	{"a file instead of the directory",
	 "Is a directory",
	 {REGULAR("", 0), END, REGULAR("a", 0), DONE}},
	{"two things", "begins twice", {DIRECTORY(""), DIRECTORY(""), DONE}},
	{"nothing", "its end in the wrong place", {DONE}},
	{"data before an entry", "data in the wrong place", {DATA(0, "x")}},
	{"data in a directory",
	 "data in the wrong place",
	 {DIRECTORY(""), DATA(0, "x")}},
	{"two ends",
	 "end of a file in the wrong place",
	 {DIRECTORY(""), REGULAR("a", 0), END, END}},
	{"an entry in a file",
	 "an entry inside a file",
	 {DIRECTORY(""), REGULAR("a", 1), REGULAR("b", 1)}},
	{"done in a file",
	 "its end in the wrong place",
	 {DIRECTORY(""), REGULAR("a", 1), DONE}},
	{"more than the size",
	 "beyond the size",
	 {DIRECTORY(""), REGULAR("a", 3), DATA(0, "abcd")}},
	{"an offset beyond the size",
	 "beyond the size",
	 {DIRECTORY(""), REGULAR("a", 3), DATA(UINT64_MAX, "a")}},
	{"an offset that goes back",
	 "beyond the size",
	 {DIRECTORY(""), REGULAR("a", 9), DATA(4, "abc"), DATA(0, "abc")}},
	{"a size that no file has",
	 "a size that no file has",
	 {DIRECTORY(""), REGULAR("a", UINT64_MAX)}},
	{"a size that no disk has",
	 "cannot write",
	 {DIRECTORY(""), REGULAR("a", INT64_MAX), END, DONE}},
	{"a link without a target",
	 "an empty link",
	 {DIRECTORY(""), LINK("l", 3), END}},
	{"a link with two targets",
	 "beyond the size",
	 {DIRECTORY(""), LINK("l", 1), DATA(0, "x"), DATA(0, "x")}},
	{"a device",
	 "neither file",
	 {DIRECTORY(""), {FRAME_ENTRY, S_IFCHR | 0666, 0, "null"}}},
	{"a name of 256 bytes",
	 "name too long",
	 {DIRECTORY(""),
	  DIRECTORY("0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef0123456789abcdef0123456789abcdef"
		    "0123456789abcdef")}},
	{"an early end", "ended early", {DIRECTORY(""), REGULAR("a", 1)}},
	{"a frame of another kind",
	 "unexpected frame",
	 {DIRECTORY(""), {FRAME_STDOUT, 0, 0, "x"}}},
	{"an abort",
	 "disk on fire",
	 {DIRECTORY(""), REGULAR("a", 1), {FRAME_ABORT, 0, 0, "disk on fire"}}},
};

static void send_step(int fd, const struct step *s)
{
	unsigned char data[1024];
	size_t len = strlen(s->text), head = 0;

	if (s->type == FRAME_ENTRY) {
		put_u32(data, s->mode);
		put_u64(data + 4, s->number);
		put_u64(data + 12, MTIME * UINT64_C(1000000000));
		head = 20;
	} else if (s->type == FRAME_DATA) {
		put_u64(data, s->number);
		head = 8;
	}
	memcpy(data + head, s->text, len);
	must(frame_send(fd, s->type, data, head + len) == 0, "send");
}

static int receive(const struct step *step, const char *target, unsigned flags)
{
	int pair[2], result;

	socket_pair(pair);
	while (step->type)
		send_step(pair[0], step++);
	close(pair[0]);
	why.text[0] = '\0';
	result = tree_recv(pair[1], AT_FDCWD, target, "", flags, &why);
	close(pair[1]);
	return result;
}

/* An empty "jail/in", but for a link to "jail". */
static void new_jail(void)
{
	must(remove_tree(AT_FDCWD, "jail") == 0, "remove_tree");
	must(mkdir("jail", 0755) == 0 && mkdir("jail/in", 0755) == 0, "mkdir");
	must(symlink("..", "jail/in/there") == 0, "symlink");
}

static void test_streams(void)
{
	char what[200];

	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		const char *reason = streams[i].reason;
		int result;

		new_jail();
		result = receive(streams[i].step, "jail/in", TREE_UNTRUSTED);
		snprintf(what, sizeof(what), "stream: %s", streams[i].what);
		expect((result == 0) == !reason &&
			       (!reason || failed(reason)) &&
			       !exists("jail/outside") && tidy("jail/in"),
		       what);
	}
}

/* What comes after a thing that is a file has no directory to be in. */
static void test_below_file(void)
{
	static const struct step stream[] = {
		REGULAR("", 0),	 END, REGULAR("a", 0), END, DONE,
		{0, 0, 0, NULL},
	};

	new_jail();
	expect(receive(stream, "jail/file", 0) < 0 &&
		       failed("in no directory") && exists("jail/file"),
	       "stream: below a file");
}

static void test_looks(void)
{
	static const struct step stream[] = {
		DIRECTORY(""),
		{FRAME_ENTRY, S_IFDIR | 07711, 0, "d"},
		{FRAME_ENTRY, S_IFREG | 07755, 6, "d/f"},
		DATA(0, "ab"),
		DATA(4, "ef"),
		END,
		DONE,
		{0, 0, 0, NULL},
	};
	struct stat dir = {0}, file = {0};

	new_jail();
	umask(077);
	expect(receive(stream, "jail/in", 0) == 0 &&
		       stat("jail/in/d", &dir) == 0 &&
		       stat("jail/in/d/f", &file) == 0,
	       "set-id bits from somebody trusted");
	expect((file.st_mode & 07777) == 07755 &&
		       (dir.st_mode & 07777) == 07711,
	       "they are kept");
	expect(file.st_mtime == MTIME && dir.st_mtime == MTIME,
	       "so are the times, of the directory as well");
	new_jail();
	put_file(AT_FDCWD, "jail/in/d", "x", 1);
	expect(receive(stream, "jail/in", TREE_UNTRUSTED) < 0 &&
		       failed("'jail/in/d'"),
	       "a file in the way of a directory");
	new_jail();
	expect(receive(stream, "jail/in", TREE_UNTRUSTED) == 0 &&
		       stat("jail/in/d", &dir) == 0 &&
		       stat("jail/in/d/f", &file) == 0 &&
		       (file.st_mode & 07777) == 0755 &&
		       (dir.st_mode & 07777) == 0711,
	       "set-id bits from a guest are taken off");
	umask(022);
	expect(file.st_size == 6 && !holds("jail/in/d/f", "abef"),
	       "what was not sent is a hole");
}

static void test_paths(void)
{
	static const char *const good[] = {"a",	 "a/b", "...", "a/..b",
					   ".a", "a b", "-"};
	static const char *const bad[] = {"",	  "/",	 "/a",	 "a/",
					  "a//b", ".",	 "..",	 "a/.",
					  "a/..", "./a", "../a", "a/../b"};
	char longest[4098];
	bool result = true;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		result = result && tree_path_ok(good[i]);
	expect(result, "good paths");
	result = true;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		result = result && !tree_path_ok(bad[i]);
	expect(result, "bad paths");
	memset(longest, 'a', sizeof(longest));
	longest[4096] = '\0';
	result = !tree_path_ok(longest);
	longest[4095] = '\0';
	expect(result && tree_path_ok(longest), "the longest path");
}

int main(void)
{
	AUTO_CLOSE int dir = tap_dir();

	must(dir >= 0 && fchdir(dir) == 0, "scratch directory");
	test_paths();
	test_streams();
	test_below_file();
	test_looks();
	return done();
}
