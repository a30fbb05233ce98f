/*
 * escape.h - attempts to get out of a VMM's jail, in tables.
 */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a VMM inherits; vmm.h. */
enum { KERNEL = 3, INITRD, RAM, TAP, CONTROL, EVENTS, BASE, DISK, CONSOLE };

/* Less than 0 and errno: refused.  The tables end with a NULL. */
struct attempt {
	const char *name;
	int (*run)(void);
};

/* How much of something there was. */
struct bound {
	const char *name;
	uint64_t (*run)(void);
};

extern const struct attempt file_attempts[], other_attempts[],
	kernel_attempts[];
extern const struct bound bounds[];

/* The value of a key of what it was told, or "", which no path is. */
const char *given(const char *key);

/* The keeper's, or nobody's. */
pid_t given_pid(void);

int try_open(const char *path, int flags);

#endif
