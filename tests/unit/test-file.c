/*
 * test-file - value files, trees and locks below a directory descriptor, on a
 * real file system.  Root, because a full disk and a mount are private ones.
 */
#include "tap.h"

#include <dirent.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int dir;

static int entries(int at)
{
	DIR *stream = fdopendir(openat(at, ".", O_RDONLY | O_DIRECTORY));
	const struct dirent *entry;
	int n = 0;

	while ((entry = readdir(stream)))
		n += strcmp(entry->d_name, ".") != 0 &&
		     strcmp(entry->d_name, "..") != 0;
	closedir(stream);
	return n;
}

static bool there(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void test_values(void)
{
	char text[64], longer[5000];
	struct stat st;

	is_num(write_value(dir, "v", "%s %d", "one", 2), 0, "write a value");
	is_num(read_file(dir, "v", text, sizeof(text)), 6, "a line of 6 bytes");
	is_str(text, "one 2\n", "with its newline");
	is_num(read_value(dir, "v", text, sizeof(text)), 5, "read the value");
	is_str(text, "one 2", "without it");
	is_num(write_value(dir, "v", "%s", ""), 0, "replace it by nothing");
	is_num(read_value(dir, "v", text, sizeof(text)), 0, "empty");
	fstatat(dir, "v", &st, 0);
	is_num(st.st_mode & 0777, 0600, "private");
	is_num(entries(dir), 1, "no temporary file is left");

	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	ok(write_value(dir, "w", "%s", longer) < 0 && errno == EFBIG,
	   "too long a value is refused");
	is_num(entries(dir), 1, "and leaves nothing");
	ok(write_value(dir, "no/such", "x") < 0, "a path is refused");
	is_num(entries(dir), 1, "and leaves nothing");
	mkdirat(dir, "d", 0700);
	ok(write_value(dir, "d", "x") < 0, "a directory is not replaced");
	is_num(entries(dir), 2, "and leaves nothing");
	remove_tree(dir, "d");
	remove_tree(dir, "v");
}

static void test_reading(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		ssize_t result; /* of read_value */
	} rows[] = {
		{"a\n", 2, 1},	   {"a", 1, 1},		{"", 0, 0},
		{"\n", 1, 0},	   {"a\nb\n", 4, -1},	{"\n\n", 2, -1},
		{"a\0b\n", 4, -1}, {"\0", 1, -1},	{"\0\n", 2, -1},
		{"1234567", 7, 7}, {"12345678", 8, -1},
	};
	char text[8];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_file(dir, "r", rows[i].bytes, rows[i].len);
		is_num(read_value(dir, "r", text, sizeof(text)), rows[i].result,
		       "value file, by table");
	}
	put_file(dir, "r", "12345678", 8);
	ok(read_file(dir, "r", text, sizeof(text)) < 0 && errno == EFBIG,
	   "longer than the buffer is EFBIG");
	ok(read_file(dir, "absent", text, sizeof(text)) < 0 && errno == ENOENT,
	   "absent is ENOENT");
	put_link("r", dir, "link");
	ok(read_file(dir, "link", text, sizeof(text)) < 0, "no link");
	mkfifoat(dir, "fifo", 0600);
	ok(read_file(dir, "fifo", text, sizeof(text)) <= 0,
	   "a FIFO does not block");
	mkdirat(dir, "sub", 0700);
	ok(read_file(dir, "sub", text, sizeof(text)) < 0, "no directory");
	remove_tree(dir, "r");
	remove_tree(dir, "link");
	remove_tree(dir, "fifo");
	remove_tree(dir, "sub");
	is_num(entries(dir), 0, "all removed");
}

static void test_read_number(void)
{
	static const struct {
		const char *text;
		bool good;
	} rows[] = {
		{"5\n", true},
		{"5", true},
		{"10\n", true},
		{"0\n", false},
		{"11\n", false},
		{"5 \n", false},
		{"", false},
		{"\n", false},
		{"five\n", false},
		{"5\n5\n", false},
		{"99999999999999999999999999999999999999\n", false},
	};
	long long n;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_file(dir, "n", rows[i].text, strlen(rows[i].text));
		n = -1;
		ok((read_number(dir, "n", 1, 10, &n) == 0) == rows[i].good &&
			   (!rows[i].good || (n >= 1 && n <= 10)),
		   "number file '%s'", rows[i].text);
	}
	remove_tree(dir, "n");
	ok(read_number(dir, "n", 1, 10, &n) < 0 && errno == ENOENT,
	   "no number file");
}

