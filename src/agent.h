/*
 * agent.h - the host's side of ark-proto(7): find the agent of a sandbox and
 * ask it.
 */
#ifndef ARK_AGENT_H
#define ARK_AGENT_H

#include "proto.h"
#include "state.h"

/* Connect to the agent of a running VM: over vsock where its VMM has that, else
 * from within the sandbox's network namespace (that of its VMM).  The agent
 * listens on nothing else.  The socket, or -1 and errno (ETIMEDOUT after
 * `ms`). */
int agent_connect(const struct sandbox *s, unsigned ms);

/* Does it answer a ping within `ms`?  No for one that was never ready. */
bool agent_answers(const struct sandbox *s, unsigned ms);

/* As agent_connect(), for commands: a sandbox that does not run, is paused or
 * is not ready is told and -EX_ARK.  Starts a new keeper when the old one has
 * died.  Sends HELLO with the generation that the slot records. */
int agent_open(struct sandbox *s, enum op op);

/* Start a new keeper when the old one has died: 0, or -EX_ARK, told. */
int agent_mend_keeper(const struct sandbox *s);

/* The generation that the slot records: 0, or -1 and errno. */
int agent_generation(const struct sandbox *s,
		     unsigned char generation[GENERATION_LEN]);

/* Send HELLO. */
int agent_hello(int fd, enum op op, const unsigned char *generation);

/* Wait for the last frame of a request that has no output of its own: the
 * exit code of FRAME_EXIT, or FRAME_ERROR's code, negative, with its text told
 * (or put in `why` when that is not NULL). */
int agent_finish(int fd, char *why, size_t size);

#endif
