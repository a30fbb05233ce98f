/*
 * tty.c - raw mode, and back.  A shell whose terminal was left raw is no good
 * to its user, so every way out leads through tty_restore(): exit(3), and the
 * signals that end a process and that nobody else here waits for.
 */
#include "session.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static struct termios cooked;
static volatile sig_atomic_t raw_fd = -1;

void tty_restore(void)
{
	int fd = raw_fd;

	raw_fd = -1;
	if (fd >= 0)
		tcsetattr(fd, TCSADRAIN, &cooked);
}

static void on_fatal(int sig)
{
	tty_restore();
	raise(sig); /* SA_RESETHAND: this time it kills */
}

static void catch_fatal(void)
{
	static const int fatal[] = {SIGSEGV, SIGBUS,  SIGILL,	 SIGFPE,
				    SIGABRT, SIGALRM, SIGVTALRM, SIGPROF,
				    SIGSYS,  SIGTRAP, SIGXCPU,	 SIGXFSZ};
	const struct sigaction action = {
		.sa_handler = on_fatal,
		.sa_flags = (int)SA_RESETHAND,
	};

	for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
		sigaction(fatal[i], &action, NULL);
}

int tty_raw(int fd)
{
	static bool once;
	struct termios raw;

	if (!once) {
		if (tcgetattr(fd, &cooked) < 0)
			return -1;
		once = true;
		atexit(tty_restore);
		catch_fatal();
	}
	raw = cooked;
	cfmakeraw(&raw);
	raw_fd = fd;
	return tcsetattr(fd, TCSADRAIN, &raw);
}

bool tty_size(int fd, unsigned char size[4])
{
	struct winsize w;

	if (ioctl(fd, TIOCGWINSZ, &w) < 0 || w.ws_row == 0 || w.ws_col == 0)
		return false;
	put_u16(size, w.ws_row);
	put_u16(size + 2, w.ws_col);
	return true;
}
