/*
 * spawn.c - children by argv, never by a shell.
 *
 * What a child is fed and what it says are files in memory, not pipes: nobody
 * has to read while another writes, however long the text is.
 */
#include "ark.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int await(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int run_wait(const char *const argv[])
{
	pid_t pid;
	int error = posix_spawnp(&pid, argv[0], NULL, NULL,
				 (char *const *)(uintptr_t)argv, environ);

	if (error) {
		errno = error;
		return -1;
	}
	return await(pid);
}

/* Everything that was written to a file in memory, as a string. */
static char *contents(int fd)
{
	struct stat st;
	char *text;
	ssize_t n;

	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return NULL;
	n = read_full(fd, text, (size_t)st.st_size);
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static int memory_file(const char *text)
{
	AUTO_CLOSE int fd = memfd_create("ark-text", MFD_CLOEXEC);

	if (fd < 0 || write_full(fd, text, strlen(text)) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return steal_fd(&fd);
}

NORETURN static void become(const struct run *r, int in, int out, int err)
{
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(EX_OSERR);
	if (r->netns > 0 && setns(r->netns, CLONE_NEWNET) < 0) {
		dprintf(2, "cannot enter its network namespace: %s\n",
			strerror(errno));
		_exit(EX_OSERR);
	}
	if (r->environment)
		putenv((char *)(uintptr_t)r->environment);
	execvp(r->argv[0], (char *const *)(uintptr_t)r->argv);
	dprintf(2, "cannot run it: %s\n", strerror(errno));
	_exit(EX_NOT_FOUND);
}

/* The first line that says something. */
static void first_line(struct run *r, int err)
{
	AUTO_FREE char *text = contents(err);
	char *line = text ? text + strspn(text, "\n") : NULL;

	if (!line)
		return;
	line[strcspn(line, "\n")] = '\0';
	printable(r->errors, sizeof(r->errors), line);
}

int run_text(struct run *r)
{
	AUTO_CLOSE int in = r->text ? memory_file(r->text)
				    : open("/dev/null", O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int out = memory_file("");
	AUTO_CLOSE int err = memory_file("");
	pid_t pid;
	int code;

	r->errors[0] = '\0';
	if (in < 0 || out < 0 || err < 0)
		return -1;
	pid = fork();
	if (pid == 0)
		become(r, in, out, err);
	code = pid < 0 ? -1 : await(pid);
	if (code < 0)
		return -1;
	first_line(r, err);
	if (!r->output)
		return code;
	*r->output = contents(out);
	return *r->output ? code : -1;
}

const char *sibling(const char *command)
{
	static char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	if (len < 0)
		return command;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return command;
	snprintf(slash + 1, sizeof(path) - (size_t)(slash + 1 - path), "%s",
		 command);
	return path;
}
