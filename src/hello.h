/*
 * hello.h - make a guest ready: give it its identity and see an exec work.
 */
#ifndef ARK_HELLO_H
#define ARK_HELLO_H

#include "state.h"

/* A child process that does it, so that the keeper goes on reading the console
 * meanwhile.  It ends with HELLO_OK, HELLO_RETRY (nobody listens yet), or else
 * HELLO_FAILED after a line for people on *report.  The pid, or -1 and errno;
 * *report is owned by the caller. */
enum { HELLO_OK = 0, HELLO_RETRY = 1, HELLO_FAILED = 2 };

pid_t hello_start(const struct sandbox *s, const char *generation, int *report);

#endif
