/*
 * hello.c - the first words with a guest, fail closed.
 *
 * 1. Identity: generation, entropy and wall clock of the host, hostname.  The
 *    agent refuses every exec until it has confirmed all of it.
 * 2. An exec through the whole way that users' commands take.  Only when it
 *    has worked does the keeper write the generation into the slot, and only
 *    with that file do ark's commands talk to the agent: ready is something
 *    that was seen, not something that was hoped.
 */
#include "agent.h"
#include "hello.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <uuid/uuid.h>

/* Of a guest on a busy host; whoever sees on its console that it listens does
 * not wait for the end of this. */
#define CONNECT_MS 5000
#define ANSWER_SECONDS 60

static int open_agent(const struct sandbox *s, enum op op,
		      const unsigned char *generation)
{
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	AUTO_CLOSE int fd = agent_connect(s, CONNECT_MS);

	if (fd < 0)
		return -1;
	/* The other side is a guest: it must not hold us for ever. */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (agent_hello(fd, op, generation) < 0)
		return -1;
	return steal_fd(&fd);
}

static int send_identity(int fd, const char *name,
			 const unsigned char *generation)
{
	unsigned char seed[SEED_LEN];
	struct timespec now;

	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed) ||
	    frame_send(fd, FRAME_GENERATION, generation, GENERATION_LEN) < 0 ||
	    frame_send(fd, FRAME_SEED, seed, sizeof(seed)) < 0 ||
	    frame_send_text(fd, FRAME_HOSTNAME, name) < 0)
		return -1;
	clock_gettime(CLOCK_REALTIME, &now);
	if (frame_send_u64(fd, FRAME_TIME,
			   (uint64_t)now.tv_sec * 1000000000 +
				   (uint64_t)now.tv_nsec) < 0)
		return -1;
	return frame_send(fd, FRAME_GO, NULL, 0);
}

NORETURN static void failed(int report, const char *step, const char *why)
{
	dprintf(report, "%s: %s", step, why);
	_exit(HELLO_FAILED);
}

static void confirm(int fd, int report, const char *step)
{
	char why[400];
	int code = agent_finish(fd, why, sizeof(why));

	if (code > 0)
		snprintf(why, sizeof(why), "exit code %d", code);
	if (code != 0)
		failed(report, step, why);
	close(fd);
}

NORETURN static void say_hello(const struct sandbox *s,
			       const char *generation_text, int report)
{
	uuid_t generation;
	int fd;

	uuid_parse(generation_text, generation);
	fd = open_agent(s, OP_IDENTITY, generation);
	if (fd < 0)
		_exit(HELLO_RETRY);
	if (send_identity(fd, s->name, generation) < 0)
		_exit(HELLO_RETRY);
	confirm(fd, report, "guest refused its identity");

	fd = open_agent(s, OP_EXEC, generation);
	if (fd < 0 ||
	    frame_send_u32(fd, FRAME_FLAGS, EXEC_PROBE | EXEC_NO_STDIN) < 0 ||
	    frame_send(fd, FRAME_GO, NULL, 0) < 0)
		failed(report, "first exec failed", strerror(errno));
	confirm(fd, report, "first exec failed");
	_exit(HELLO_OK);
}

pid_t hello_start(const struct sandbox *s, const char *generation, int *report)
{
	int ends[2];
	pid_t pid, self = getpid();

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		die_with(self);
		say_hello(s, generation, ends[1]);
	}
	close(ends[1]);
	*report = ends[0];
	if (pid < 0)
		close(ends[0]);
	return pid;
}
