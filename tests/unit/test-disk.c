/*
 * test-disk - copying and formatting disks, on real files.  Root, because a
 * full disk is a small tmpfs that only this process sees.
 */
#include "tap.h"
#include "disk.h"
#include "image.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define MIB (1 << 20)

static int dir; /* where the files are */

static bool absent(const char *name)
{
	return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* A file of `size` bytes with one byte of data at each place of the list,
 * which ends with -1. */
static void make(int at, const char *name, off_t size, const off_t *places)
{
	AUTO_CLOSE int fd = openat(at, name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || ftruncate(fd, size) < 0)
		die(EX_OSERR, "cannot make %s", name);
	for (; *places >= 0; places++)
		if (pwrite(fd, "x", 1, *places) != 1)
			die(EX_OSERR, "cannot write %s", name);
}

static struct stat look(int at, const char *name)
{
	struct stat st = {0};

	fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

/* Byte for byte, holes read as zeros. */
static bool same(int a_dir, const char *a, int b_dir, const char *b)
{
	AUTO_CLOSE int x = openat(a_dir, a, O_RDONLY);
	AUTO_CLOSE int y = openat(b_dir, b, O_RDONLY);
	static char one[MIB], two[MIB];
	ssize_t n;

	do {
		n = read_full(x, one, sizeof(one));
		if (n < 0 || read_full(y, two, sizeof(two)) != n ||
		    memcmp(one, two, (size_t)n) != 0)
			return false;
	} while (n > 0);
	return true;
}

/* Copy, compare content, size and space; then remove the copy. */
static void check_copy(int to, const char *what)
{
	bool good = disk_copy(dir, "from", to, "to", 0600) == 0 &&
		    same(dir, "from", to, "to");
	struct stat a = look(dir, "from"), b = look(to, "to");

	ok(good && a.st_size == b.st_size, "%s", what);
	if (b.st_blocks > a.st_blocks + 64)
		ok(false, "the copy takes more space");
	unlinkat(to, "to", 0);
}

static void test_shapes(int to)
{
	static const struct {
		const char *what;
		off_t size;
		off_t places[4];
	} shapes[] = {
		{"empty file", 0, {-1}},
		{"one byte", 1, {0, -1}},
		{"only a hole", 64 * MIB, {-1}},
		{"hole at the start", 32 * MIB, {31 * MIB, -1}},
		{"hole at the end", 32 * MIB, {0, -1}},
		{"data between", 64 * MIB, {4096, 9 * MIB, 40 * MIB, -1}},
		{"odd size", 5 * MIB + 7, {3, 5 * MIB + 6, -1}},
	};

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		make(dir, "from", shapes[i].size, shapes[i].places);
		check_copy(to, shapes[i].what);
	}
}

static void test_mode(void)
{
	mode_t old = umask(0077);

	disk_copy(dir, "from", dir, "to", 0444);
	ok((look(dir, "to").st_mode & 07777) == 0444, "mode despite a umask");
	umask(old);
	unlinkat(dir, "to", 0);
}

static void test_refusals(void)
{
	ok(disk_copy(dir, "none", dir, "to", 0600) == -EX_NOINPUT &&
		   absent("to") && told("cannot open 'none'"),
	   "no source");
	make(dir, "to", 3, (const off_t[]){0, -1});
	ok(disk_copy(dir, "from", dir, "to", 0600) == -EX_CANTCREAT &&
		   look(dir, "to").st_size == 3 && told("cannot make 'to'"),
	   "target is there and stays");
	unlinkat(dir, "to", 0);
	mkdirat(dir, "folder", 0700);
	ok(disk_copy(dir, "folder", dir, "to", 0600) == -EX_DATAERR &&
		   absent("to") && told("not a regular file"),
	   "source is a directory");
	mkfifoat(dir, "fifo", 0600);
	ok(disk_copy(dir, "fifo", dir, "to", 0600) == -EX_DATAERR &&
		   absent("to") && told("not a regular file"),
	   "source is a FIFO, without waiting");
	ok(symlinkat("from", dir, "link") == 0 &&
		   disk_copy(dir, "link", dir, "to", 0600) < 0 &&
		   absent("to") && told("cannot open 'link'"),
	   "source is a symbolic link");
	ok(symlinkat("elsewhere", dir, "dangling") == 0 &&
		   disk_copy(dir, "from", dir, "dangling", 0600) < 0 &&
		   absent("elsewhere") && told("cannot make 'dangling'"),
	   "target is a symbolic link");
}

static void test_too_large(void)
{
	const struct rlimit low = {MIB, RLIM_INFINITY};
	const struct rlimit high = {RLIM_INFINITY, RLIM_INFINITY};

	make(dir, "from", 8 * MIB, (const off_t[]){0, 5 * MIB, -1});
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &low);
	ok(disk_copy(dir, "from", dir, "to", 0600) == -EX_IOERR && absent("to"),
	   "file size limit leaves no file");
	setrlimit(RLIMIT_FSIZE, &high);
	ok(told("cannot write 'to'"), "file size limit is told");
}

