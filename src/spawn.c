/*
 * spawn.c - children by argv, never by a shell.
 */
#include "ark.h"

#include <errno.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int run_wait(const char *const argv[])
{
	pid_t pid;
	int status;
	int error = posix_spawnp(&pid, argv[0], NULL, NULL,
				 (char *const *)(uintptr_t)argv, environ);

	if (error) {
		errno = error;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
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
