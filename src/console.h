/*
 * console.h - the console log of a sandbox: at most CONSOLE_MAX bytes, the
 * newest ones, whatever a guest prints.
 */
#ifndef ARK_CONSOLE_H
#define ARK_CONSOLE_H

#include <stddef.h>

#define CONSOLE_MAX (1024u * 1024)

struct console {
	int dir; /* of the sandbox; not owned */
	int fd;
	size_t len;
};

/* Open dir/console.log for appending.  0, or -1 and errno. */
int console_open(struct console *c, int dir);
void console_close(struct console *c);

/* Append; when the cap is reached the older half goes.  -1 and errno when the
 * host's disk is full: the VM goes on, what it said is lost. */
int console_write(struct console *c, const char *data, size_t len);

#endif
