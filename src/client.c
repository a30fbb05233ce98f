/*
 * client.c - what ark-exec and ark-cp share.
 */
#include "session.h"

#include <fcntl.h>
#include <sys/stat.h>

#define DEATH_MS 2000 /* for the keeper to write down why the VMM ended */

void client_stdio(void)
{
	int fd;

	/* Not for writing: who has closed our stdout gets an error, as from
	 * any other command, and no silence. */
	do
		fd = open("/dev/null", O_RDONLY); /* NOLINT: inherited */
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void client_active(const struct sandbox *s, int *fd)
{
	if (*fd < 0)
		*fd = openat(s->run, "activity",
			     O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*fd >= 0)
		futimens(*fd, NULL);
}

/* Wait until it is known why the VMM ended; false when it has not. */
static bool await_death(struct sandbox *s)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	uint64_t end = now_ms() + DEATH_MS;
	struct stat st;

	do {
		sandbox_probe(s);
		if (fstat(s->dir, &st) < 0 || st.st_nlink == 0) {
			snprintf(s->reason, sizeof(s->reason), "removed");
			return true;
		}
		if (s->state == VM_DEAD || s->state == VM_STOPPED)
			return true;
		nanosleep(&pause, NULL);
	} while (now_ms() < end);
	return false;
}

void client_loss(struct sandbox *s, char *text, size_t size)
{
	if (await_death(s))
		snprintf(text, size, "sandbox '%s' died: %s", s->name,
			 *s->reason ? s->reason : state_word(s));
	else if (!proc_alive(&s->vmm))
		snprintf(text, size, "sandbox '%s' died: its VMM is gone",
			 s->name);
	else
		snprintf(text, size,
			 "the agent of sandbox '%s' ended the connection",
			 s->name);
}