static void test_remove_tree(void)
{
	char outside[] = "/tmp/ark-unit-out.XXXXXX";
	int out, at = dir;

	if (!mkdtemp(outside))
		exit(99);
	out = open(outside, O_RDONLY | O_DIRECTORY);
	put_file(out, "precious", "x", 1);
	mkdirat(dir, "t", 0700);
	mkdirat(dir, "t/a", 0000);
	mkdirat(dir, "t/b", 0700);
	put_file(dir, "t/b/f", "x", 1);
	put_link(outside, dir, "t/link");
	put_link(outside, dir, "t/b/link");
	mkfifoat(dir, "t/fifo", 0600);
	is_num(remove_tree(dir, "t"), 0, "a tree");
	ok(!there("t"), "is gone");
	is_num(entries(out), 1, "no link was followed");
	put_link(outside, dir, "top");
	is_num(remove_tree(dir, "top"), 0, "a link");
	ok(!there("top") && entries(out) == 1, "is removed itself");
	is_num(remove_tree(dir, "top"), 0, "absent is fine");
	put_file(dir, "plain", "x", 1);
	is_num(remove_tree(dir, "plain"), 0, "a file");

	/* deeper than any tree of ours: refused or removed, never a crash */
	for (int i = 0; i < 60; i++) {
		mkdirat(at, "deep", 0700);
		at = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	remove_tree(dir, "deep");
	ok(entries(out) == 1, "a very deep tree hurts nobody");

	mkdirat(dir, "m", 0700);
	mkdirat(dir, "m/on", 0700);
	mkdirat(dir, "m/other", 0700);
	if (mount("none", "m/on", "tmpfs", 0, "size=64k") < 0)
		exit(99);
	put_file(dir, "m/on/precious", "x", 1);
	ok(remove_tree(dir, "m") < 0, "a mount below is not removed");
	ok(there("m/on/precious"), "nor what is in it");
	ok(!there("m/other"), "the rest is");
	umount("m/on");
	is_num(remove_tree(dir, "m"), 0, "after umount it goes");
	unlinkat(out, "precious", 0);
	close(out);
	rmdir(outside);
}

static void test_full_disk(void)
{
	char text[16], filler[4096] = {0};
	int full, fd;

	mkdirat(dir, "full", 0700);
	if (mount("none", "full", "tmpfs", 0, "size=64k") < 0)
		exit(99);
	full = open_dir(dir, "full");
	is_num(write_value(full, "v", "old"), 0, "with room");
	fd = openat(full, "filler", O_WRONLY | O_CREAT, 0600);
	while (write(fd, filler, sizeof(filler)) > 0)
		;
	close(fd);
	ok(write_value(full, "v", "new") < 0 && errno == ENOSPC,
	   "without room");
	is_num(entries(full), 2, "leaves nothing");
	read_value(full, "v", text, sizeof(text));
	is_str(text, "old", "and the old value");
	close(full);
	umount("full");
	remove_tree(dir, "full");
}

static void test_make_dir(void)
{
	char path[5000];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "%s/x/y/z", tap_dir_path);
	fd = make_dir(path, 0700);
	ok(fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0700,
	   "all parts, the last with its mode");
	close(fd);
	fd = make_dir(path, 0700);
	ok(fd >= 0, "again");
	close(fd);
	remove_tree(dir, "x");
	ok(make_dir("relative", 0700) < 0, "a relative path is refused");
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	ok(make_dir(path, 0700) < 0 && errno == ENAMETOOLONG,
	   "too long a path is refused");
	put_file(dir, "f", "x", 1);
	snprintf(path, sizeof(path), "%s/f/below", tap_dir_path);
	ok(make_dir(path, 0700) < 0, "a file in the way");
	remove_tree(dir, "f");
}

static void test_lock(void)
{
	int one = open_dir(dir, "."), two = open_dir(dir, ".");
	uint64_t begin;

	is_num(lock_file(one, LOCK_EX, 0), 0, "the first gets the lock");
	begin = now_ms();
	ok(lock_file(two, LOCK_EX, 0) < 0 && errno == EWOULDBLOCK &&
		   now_ms() - begin < 100,
	   "the second does not, at once");
	begin = now_ms();
	ok(lock_file(two, LOCK_EX, 200) < 0 && errno == EWOULDBLOCK &&
		   now_ms() - begin >= 200 && now_ms() - begin < 2000,
	   "nor after the time that it waits");
	close(one);
	is_num(lock_file(two, LOCK_EX, 0), 0, "a closed one lets go");
	close(two);
}

static void test_whole_writes(void)
{
	static char out[300000], in[300000];
	int ends[2], status;
	pid_t pid;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 31 >> 3);
	if (pipe(ends) < 0)
		exit(99);
	pid = fork();
	if (pid == 0)
		_exit(write_full(ends[1], out, sizeof(out)) != 0);
	close(ends[1]);
	ok(read_full(ends[0], in, sizeof(in)) == (ssize_t)sizeof(in) &&
		   memcmp(in, out, sizeof(in)) == 0,
	   "more than a pipe holds, both ways");
	is_num(read_full(ends[0], in, 1), 0, "end of file");
	waitpid(pid, &status, 0);
	is_num(status, 0, "written whole");
	close(ends[0]);
}

int main(void)
{
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("Bail out! needs root\n");
		return 77;
	}
	dir = tap_dir();
	if (fchdir(dir) < 0)
		return 99;
	test_values();
	test_reading();
	test_read_number();
	test_remove_tree();
	test_full_disk();
	test_make_dir();
	test_lock();
	test_whole_writes();
	return done();
}
