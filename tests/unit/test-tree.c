/*
 * test-tree.c - tree.h, both ends over a socket pair: what arrives is what was
 * sent, and nothing that a stream says leads out of the target.
 */
#include "../../src/proto.h"
#include "../../src/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MTIME 1234567890
#define GIB (1024L * 1024 * 1024)

static int tests, failures;
static struct tree_error why;

static void ok(bool good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tests, what);
	if (good)
		return;
	failures++;
	printf("# errno: %s; last reason: %s\n", strerror(errno), why.text);
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- files to send ------------------------------------------------------- */

static void make_file(const char *path, off_t at, size_t len, off_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
	unsigned char *data = malloc(len + 1);

	must(fd >= 0 && data, path);
	for (size_t i = 0; i < len; i++)
		data[i] = (unsigned char)(i * 31 + i / 251 + len);
	must(pwrite(fd, data, len, at) == (ssize_t)len, path);
	must(size == 0 || ftruncate(fd, size) == 0, path);
	free(data);
	close(fd);
}

static void make_deep(const char *top, int depth)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 1; i < depth; i++) {
		int below;

		must(fd >= 0 && mkdirat(fd, "d", 0755) == 0, "mkdir");
		below = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(fd);
		fd = below;
	}
	close(fd);
}

static void make_tree(const char *top)
{
	char longest[256];

	must(mkdir(top, 0755) == 0 && chdir(top) == 0, top);
	memset(longest, 'n', 255);
	longest[255] = '\0';
	make_file("empty", 0, 0, 0);
	make_file("one", 0, 1, 0);
	make_file("18k", 0, 18 * 1024, 0);
	make_file("chunk", 0, FRAME_MAX - 4096, 0);
	make_file("chunk+1", 0, FRAME_MAX - 4095, 0);
	make_file("1m", 0, 1024 * 1024, 0);
	make_file("a b, c", 0, 10, 0);
	make_file("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa7", 0, 10, 0);
	make_file("new\nline", 0, 10, 0);
	make_file("not utf-8 \xff", 0, 10, 0);
	make_file(longest, 0, 10, 0);
	make_file("islands", 4096, 10, GIB);
	make_file("islands", GIB / 2 + 1, 300000, GIB);
	make_file("islands", GIB - 1, 1, GIB);
	make_file("hole", 0, 0, 5000000);
	make_file("mode", 0, 3, 0);
	must(chmod("mode", 0751) == 0, "chmod");
	must(mkdir("shut", 0700) == 0 && mkdir("shut/empty", 0711) == 0,
	     "mkdir");
	make_file("shut/in", 0, 5, 0);
	must(chmod("shut", 0555) == 0, "chmod");
	must(symlink("one", "link") == 0, "symlink");
	must(symlink("/nowhere/at/all", "shut-link") == 0, "symlink");
	must(mkdir("deep", 0755) == 0, "mkdir");
	make_deep("deep", 120);
	must(chdir("..") == 0, "chdir");
}

/* ---- do two trees look alike? -------------------------------------------- */

static bool same_data(int a, int b)
{
	static unsigned char one[65536], two[65536];
	off_t at = 0, end = lseek(a, 0, SEEK_END);

	while (at < end) {
		off_t left = lseek(a, at, SEEK_DATA);
		off_t right = lseek(b, at, SEEK_DATA);
		ssize_t n, m;

		if (left != right)
			return false;
		if (left < 0)
			return true;
		n = pread(a, one, sizeof(one), left);
		m = pread(b, two, sizeof(two), left);
		if (n <= 0 || n != m || memcmp(one, two, (size_t)n) != 0)
			return false;
		at = left + n;
	}
	return true;
}

static bool same(int a, const char *name_a, int b, const char *name_b);

static bool same_below(int a, int b)
{
	DIR *stream = fdopendir(dup(a));
	const struct dirent *entry;
	bool result = stream != NULL;
	int count = 0;

	while (result && (entry = readdir(stream))) {
		count++;
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			result = same(a, entry->d_name, b, entry->d_name);
	}
	if (stream)
		closedir(stream);
	stream = fdopendir(dup(b));
	while (stream && readdir(stream))
		count--;
	if (stream)
		closedir(stream);
	return result && count == 0;
}

static bool same_open(int a, int b, bool directory)
{
	bool result = a >= 0 && b >= 0;

	if (result)
		result = directory ? same_below(a, b) : same_data(a, b);
	close(a);
	close(b);
	return result;
}