/* 1 MiB of space for 4 MiB of data. */
static void test_full(int small)
{
	AUTO_CLOSE int fd =
		openat(dir, "from", O_RDWR | O_CREAT | O_TRUNC, 0600);
	AUTO_CLOSE int fill = openat(small, "fill", O_RDWR | O_CREAT, 0600);
	static char data[4 * MIB];

	memset(data, 'x', sizeof(data));
	if (write_full(fd, data, sizeof(data)) < 0)
		die(EX_OSERR, "cannot write");
	ok(disk_copy(dir, "from", small, "to", 0600) == -EX_IOERR &&
		   faccessat(small, "to", F_OK, 0) < 0 &&
		   told("which needs 4M: No space left"),
	   "full disk: no file left, the needed size told");
	if (fallocate(fill, 0, 0, MIB) < 0)
		die(EX_OSERR, "cannot fill the disk");
	ok(disk_make(small, "disk", 64 * MIB) == -EX_IOERR &&
		   faccessat(small, "disk", F_OK, 0) < 0,
	   "full disk while formatting: no file left");
	/* mkfs has its say as well. */
	if (ftruncate(STDERR_FILENO, 0) < 0 ||
	    lseek(STDERR_FILENO, 0, SEEK_SET) < 0)
		die(EX_OSERR, "cannot empty stderr");
}

static bool is_ext4(const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDONLY);
	unsigned char magic[2];

	return pread(fd, magic, 2, 0x438) == 2 && magic[0] == 0x53 &&
	       magic[1] == 0xef;
}

static void test_make(void)
{
	char *path = strdup(getenv("PATH"));
	char one[DIGEST_MAX], two[DIGEST_MAX];

	ok(disk_make(dir, "disk", 1LL << 33) == 0 && is_ext4("disk"),
	   "format 8 GiB");
	ok(look(dir, "disk").st_size == 1LL << 33 &&
		   (look(dir, "disk").st_mode & 07777) == 0600,
	   "its size and mode");
	ok(look(dir, "disk").st_blocks * 512 < MIB, "it takes less than 1 MiB");
	ok(disk_make(dir, "disk", 1LL << 33) == -EX_CANTCREAT && told("disk"),
	   "not over another");
	ok(disk_make(dir, "tiny", 16 * MIB) == 0 && is_ext4("tiny"),
	   "format 16 MiB");
	setenv("E2FSPROGS_FAKE_TIME", "1700000000", 1);
	disk_make(dir, "a", 64 * MIB);
	disk_make(dir, "b", 64 * MIB);
	ok(image_digest(dir, "a", true, one) == 0 &&
		   image_digest(dir, "b", true, two) == 0 &&
		   strcmp(one, two) == 0,
	   "the same bytes at the same time");
	setenv("PATH", "/nonexistent", 1);
	ok(disk_make(dir, "c", 64 * MIB) == -EX_UNAVAILABLE && absent("c") &&
		   told("cannot run mkfs.ext4"),
	   "without mkfs.ext4");
	setenv("PATH", path, 1);
	free(path);
}

