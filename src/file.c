/*
 * file.c - files and directories below a directory descriptor.
 *
 * State is replaced, never edited: a reader sees the old file or the new one,
 * and so does the next boot, because the data is on the disk (fsync) before
 * the name points to it (rename).
 */
#include "ark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>

int write_full(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int pwrite_full(int fd, const void *data, size_t len, off_t at)
{
	const char *from = data;

	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		from += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t read_full(int fd, void *data, size_t len)
{
	char *at = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, at + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t read_file(int dir, const char *name, char *buf, size_t size)
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t len;

	if (fd < 0)
		return -1;
	len = read_full(fd, buf, size);
	if (len < 0)
		return -1;
	if ((size_t)len == size) {
		errno = EFBIG;
		return -1;
	}
	buf[len] = '\0';
	return len;
}

ssize_t read_value(int dir, const char *name, char *buf, size_t size)
{
	ssize_t len = read_file(dir, name, buf, size);

	if (len > 0 && buf[len - 1] == '\n')
		buf[--len] = '\0';
	if (len >= 0 && (strlen(buf) != (size_t)len || strchr(buf, '\n'))) {
		errno = EINVAL;
		return -1;
	}
	return len;
}

int read_number(int dir, const char *name, long long min, long long max,
		long long *out)
{
	char text[32];
	const char *why;

	if (read_value(dir, name, text, sizeof(text)) < 0)
		return -1;
	if (parse_num(text, min, max, out, &why))
		return 0;
	errno = EINVAL;
	return -1;
}

/* Put the text into dir/temp and onto the disk. */
static int write_temp(int dir, const char *temp, const char *text, size_t len)
{
	AUTO_CLOSE int fd = openat(
		dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return -1;
	if (write_full(fd, text, len) < 0 || fsync(fd) < 0)
		return -1;
	return 0;
}

int write_value(int dir, const char *name, const char *fmt, ...)
{
	char temp[NAME_MAX_LEN + 32], text[4096];
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(text, sizeof(text) - 1, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(text) - 1) {
		errno = EFBIG;
		return -1;
	}
	text[len++] = '\n';
	snprintf(temp, sizeof(temp), ".%s.%d", name, (int)getpid());
	if (unlinkat(dir, temp, 0) < 0 && errno != ENOENT)
		return -1;
	if (write_temp(dir, temp, text, (size_t)len) < 0 ||
	    renameat(dir, temp, dir, name) < 0) {
		int saved = errno;

		unlinkat(dir, temp, 0);
		errno = saved;
		return -1;
	}
	return 0;
}

int open_dir(int dir, const char *name)
{
	return openat(dir, name,
		      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int make_dir(const char *path, mode_t mode)
{
	char part[PATH_MAX];
	size_t len = strlen(path);

	if (path[0] != '/' || len >= sizeof(part)) {
		errno = path[0] == '/' ? ENAMETOOLONG : EINVAL;
		return -1;
	}
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Everything below an open directory; `dev` is the file system to stay on. */
static int remove_below(int fd, dev_t dev, int depth)
{
	DIR *stream = fdopendir(fd);
	const struct dirent *entry;
	int result = 0;

	if (!stream) {
		close(fd);
		return -1;
	}
	while ((entry = readdir(stream))) {
		const char *name = entry->d_name;
		struct stat st;
		int below;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
			continue;
		below = depth < 256 ? open_dir(fd, name) : -1;
		if (below < 0) {
			result = -1;
			continue;
		}
		if (fstat(below, &st) < 0 || st.st_dev != dev) {
			close(below);
			errno = EXDEV;
			result = -1;
			continue;
		}
		if (remove_below(below, dev, depth + 1) < 0 ||
		    unlinkat(fd, name, AT_REMOVEDIR) < 0)
			result = -1;
	}
	closedir(stream);
	return result;
}

int remove_tree(int dir, const char *name)
{
	struct stat st;
	int fd;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	fd = open_dir(dir, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(fd, &st) < 0) {
		close(fd);
		return -1;
	}
	if (remove_below(fd, st.st_dev, 0) < 0)
		return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return -1;
	return 0;
}

int lock_file(int fd, int op, unsigned ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t end = now_ms() + ms;

	while (flock(fd, op | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -1;
		if (now_ms() >= end) {
			errno = EWOULDBLOCK;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return 0;
}