static bool same(int a, const char *name_a, int b, const char *name_b)
{
	const int how = O_RDONLY | O_NOFOLLOW | O_CLOEXEC;
	char one[4096] = "", two[4096] = "";
	struct stat left, right;

	if (fstatat(a, name_a, &left, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(b, name_b, &right, AT_SYMLINK_NOFOLLOW) < 0 ||
	    left.st_mode != right.st_mode ||
	    left.st_mtim.tv_sec != right.st_mtim.tv_sec)
		return false;
	if (S_ISLNK(left.st_mode))
		return readlinkat(a, name_a, one, sizeof(one)) ==
			   readlinkat(b, name_b, two, sizeof(two)) &&
		       strcmp(one, two) == 0;
	return (S_ISDIR(left.st_mode) || left.st_size == right.st_size) &&
	       same_open(openat(a, name_a, how), openat(b, name_b, how),
			 S_ISDIR(left.st_mode));
}

/* ---- transfers ----------------------------------------------------------- */

static void socket_pair(int pair[2])
{
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0,
	     "socketpair");
}

/* Copy with a process at each end; both have to agree on how it went. */
static bool copy(const char *from, const char *target, const char *base,
		 unsigned flags)
{
	int pair[2], status = 0, result;
	pid_t pid;

	socket_pair(pair);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		struct tree_error error;

		close(pair[1]);
		_exit(tree_send(pair[0], AT_FDCWD, from, &error) < 0);
	}
	close(pair[0]);
	why.text[0] = '\0';
	result = tree_recv(pair[1], AT_FDCWD, target, base, flags, &why);
	close(pair[1]);
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	return result == 0 && status == 0;
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

static void test_faithful(void)
{
	make_tree("tree");
	ok(copy("tree", "copy", "tree", 0), "a tree to a new name");
	ok(same(AT_FDCWD, "tree", AT_FDCWD, "copy"), "it is the same");
	ok(copy("tree", "copy", "tree", 0) &&
	       same(AT_FDCWD, "tree", AT_FDCWD, "copy/tree"),
	   "again: into the directory that is there now");
	must(mkdir("merge", 0700) == 0, "mkdir");
	make_file("merge/other", 0, 4, 0);
	must(symlink("/etc/passwd", "merge/one") == 0, "symlink");
	ok(copy("tree", "merge", "", 0) && exists("merge/other") &&
	       same(AT_FDCWD, "tree/shut", AT_FDCWD, "merge/shut"),
	   "without a base it is merged");
	ok(same(AT_FDCWD, "tree/one", AT_FDCWD, "merge/one"),
	   "a link in the way is replaced, not followed");
	ok(copy("tree/link", "file", "link", 0) &&
	       same(AT_FDCWD, "tree/one", AT_FDCWD, "file"),
	   "a link that is named is followed");
	ok(copy("/proc/self/status", "status", "", 0) && !holds("status", ""),
	   "a file that says it is empty and is not");
}

static void test_targets(void)
{
	ok(!copy("tree/one", "no/such/dir", "one", 0) && !exists("no"),
	   "missing parents are an error");
	ok(copy("tree/one", "no/such/dir", "one", TREE_PARENTS) &&
	       same(AT_FDCWD, "tree/one", AT_FDCWD, "no/such/dir"),
	   "they are made when that is asked for");
	ok(!copy("tree/one", "nodir", "one", TREE_INTO) && !exists("nodir"),
	   "a target that must be a directory and is missing");
	ok(!copy("tree/one", "file", "one", TREE_INTO) &&
	       failed("Not a directory"),
	   "a target that must be a directory and is a file");
	ok(copy("tree/one", "x/y", "one", TREE_INTO | TREE_PARENTS) &&
	       exists("x/y/one"),
	   "a target that must be a directory is made");
	ok(!copy("tree/one", "tree", "", 0) && failed("Is a directory"),
	   "a file does not replace the target directory");
	must(mkdir("way", 0755) == 0 && mkdir("way/one", 0755) == 0, "mkdir");
	ok(!copy("tree/one", "way", "one", 0) && failed("Is a directory") &&
	       tidy("way"),
	   "a file does not replace a directory in the target");
	make_file("way/shut", 0, 1, 0);
	ok(!copy("tree/shut", "way", "shut", 0) && failed("directory"),
	   "a directory does not replace a file");
	ok(!copy("tree/one", "way", "..", 0) &&
	       !copy("tree/one", "way", "a/b", 0),
	   "a base is one name");
	must(symlink("way", "way-link") == 0, "symlink");
	ok(copy("tree/18k", "way-link", "18k", 0) && exists("way/18k"),
	   "a target that is a link to a directory counts as it");
	must(symlink("victim", "to-victim") == 0, "symlink");
	ok(copy("tree/one", "to-victim", "", 0) && !exists("victim"),
	   "a target that is a link to nothing is replaced");
}

