/*
 * expiry.c - keep the deadline of a sandbox in its slot, and wait for it.
 */
#include "expiry.h"

#include <errno.h>
#include <sys/timerfd.h>

int expiry_record(const struct sandbox *s)
{
	long long ttl;

	if (read_number(s->dir, "ttl", 1, INT32_MAX, &ttl) < 0)
		return errno == ENOENT ? 0 : -1;
	return write_value(s->run, "expires", "%llu",
			   (unsigned long long)boot_ms() +
				   (unsigned long long)ttl * 1000);
}

/* Milliseconds after boot: 0, or -1 and errno. */
static int deadline(const struct sandbox *s, long long *at)
{
	if (s->run >= 0)
		return read_number(s->run, "expires", 1, INT64_MAX, at);
	errno = ENOENT;
	return -1;
}

int expiry_watch(const struct sandbox *s, int *timer)
{
	struct itimerspec when = {.it_value.tv_sec = 0};
	long long at;

	*timer = -1;
	if (deadline(s, &at) < 0)
		return errno == ENOENT ? 0 : -1;
	*timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	if (*timer < 0)
		return -1;
	when.it_value.tv_sec = at / 1000;
	when.it_value.tv_nsec = at % 1000 * 1000000;
	return timerfd_settime(*timer, TFD_TIMER_ABSTIME, &when, NULL);
}

bool expiry_left(const struct sandbox *s, uint64_t *ms)
{
	uint64_t now = boot_ms();
	long long at;

	if (s->state != VM_RUNNING && s->state != VM_PAUSED)
		return false;
	if (deadline(s, &at) < 0)
		return false;
	*ms = (uint64_t)at > now ? (uint64_t)at - now : 0;
	return true;
}
