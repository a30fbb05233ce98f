/*
 * console.c - the bounded console log.
 *
 * A guest can print for ever, so the log is cut to its newer half whenever it
 * reaches the cap.  The half is copied to a new file that replaces the old one
 * by rename: a reader has either, and `ark logs -f` notices the new inode.
 */
#include "ark.h"
#include "console.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define LOG "console.log"
#define NEW_LOG ".console.log"

int console_open(struct console *c, int dir)
{
	struct stat st;

	c->dir = dir;
	c->fd = openat(dir, LOG,
		       O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		       0600);
	if (c->fd < 0 || fstat(c->fd, &st) < 0)
		return -1;
	c->len = (size_t)st.st_size;
	return 0;
}

void console_close(struct console *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* Copy the last `keep` bytes into a new file that takes the log's place. */
static int cut(struct console *c, size_t keep)
{
	AUTO_FREE char *half = malloc(keep ? keep : 1);
	ssize_t n;
	AUTO_CLOSE int fd = -1;

	if (!half)
		return -1;
	n = pread(c->fd, half, keep, (off_t)(c->len - keep));
	if (n < 0)
		return -1;
	fd = openat(c->dir, NEW_LOG,
		    O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC |
			    O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return -1;
	if (write_full(fd, half, (size_t)n) < 0 ||
	    renameat(c->dir, NEW_LOG, c->dir, LOG) < 0) {
		int saved = errno;

		unlinkat(c->dir, NEW_LOG, 0);
		errno = saved;
		return -1;
	}
	close(c->fd);
	c->fd = steal_fd(&fd);
	c->len = (size_t)n;
	return 0;
}

int console_write(struct console *c, const char *data, size_t len)
{
	if (c->fd < 0)
		return 0;
	if (len > CONSOLE_MAX / 2) {
		data += len - CONSOLE_MAX / 2;
		len = CONSOLE_MAX / 2;
	}
	if (c->len + len > CONSOLE_MAX) {
		size_t keep =
			c->len < CONSOLE_MAX / 2 ? c->len : CONSOLE_MAX / 2;

		/* No room for a second file: start over rather than grow. */
		if (cut(c, keep) < 0) {
			if (ftruncate(c->fd, 0) < 0)
				return -1;
			c->len = 0;
		}
	}
	if (write_full(c->fd, data, len) < 0)
		return -1;
	c->len += len;
	return 0;
}