static void test_unsendable(void)
{
	must(mkdir("odd", 0755) == 0 && mkfifo("odd/fifo", 0600) == 0, "odd");
	ok(!copy("odd", "odd2", "", 0) && failed("'odd/fifo': it is a FIFO"),
	   "a FIFO is an error that names it");
	ok(!copy("/dev/null", "null", "", 0) && failed("device"),
	   "a device is an error");
	ok(!copy("missing", "m", "", 0) && failed("No such file"),
	   "a missing file is an error");
	must(mkdir("deeper", 0755) == 0, "mkdir");
	make_deep("deeper", 129);
	ok(!copy("deeper", "deeper2", "", 0) && failed("128 directories"),
	   "a tree that is too deep is an error");
}

/* A file that is cut while it is read.  The socket's buffer is far smaller
 * than the file, so the sender is still in its first part. */
static void test_shrink(void)
{
	struct tree_error error;
	int pair[2], status = 0;
	char byte;
	pid_t pid;

	make_file("shrink", 0, 8 * 1024 * 1024, 0);
	socket_pair(pair);
	pid = fork();
	must(pid >= 0, "fork");
	if (pid == 0) {
		close(pair[1]);
		_exit(tree_send(pair[0], AT_FDCWD, "shrink", &error) == 0);
	}
	close(pair[0]);
	must(recv(pair[1], &byte, 1, MSG_PEEK) == 1, "recv");
	must(truncate("shrink", 10) == 0, "truncate");
	ok(tree_recv(pair[1], AT_FDCWD, "shrunk", "", 0, &why) < 0 &&
	       failed("shorter") && !exists("shrunk"),
	   "a file that becomes shorter is an error");
	close(pair[1]);
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	ok(status == 0, "the sender says so, too");
}

/* ---- hostile streams ----------------------------------------------------- */

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
     NULL,								     {DIRECTORY(""), REGULAR("a", 5), DATA(0, "he"), DATA(3, "o"), END,
      DIRECTORY("d"), TO("../.."), DONE}												  },
    {"a path with ..",
     "leads out",							      {DIRECTORY(""), REGULAR("../outside", 1), DATA(0, "x"), END, DONE}   },
    {".. in the middle",
     "leads out",							      {DIRECTORY(""), DIRECTORY("d"), REGULAR("d/../../outside", 1), DONE} },
    {"an absolute path",
     "leads out",							      {DIRECTORY(""), REGULAR("/outside", 1), DONE}			  },
    {"a path ending in a slash",
     "leads out",							      {DIRECTORY(""), DIRECTORY("d/"), DONE}				   },
    {"a link of the stream to a directory",
     "Not a directory",							{DIRECTORY(""), TO(".."), REGULAR("l/outside", 1), DONE}	     },
    {"a directory where the stream made a link",
     "Not a directory",							{DIRECTORY(""), TO(".."), DIRECTORY("l"), DONE}			    },
    {"a link that was there",
     "Not a directory",							{DIRECTORY(""), REGULAR("there/outside", 1), DONE}		       },
    {"a file over a link of the stream",
     NULL,								     {DIRECTORY(""), TO("../outside"), REGULAR("l", 1), DATA(0, "x"), END,
      DONE}															       },
    {"the thing is a link",
     "it is a symbolic link",						  {LINK("", 2), DATA(0, ".."), END, DONE}				    },
    {"no thing",				 "in no directory",	    {REGULAR("outside", 1), DONE}					 },
    {"a file instead of the directory",
     "Is a directory",							 {REGULAR("", 0), END, REGULAR("a", 0), DONE}			 },
    {"two things",			       "begins twice",		   {DIRECTORY(""), DIRECTORY(""), DONE}				       },
    {"nothing",				  "its end in the wrong place", {DONE}							       },
    {"data before an entry",		     "data in the wrong place",	{DATA(0, "x")}							      },
    {"data in a directory",
     "data in the wrong place",						{DIRECTORY(""), DATA(0, "x")}					},
    {"two ends",
     "end of a file in the wrong place",				       {DIRECTORY(""), REGULAR("a", 0), END, END}			       },
    {"an entry in a file",
     "an entry inside a file",						 {DIRECTORY(""), REGULAR("a", 1), REGULAR("b", 1)}		      },
    {"done in a file",
     "its end in the wrong place",					     {DIRECTORY(""), REGULAR("a", 1), DONE}				   },
    {"more than the size",
     "beyond the size",							{DIRECTORY(""), REGULAR("a", 3), DATA(0, "abcd")}		      },
    {"an offset beyond the size",
     "beyond the size",							{DIRECTORY(""), REGULAR("a", 3), DATA(UINT64_MAX, "a")}		    },
    {"an offset that goes back",
     "beyond the size",							{DIRECTORY(""), REGULAR("a", 9), DATA(4, "abc"), DATA(0, "abc")}     },
    {"a size that no file has",
     "a size that no file has",						{DIRECTORY(""), REGULAR("a", UINT64_MAX)}			      },
    {"a size that no disk has",
     "cannot write",							   {DIRECTORY(""), REGULAR("a", INT64_MAX), END, DONE}			},
    {"a link without a target",
     "an empty link",							  {DIRECTORY(""), LINK("l", 3), END}				       },
    {"a link with two targets",
     "beyond the size",							{DIRECTORY(""), LINK("l", 1), DATA(0, "x"), DATA(0, "x")}	      },
    {"a device",
     "neither file",							   {DIRECTORY(""), {FRAME_ENTRY, S_IFCHR | 0666, 0, "null"}}	      },
    {"a name of 256 bytes",
     "name too long",							  {DIRECTORY(""),
      DIRECTORY("0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef0123456789abcdef0123456789abcdef"
		"0123456789abcdef")}											   },
    {"an early end",			     "ended early",		    {DIRECTORY(""), REGULAR("a", 1)}					    },
    {"a frame of another kind",
     "unexpected frame",						       {DIRECTORY(""), {FRAME_STDOUT, 0, 0, "x"}}			       },
    {"an abort",
     "disk on fire",							   {DIRECTORY(""), REGULAR("a", 1), {FRAME_ABORT, 0, 0, "disk on fire"}}},
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

