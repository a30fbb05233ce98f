/*
 * disk.c - copy and format disks.
 *
 * 1. A copy is never dense.  Shared blocks (FICLONE) are tried first; without
 *    them only the extents that SEEK_DATA reports are copied.  One
 *    copy_file_range over everything would fill the holes: a sandbox's disk is
 *    8 GiB of which some hundred KiB exist.
 * 2. No program of the host ever reads a file system that a guest wrote: disks
 *    are copied as bytes, truncated, or formatted anew, never checked, resized
 *    or mounted here.  What a guest writes could attack those tools.
 * 3. Features, sizes and ids are spelled out for mkfs, so that /etc/mke2fs.conf
 *    of the host decides nothing: a newer default that the guest's kernel does
 *    not know would be a sandbox that does not boot.
 */
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define CHUNK 65536
#define MIB (1ULL << 20)

static bool all_zero(const char *buf, size_t len)
{
	return buf[0] == 0 && memcmp(buf, buf + 1, len - 1) == 0;
}

/* Bytes [at, end) by read and write.  The target is all hole, so zeros need
 * not be written: a file system without SEEK_DATA calls everything data. */
static int copy_by_hand(int in, int out, off_t at, off_t end)
{
	char buf[CHUNK];

	while (at < end) {
		size_t want = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
		ssize_t n = pread(in, buf, want, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* somebody cut the file short */
		if (n <= 0)
			return -1;
		if (!all_zero(buf, (size_t)n) &&
		    pwrite_full(out, buf, (size_t)n, at) < 0)
			return -1;
		at += n;
	}
	return 0;
}

static bool worth_by_hand(int error)
{
	return error == EXDEV || error == EINVAL || error == ENOSYS ||
	       error == EOPNOTSUPP;
}

/* Bytes [at, end) in the kernel, or by hand where it cannot do that. */
static int copy_extent(int in, int out, off_t at, off_t end)
{
	off_t to = at;

	while (at < end) {
		ssize_t n = copy_file_range(in, &at, out, &to,
					    (size_t)(end - at), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (n < 0 && worth_by_hand(errno)))
			return copy_by_hand(in, out, at, end);
		if (n < 0)
			return -1;
	}
	return 0;
}

static int copy_data(int in, int out, off_t size)
{
	off_t at = 0;

	if (ioctl(out, FICLONE, in) == 0)
		return 0;
	if (ftruncate(out, size) < 0)
		return -1;
	while (at < size) {
		off_t data = lseek(in, at, SEEK_DATA), hole;

		if (data < 0)
			return errno == ENXIO ? 0 : -1;
		hole = lseek(in, data, SEEK_HOLE);
		if (hole < 0)
			return -1;
		if (copy_extent(in, out, data, hole < size ? hole : size) < 0)
			return -1;
		at = hole;
	}
	return 0;
}

/* Tell why a file could not be written, after removing it. */
static int give_up(int dir, const char *name, uint64_t needed)
{
	char size[16];
	int saved = errno;

	unlinkat(dir, name, 0);
	errno = saved;
	if (errno != ENOSPC && errno != EDQUOT)
		return fail_errno(EX_IOERR, "cannot write '%s'", name);
	format_size(size, sizeof(size), needed);
	return fail_errno(EX_IOERR, "cannot write '%s', which needs %s", name,
			  size);
}

/* A new file that nobody else can have open; -1 and errno. */
static int create(int dir, const char *name, mode_t mode)
{
	int fd = openat(dir, name,
			O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);

	/* Not by openat(): a umask would have its say. */
	if (fd >= 0 && fchmod(fd, mode) < 0) {
		unlinkat(dir, name, 0);
		close(fd);
		return -1;
	}
	return fd;
}

int disk_copy(int from_dir, const char *from, int to_dir, const char *to,
	      mode_t mode)
{
	AUTO_CLOSE int out = -1;
	/* O_NONBLOCK: a FIFO of that name must not make us wait. */
	AUTO_CLOSE int in = openat(
		from_dir, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (in < 0 || fstat(in, &st) < 0)
		return fail_errno(errno == ENOENT ? EX_NOINPUT : EX_OSERR,
				  "cannot open '%s'", from);
	if (!S_ISREG(st.st_mode))
		return fail(EX_DATAERR, "'%s' is not a regular file", from);
	out = create(to_dir, to, mode);
	if (out < 0)
		return fail_errno(errno == EEXIST ? EX_CANTCREAT : EX_IOERR,
				  "cannot make '%s'", to);
	if (copy_data(in, out, st.st_size) < 0)
		return give_up(to_dir, to, allocated_bytes(st.st_blocks));
	return 0;
}

/* The child finds the file through our descriptor: there is no path to build,
 * and none that somebody could swap meanwhile. */
static int format(int fd, uint64_t size, struct run *mkfs)
{
	static const char features[] =
		"none,has_journal,ext_attr,resize_inode,dir_index,filetype,"
		"extent,64bit,flex_bg,sparse_super,large_file,huge_file,"
		"dir_nlink,extra_isize,metadata_csum";
	uint64_t journal = size / 16 / MIB;
	char path[64], journal_arg[32], extended[160];
	const char *const argv[] = {
		"mkfs.ext4",
		"-q",
		"-F",
		"-b",
		"4096",
		"-I",
		"256",
		"-i",
		"16384",
		"-m",
		"0",
		"-U",
		"61726b00-6469-736b-8000-000000000001",
		"-J",
		journal_arg,
		"-O",
		features,
		"-E",
		extended,
		path,
		NULL,
	};

	if (journal > 16)
		journal = 16;
	if (journal < 4)
		journal = 4;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), fd);
	snprintf(journal_arg, sizeof(journal_arg), "size=%u",
		 (unsigned)journal);
	/* resize=: room for the descriptors of a file system 128 times as
	 * large, which is what growing it while it is mounted needs; the
	 * default of 1024 times is 4 MB in every copy. */
	snprintf(extended, sizeof(extended),
		 "lazy_itable_init=1,lazy_journal_init=1,nodiscard,"
		 "hash_seed=61726b00-6469-736b-8000-000000000002,resize=%llu",
		 (unsigned long long)size / 4096 * 128);
	mkfs->argv = argv;
	return run_text(mkfs);
}

