/*
 * escape.c - a VMM that has been taken over.
 *
 * It runs in the place of the real one, with all that it inherits, and tries to
 * get out.  Each attempt is one line on the console: "refused NAME ERRNO" or
 * "SUCCEEDED NAME"; what is not refused but bounded, "limited NAME NUMBER".
 * What it attacks outside it reads from the file that it got as kernel, a line
 * "KEY VALUE" each.  Asked for its version it is the VMM that it replaces.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char told[4096];

const char *given(const char *key)
{
	static char value[512];
	const char *line = told;
	size_t len = strlen(key);

	value[0] = '\0';
	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ') {
			snprintf(value, sizeof(value), "%.*s",
				 (int)strcspn(line + len + 1, "\n"),
				 line + len + 1);
			break;
		}
	}
	return value;
}

pid_t given_pid(void)
{
	pid_t pid = (pid_t)strtol(given("pid"), NULL, 10);

	/* 0 would be itself. */
	return pid ? pid : INT32_MAX;
}

int try_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600);
}

static void try_all(const struct attempt *attempt)
{
	for (; attempt->name; attempt++) {
		if (attempt->run() < 0)
			dprintf(CONSOLE, "refused %s %s\n", attempt->name,
				strerrorname_np(errno));
		else
			dprintf(CONSOLE, "SUCCEEDED %s\n", attempt->name);
	}
}

int main(int argc, char **argv)
{
	const char *version = getenv("ESCAPE_VERSION");
	ssize_t n;

	/* Asked before it is started, and outside of any jail. */
	if (argc == 2 && strcmp(argv[1], "--version") == 0 && version)
		return puts(version) == EOF;
	n = pread(KERNEL, told, sizeof(told) - 1, 0);
	told[n > 0 ? n : 0] = '\0';
	signal(SIGXFSZ, SIG_IGN);
	try_all(file_attempts);
	try_all(other_attempts);
	try_all(kernel_attempts);
	for (const struct bound *b = bounds; b->name; b++)
		dprintf(CONSOLE, "limited %s %llu\n", b->name,
			(unsigned long long)b->run());
	dprintf(CONSOLE, "done\n");
	sleep(5);
	return 0;
}
