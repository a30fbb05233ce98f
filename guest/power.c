/*
 * power.c - going down: everybody is asked, then told, then the disk is made
 * clean.  At most GRACE_MS pass, and none when all have ended.
 */
#include "guest.h"

#include <errno.h>
#include <signal.h>
#include <sys/reboot.h>
#include <sys/wait.h>

#define GRACE_MS 1000
#define INIT_GRACE_S 8
#define SIG_POWEROFF 38 /* systemd: SIGRTMIN+4, start poweroff.target */

/* Reap until nobody is left or it is late.  All are our descendants, so no
 * child means no process. */
static void wait_all(uint64_t until)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		uint64_t now = clock_ms();
		struct timespec rest;
		pid_t pid = waitpid(-1, NULL, WNOHANG);

		if (pid > 0)
			continue;
		if ((pid < 0 && errno == ECHILD) || now >= until)
			return;
		rest.tv_sec = (time_t)((until - now) / 1000);
		rest.tv_nsec = (long)((until - now) % 1000) * 1000000;
		sigtimedwait(&child, NULL, &rest);
	}
}

void power_off(void)
{
	conns_goodbye();
	if (getpid() == 1) {
		kill(-1, SIGTERM);
		kill(-1, SIGCONT);
		wait_all(clock_ms() + GRACE_MS);
		kill(-1, SIGKILL);
		wait_all(clock_ms() + GRACE_MS);
	} else {
		/* The image's own init stops its services in its order. */
		kill(1, SIG_POWEROFF);
		sleep(INIT_GRACE_S);
	}
	sync();
	disk_close();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