static void test_clone(void)
{
	char one[DIGEST_MAX], two[DIGEST_MAX];
	AUTO_CLOSE int vm = -1;

	mkdirat(dir, "vm", 0700);
	vm = open_dir(dir, "vm");
	ok(disk_clone(dir, vm, 1LL << 33) == 0 &&
		   image_digest(dir, "disk", true, one) == 0 &&
		   image_digest(vm, "disk", true, two) == 0 &&
		   strcmp(one, two) == 0,
	   "clone as large as the template");
	unlinkat(vm, "disk", 0);
	ok(disk_clone(dir, vm, 5LL << 32) == 0 &&
		   look(vm, "disk").st_size == 5LL << 32 &&
		   look(vm, "disk").st_blocks * 512 < MIB,
	   "a larger one is still sparse");
	ok(disk_grow(vm, "disk", 1LL << 33) == -EX_USAGE &&
		   look(vm, "disk").st_size == 5LL << 32 && told("only grows"),
	   "a disk does not shrink");
	unlinkat(vm, "disk", 0);
	ok(disk_clone(dir, vm, 1LL << 30) == 0 &&
		   look(vm, "disk").st_size == 1LL << 30,
	   "a smaller one is formatted");
}

/* The digest of blocks is of the content: holes or written zeros, it is the
 * same; every other change shows. */
static void test_digest(void)
{
	char one[DIGEST_MAX], two[DIGEST_MAX];
	static const char zeros[4 * MIB];
	AUTO_CLOSE int fd = openat(dir, "dense", O_RDWR | O_CREAT, 0600);

	make(dir, "from", 4 * MIB, (const off_t[]){5000, 3 * MIB, -1});
	ok(write_full(fd, zeros, sizeof(zeros)) == 0 &&
		   pwrite(fd, "x", 1, 5000) == 1 &&
		   pwrite(fd, "x", 1, 3 * MIB) == 1 &&
		   image_digest(dir, "from", true, one) == 0 &&
		   image_digest(dir, "dense", true, two) == 0 &&
		   strcmp(one, two) == 0,
	   "digest of blocks: holes do not matter");
	ok(ftruncate(fd, 4 * MIB + 1) == 0 &&
		   image_digest(dir, "dense", true, two) == 0 &&
		   strcmp(one, two) != 0,
	   "digest of blocks: the size matters");
	make(dir, "from", 4 * MIB, (const off_t[]){5000, 2 * MIB, -1});
	ok(image_digest(dir, "from", true, two) == 0 && strcmp(one, two) != 0,
	   "digest of blocks: the place matters");
	make(dir, "from", 3, (const off_t[]){0, 1, 2, -1});
	ok(image_digest(dir, "from", false, one) == 0 &&
		   strcmp(one, "cd2eb0837c9b4c962c22d2ff8b5441b7b45805887f051d3"
			       "9bf133b583baf6860") == 0,
	   "digest of the whole: what sha256sum says");
}

int main(void)
{
	int small, other;

	/* First of all: what was opened before belongs to the old mounts. */
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die(EX_OSERR, "cannot have mounts of my own (must be root)");
	dir = tap_dir();
	if (fchdir(dir) < 0 || mkdir("small", 0700) < 0 ||
	    mkdir("other", 0700) < 0 ||
	    mount("tmpfs", "small", "tmpfs", 0, "size=1m") < 0 ||
	    mount("tmpfs", "other", "tmpfs", 0, "size=64m") < 0)
		die(EX_OSERR, "cannot mount a tmpfs");
	catch_stderr();
	small = open_dir(dir, "small");
	other = open_dir(dir, "other");
	test_shapes(dir);
	test_shapes(other);
	test_mode();
	test_refusals();
	test_too_large();
	test_full(small);
	test_make();
	test_clone();
	test_digest();
	close(small);
	close(other);
	umount2("small", MNT_DETACH);
	umount2("other", MNT_DETACH);
	return done();
}