static int open_up(const char *path, const struct stat *st, int type,
		   struct FTW *where)
{
	(void)st;
	(void)where;
	return type == FTW_D ? chmod(path, 0700) : 0;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void remove_all(const char *path)
{
	nftw(path, open_up, 32, FTW_PHYS);
	nftw(path, remove_one, 32, FTW_PHYS | FTW_DEPTH);
}

/* An empty "jail/in", but for a link to "jail". */
static void new_jail(void)
{
	remove_all("jail");
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
		ok((result == 0) == !reason && (!reason || failed(reason)) &&
		       !exists("jail/outside") && tidy("jail/in"),
		   what);
	}
}

/* What comes after a thing that is a file has no directory to be in. */
static void test_below_file(void)
{
	static const struct step stream[] = {
	    REGULAR("", 0), END, REGULAR("a", 0), END, DONE, {0, 0, 0, NULL},
	};

	new_jail();
	ok(receive(stream, "jail/file", 0) < 0 && failed("in no directory") &&
	       exists("jail/file"),
	   "stream: below a file");
}

static void test_looks(void)
{
	static const struct step stream[] = {
	    DIRECTORY(""),
	    {FRAME_ENTRY, S_IFDIR | 07711, 0, "d"	 },
	    {FRAME_ENTRY, S_IFREG | 07755, 6, "d/f"},
	    DATA(0, "ab"),
	    DATA(4, "ef"),
	    END,
	    DONE,
	    {0,		0,		   0, NULL },
	};
	struct stat dir = {0}, file = {0};

	new_jail();
	umask(077);
	ok(receive(stream, "jail/in", 0) == 0 && stat("jail/in/d", &dir) == 0 &&
	       stat("jail/in/d/f", &file) == 0,
	   "set-id bits from somebody trusted");
	ok((file.st_mode & 07777) == 07755 && (dir.st_mode & 07777) == 07711,
	   "they are kept");
	ok(file.st_mtime == MTIME && dir.st_mtime == MTIME,
	   "so are the times, of the directory as well");
	new_jail();
	make_file("jail/in/d", 0, 1, 0);
	ok(receive(stream, "jail/in", TREE_UNTRUSTED) < 0 &&
	       failed("'jail/in/d'"),
	   "a file in the way of a directory");
	new_jail();
	ok(receive(stream, "jail/in", TREE_UNTRUSTED) == 0 &&
	       stat("jail/in/d", &dir) == 0 &&
	       stat("jail/in/d/f", &file) == 0 &&
	       (file.st_mode & 07777) == 0755 && (dir.st_mode & 07777) == 0711,
	   "set-id bits from a guest are taken off");
	umask(022);
	ok(file.st_size == 6 && !holds("jail/in/d/f", "abef"),
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
	ok(result, "good paths");
	result = true;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		result = result && !tree_path_ok(bad[i]);
	ok(result, "bad paths");
	memset(longest, 'a', sizeof(longest));
	longest[4096] = '\0';
	result = !tree_path_ok(longest);
	longest[4095] = '\0';
	ok(result && tree_path_ok(longest), "the longest path");
}

int main(void)
{
	char scratch[] = "/tmp/test-tree-XXXXXX";

	must(mkdtemp(scratch) && chdir(scratch) == 0, scratch);
	test_paths();
	test_faithful();
	test_targets();
	test_unsendable();
	test_shrink();
	test_streams();
	test_below_file();
	test_looks();
	printf("1..%d\n", tests);
	remove_all(scratch);
	return failures > 0;
}
