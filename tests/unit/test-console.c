/*
 * test-console - the console log keeps to its cap and keeps what is newest,
 * whatever is written and however full the disk is.
 */
#include "tap.h"

#include "console.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int dir;

static off_t size_of(int at)
{
	struct stat st;

	return fstatat(at, "console.log", &st, AT_SYMLINK_NOFOLLOW) < 0
		       ? -1
		       : st.st_size;
}

/* The log's last bytes. */
static bool ends_with(int at, const char *text)
{
	char tail[64];
	size_t len = strlen(text);
	AUTO_CLOSE int fd = openat(at, "console.log", O_RDONLY);

	return fd >= 0 && size_of(at) >= (off_t)len &&
	       pread(fd, tail, len, size_of(at) - (off_t)len) == (ssize_t)len &&
	       memcmp(tail, text, len) == 0;
}

static void test_append(void)
{
	struct console c;
	struct stat st;

	is_num(console_open(&c, dir), 0, "a new log");
	is_num(console_write(&c, "one\n", 4), 0, "a line");
	is_num(console_write(&c, "", 0), 0, "nothing");
	is_num(console_write(&c, "a\0b\n", 4), 0, "with a NUL");
	console_close(&c);
	fstatat(dir, "console.log", &st, 0);
	is_num(st.st_mode & 0777, 0600, "private");
	is_num(console_open(&c, dir), 0, "opened again");
	is_num(console_write(&c, "two\n", 4), 0, "goes on");
	console_close(&c);
	is_num(size_of(dir), 12, "behind what was there");
	ok(ends_with(dir, &"a\0b\ntwo\n"[4]), "in order");
	console_close(&c);
	is_num(console_write(&c, "x", 1), 0, "a closed one takes nothing");
	unlinkat(dir, "console.log", 0);
}

/* Pieces of one size for 5 MiB: never over the cap, the newest at the end,
 * never less than a quarter of the cap once it was full. */
static void test_cap(size_t piece)
{
	static char data[4 * 1024 * 1024];
	struct console c;
	size_t total = 0, last = 0;
	int over = 0, lost = 0, wrong = 0;

	memset(data, '.', sizeof(data));
	unlinkat(dir, "console.log", 0);
	console_open(&c, dir);
	while (total < 5u * 1024 * 1024) {
		char mark[24];
		size_t len =
			(size_t)snprintf(mark, sizeof(mark), "<%zu>\n", total);

		if (len < piece)
			memcpy(data + piece - len, mark, len);
		wrong += console_write(&c, data, piece) != 0;
		total += piece;
		last = (size_t)size_of(dir);
		over += last > CONSOLE_MAX;
		lost += total > CONSOLE_MAX && last < CONSOLE_MAX / 4;
		wrong += len < piece && !ends_with(dir, mark);
	}
	console_close(&c);
	ok(over == 0, "pieces of %zu: never over the cap", piece);
	ok(lost == 0, "pieces of %zu: much is kept", piece);
	ok(wrong == 0, "pieces of %zu: the newest is at the end", piece);
	unlinkat(dir, "console.log", 0);
	ok(faccessat(dir, ".console.log", F_OK, 0) < 0,
	   "pieces of %zu: nothing else is left", piece);
}

static void test_traps(void)
{
	struct console c;

	put_link("/etc/passwd", dir, "console.log");
	ok(console_open(&c, dir) < 0, "a link is not followed");
	console_close(&c);
	unlinkat(dir, "console.log", 0);

	/* what an older version or a user has left may be larger */
	put_file(dir, "console.log", "", 0);
	if (truncate("console.log", 3 * CONSOLE_MAX) < 0)
		exit(99);
	console_open(&c, dir);
	console_write(&c, "end\n", 4);
	console_close(&c);
	ok(size_of(dir) <= CONSOLE_MAX && ends_with(dir, "end\n"),
	   "a log that was too large is cut");
	unlinkat(dir, "console.log", 0);
}

static void test_full_disk(void)
{
	static char data[4096];
	struct console c;
	int full, over = 0;

	memset(data, 'z', sizeof(data));
	mkdirat(dir, "full", 0700);
	if (mount("none", "full", "tmpfs", 0, "size=256k") < 0)
		exit(99);
	full = open_dir(dir, "full");
	console_open(&c, full);
	for (int i = 0; i < 1000; i++) {
		console_write(&c, data, sizeof(data));
		over += size_of(full) > CONSOLE_MAX;
	}
	is_num(over, 0, "a full disk: no crash, no growth");
	console_close(&c);
	console_open(&c, full);
	console_close(&c);
	ok(faccessat(full, ".console.log", F_OK, 0) < 0, "and no second file");
	close(full);
	umount("full");
	remove_tree(dir, "full");
}

int main(void)
{
	static const size_t pieces[] = {1000,	4096,	 65536,	 524288,
					524289, 1048576, 3000000};

	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("Bail out! needs root\n");
		return 77;
	}
	dir = tap_dir();
	if (fchdir(dir) < 0)
		return 99;
	test_append();
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		test_cap(pieces[i]);
	test_traps();
	test_full_disk();
	return done();
}