int disk_make(int dir, const char *name, uint64_t size)
{
	AUTO_CLOSE int fd = create(dir, name, 0600);
	struct run mkfs = {0};
	int code;

	if (fd < 0)
		return fail_errno(errno == EEXIST ? EX_CANTCREAT : EX_IOERR,
				  "cannot make '%s'", name);
	if (ftruncate(fd, (off_t)size) < 0)
		return give_up(dir, name, size);
	code = format(fd, size, &mkfs);
	if (code == 0)
		return 0;
	unlinkat(dir, name, 0);
	if (code < 0 || code == EX_NOT_FOUND)
		return fail(EX_UNAVAILABLE,
			    "cannot run mkfs.ext4 (of e2fsprogs)");
	return fail(EX_IOERR, "cannot format '%s': %s", name,
		    mkfs.errors[0] ? mkfs.errors : "mkfs.ext4 failed");
}

int disk_grow(int dir, const char *name, uint64_t size)
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno(EX_OSERR, "cannot open '%s'", name);
	if (!S_ISREG(st.st_mode))
		return fail(EX_DATAERR, "'%s' is not a regular file", name);
	if (size < (uint64_t)st.st_size)
		return fail(EX_USAGE, "a disk only grows: it has %llu bytes",
			    (unsigned long long)st.st_size);
	if (ftruncate(fd, (off_t)size) < 0)
		return fail_errno(EX_IOERR, "cannot grow '%s'", name);
	return 0;
}

int disk_clone(int image_dir, int vm_dir, uint64_t size)
{
	struct stat st;
	int r;

	if (fstatat(image_dir, "disk", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(EX_NOINPUT, "cannot open the image's disk");
	if (size < (uint64_t)st.st_size)
		return disk_make(vm_dir, "disk", size);
	r = disk_copy(image_dir, "disk", vm_dir, "disk", 0600);
	if (r < 0)
		return r;
	r = disk_grow(vm_dir, "disk", size);
	if (r < 0)
		unlinkat(vm_dir, "disk", 0);
	return r;
}
