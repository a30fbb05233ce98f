/*
 * logs.c - print the console log of a sandbox, and follow it.
 *
 * The bytes are a guest's.  On a terminal its control bytes are shown as '?';
 * into a pipe or a file they go as they are.
 */
#include "life.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

static void tame(char *data, ssize_t len)
{
	for (ssize_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)data[i];

		if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') ||
		    c == 0x7f || (c >= 0x80 && c < 0xa0))
			data[i] = '?';
	}
}

/* Everything from where the descriptor stands to its end. */
static int print_rest(int fd)
{
	static int terminal = -1;
	char data[32768];
	ssize_t n;

	if (terminal < 0)
		terminal = isatty(STDOUT_FILENO);
	while ((n = read(fd, data, sizeof(data))) > 0) {
		if (terminal)
			tame(data, n);
		if (write_full(STDOUT_FILENO, data, (size_t)n) == 0)
			continue;
		return errno == EPIPE
			       ? -EX_IOERR
			       : fail_errno(EX_IOERR, "cannot write to stdout");
	}
	return n < 0 ? fail_errno(EX_IOERR, "cannot read the console log") : 0;
}

static int open_log(const struct sandbox *s)
{
	return openat(s->dir, "console.log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
}

/* Has the log been cut, so that another file has the name now? */
static bool replaced(const struct sandbox *s, int fd)
{
	struct stat by_name, by_fd;

	return fstatat(s->dir, "console.log", &by_name, AT_SYMLINK_NOFOLLOW) ==
		       0 &&
	       fstat(fd, &by_fd) == 0 && by_name.st_ino != by_fd.st_ino;
}

static int watch_folder(const struct sandbox *s)
{
	char path[32];
	AUTO_CLOSE int notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", s->dir);
	if (notify < 0 ||
	    inotify_add_watch(notify, path,
			      IN_MODIFY | IN_MOVED_TO | IN_CREATE) < 0)
		return -1;
	return steal_fd(&notify);
}

/* Print what is there, from a cut log as well; *fd is the file to go on in. */
static int catch_up(const struct sandbox *s, int *fd)
{
	int r = *fd < 0 ? 0 : print_rest(*fd);
	int fresh;

	if (r < 0 || (*fd >= 0 && !replaced(s, *fd)))
		return r;
	fresh = open_log(s);
	if (fresh < 0)
		return 0;
	if (*fd >= 0) {
		struct stat st;

		/* The newer half, which had been printed already. */
		close(*fd);
		if (fstat(fresh, &st) == 0)
			lseek(fresh, st.st_size, SEEK_SET);
	}
	*fd = fresh;
	return print_rest(fresh);
}

static int follow_log(struct sandbox *s, int *fd)
{
	AUTO_CLOSE int notify = watch_folder(s);
	struct proc keeper;
	AUTO_CLOSE int end = -1;
	char drain[4096];
	int r = 0;

	if (notify < 0)
		return fail_errno(EX_OSERR, "cannot watch the console log");
	if (s->run >= 0 && proc_read(s->run, "keeper", &keeper) == 0)
		end = proc_pidfd(&keeper);
	while (r == 0) {
		struct pollfd p[] = {
			{.fd = notify, .events = POLLIN},
			{.fd = end, .events = POLLIN},
			/* Whoever reads us may go away while nothing comes. */
			{.fd = STDOUT_FILENO, .events = 0},
		};

		r = catch_up(s, fd);
		if (r < 0 || end < 0)
			return r;
		if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
			return fail_errno(EX_OSERR, "cannot wait");
		if (p[1].revents)
			return catch_up(s, fd);
		if (p[2].revents & POLLERR)
			return -EX_IOERR;
		while (read(notify, drain, sizeof(drain)) > 0)
			;
	}
	return r;
}

int vm_logs(struct sandbox *s, bool follow)
{
	AUTO_CLOSE int fd = open_log(s);

	if (fd < 0 && errno != ENOENT)
		return fail_errno(EX_IOERR,
				  "cannot open the console log of "
				  "'%s'",
				  s->name);
	if (follow)
		return follow_log(s, &fd);
	return fd < 0 ? 0 : print_rest(fd);
}
