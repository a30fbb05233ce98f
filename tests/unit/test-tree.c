/*
 * test-tree.c - tree.h, a process at each end of a socket pair: what arrives
 * is what was sent, where cp -r would put it.
 */
#include "tap.h"
#include "tree.h"
#include "proto.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GIB (1024L * 1024 * 1024)

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

/* The next byte that is not in a hole of both. */
static off_t next_data(int a, int b, off_t at, off_t end)
{
	off_t left = lseek(a, at, SEEK_DATA), right = lseek(b, at, SEEK_DATA);

	if (left < 0)
		left = end;
	if (right < 0)
		right = end;
	return left < right ? left : right;
}

static bool same_data(int a, int b)
{
	static unsigned char one[65536], two[65536];
	off_t end = lseek(a, 0, SEEK_END), at = next_data(a, b, 0, end);

	while (at < end) {
		ssize_t n = pread(a, one, sizeof(one), at);
		ssize_t m = pread(b, two, sizeof(two), at);

		if (n <= 0 || n != m || memcmp(one, two, (size_t)n) != 0)
			return false;
		at = next_data(a, b, at + n, end);
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
	    left.st_mtim.tv_sec != right.st_mtim.tv_sec ||
	    left.st_mtim.tv_nsec != right.st_mtim.tv_nsec)
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
	struct stat st;

	make_tree("tree");
	expect(copy("tree", "copy", "tree", 0), "a tree to a new name");
	expect(same(AT_FDCWD, "tree", AT_FDCWD, "copy"), "it is the same");
	expect(stat("copy/islands", &st) == 0 && st.st_blocks < 4096,
	       "holes are holes");
	expect(copy("tree", "copy", "tree", 0) &&
		       same(AT_FDCWD, "tree", AT_FDCWD, "copy/tree"),
	       "again: into the directory that is there now");
	must(mkdir("merge", 0700) == 0, "mkdir");
	make_file("merge/other", 0, 4, 0);
	must(symlink("/etc/passwd", "merge/one") == 0, "symlink");
	expect(copy("tree", "merge", "", 0) && exists("merge/other") &&
		       same(AT_FDCWD, "tree/shut", AT_FDCWD, "merge/shut"),
	       "without a base it is merged");
	expect(same(AT_FDCWD, "tree/one", AT_FDCWD, "merge/one"),
	       "a link in the way is replaced, not followed");
	expect(copy("tree/link", "file", "link", 0) &&
		       same(AT_FDCWD, "tree/one", AT_FDCWD, "file"),
	       "a link that is named is followed");
	expect(copy("/proc/self/status", "status", "", 0) &&
		       !holds("status", ""),
	       "a file that says it is empty and is not");
}

static void test_targets(void)
{
	expect(!copy("tree/one", "no/such/dir", "one", 0) && !exists("no"),
	       "missing parents are an error");
	expect(copy("tree/one", "no/such/dir", "one", TREE_PARENTS) &&
		       same(AT_FDCWD, "tree/one", AT_FDCWD, "no/such/dir"),
	       "they are made when that is asked for");
	expect(!copy("tree/one", "nodir", "one", TREE_INTO) && !exists("nodir"),
	       "a target that must be a directory and is missing");
	expect(!copy("tree/one", "file", "one", TREE_INTO) &&
		       failed("Not a directory"),
	       "a target that must be a directory and is a file");
	expect(copy("tree/one", "x/y", "one", TREE_INTO | TREE_PARENTS) &&
		       exists("x/y/one"),
	       "a target that must be a directory is made");
	expect(!copy("tree/one", "tree", "", 0) && failed("Is a directory"),
	       "a file does not replace the target directory");
	must(mkdir("way", 0755) == 0 && mkdir("way/one", 0755) == 0, "mkdir");
	expect(!copy("tree/one", "way", "one", 0) && failed("Is a directory") &&
		       tidy("way"),
	       "a file does not replace a directory in the target");
	make_file("way/shut", 0, 1, 0);
	expect(!copy("tree/shut", "way", "shut", 0) && failed("directory"),
	       "a directory does not replace a file");
	expect(!copy("tree/one", "way", "..", 0) &&
		       !copy("tree/one", "way", "a/b", 0),
	       "a base is one name");
	must(symlink("way", "way-link") == 0, "symlink");
	expect(copy("tree/18k", "way-link", "18k", 0) && exists("way/18k"),
	       "a target that is a link to a directory counts as it");
	must(symlink("victim", "to-victim") == 0, "symlink");
	expect(copy("tree/one", "to-victim", "", 0) && !exists("victim"),
	       "a target that is a link to nothing is replaced");
}

static void test_unsendable(void)
{
	must(mkdir("odd", 0755) == 0 && mkfifo("odd/fifo", 0600) == 0, "odd");
	expect(!copy("odd", "odd2", "", 0) &&
		       failed("'odd/fifo': it is a FIFO"),
	       "a FIFO is an error that names it");
	expect(!copy("/dev/null", "null", "", 0) && failed("device"),
	       "a device is an error");
	expect(!copy("missing", "m", "", 0) && failed("No such file"),
	       "a missing file is an error");
	must(mkdir("deeper", 0755) == 0, "mkdir");
	make_deep("deeper", 129);
	expect(!copy("deeper", "deeper2", "", 0) && failed("128 directories"),
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
	expect(tree_recv(pair[1], AT_FDCWD, "shrunk", "", 0, &why) < 0 &&
		       failed("shorter") && !exists("shrunk"),
	       "a file that becomes shorter is an error");
	close(pair[1]);
	must(waitpid(pid, &status, 0) == pid, "waitpid");
	expect(status == 0, "the sender says so, too");
}

/* ---- main --------------------------------------------------------------- */

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
	return where->level > 0 ? remove(path) : 0;
}

/* Deeper than remove_tree() goes, and with directories that are shut. */
static void remove_all(const char *path)
{
	nftw(path, open_up, 32, FTW_PHYS);
	nftw(path, remove_one, 32, FTW_PHYS | FTW_DEPTH);
}

int main(void)
{
	AUTO_CLOSE int dir = tap_dir();

	must(dir >= 0 && fchdir(dir) == 0, "scratch directory");
	test_faithful();
	test_targets();
	test_unsendable();
	test_shrink();
	remove_all(".");
	return done();
}
