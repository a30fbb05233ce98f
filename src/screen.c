/*
 * screen.c - the terminal, taken and given back.
 *
 * While it is taken, all signals that a user sends are blocked and read from a
 * descriptor: whatever they ask for is done with the terminal as it was, and
 * by the signal itself, so that the shell is told the truth.
 */
#include "screen.h"
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

static struct {
	bool taken;
	bool keys; /* stdin is a terminal */
	int signals;
	char *text; /* what is shown; owned */
} screen = {.signals = -1};

/* ---- what is sent to it --------------------------------------------------
 */

/* Another screen, no cursor, no wrapping of lines that are wider than thought;
 * and back. */
#define TAKE "\033[?1049h\033[?25l\033[?7l"
#define GIVE "\033[?7h\033[?25h\033[?1049l"

/* Nobody is left to tell when the terminal has gone. */
static void put(const char *text, size_t len)
{
	(void)!write_full(STDOUT_FILENO, text, len);
}

static void print_line(FILE *out, const char *text, size_t len, size_t columns)
{
	/* Before the text: behind a line that fills the window the cursor is
	 * on its last character. */
	fputs("\033[K", out);
	for (size_t i = 0; i < len; i++) {
		/* Bytes that continue a character take no room. */
		if ((text[i] & 0xc0) != 0x80 && columns-- == 0)
			break;
		putc(text[i], out);
	}
}

void screen_print(FILE *out, const char *text, size_t rows, size_t columns)
{
	size_t row;

	fputs("\033[H", out);
	for (row = 0; row < rows && *text; row++) {
		size_t len = strcspn(text, "\n");

		if (row > 0)
			fputs("\r\n", out);
		print_line(out, text, len, columns);
		text += len + (text[len] == '\n');
	}
	if (row < rows)
		fputs(row > 0 ? "\r\n\033[J" : "\033[J", out);
}

static void show(void)
{
	unsigned char size[4];
	AUTO_FREE char *bytes = NULL;
	size_t len, rows = 24, columns = 80;
	FILE *out = open_memstream(&bytes, &len);

	if (!out)
		return;
	if (tty_size(STDOUT_FILENO, size)) {
		rows = get_u16(size);
		columns = get_u16(size + 2);
	}
	screen_print(out, screen.text ? screen.text : "", rows, columns);
	/* One write: no half picture is ever seen. */
	if (fclose(out) == 0)
		put(bytes, len);
}

void screen_show(const char *text)
{
	free(screen.text);
	screen.text = strdup(text);
	show();
}

/* ---- taken and given back ------------------------------------------------
 */

static int take(void)
{
	if (screen.keys && tty_raw(STDIN_FILENO) < 0)
		return -1;
	screen.taken = true;
	put(TAKE, strlen(TAKE));
	return 0;
}

void screen_close(void)
{
	if (!screen.taken)
		return;
	screen.taken = false;
	put(GIVE, strlen(GIVE));
	tty_restore();
}

static void watched(sigset_t *set)
{
	static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,
				      SIGQUIT, SIGTSTP, SIGWINCH};

	sigemptyset(set);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaddset(set, signals[i]);
}

int screen_open(void)
{
	sigset_t set;

	watched(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	screen.signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (screen.signals < 0 || atexit(screen_close) != 0)
		return -1;
	screen.keys = isatty(STDIN_FILENO);
	return take();
}

/* ---- what its user wants -------------------------------------------------
 */

static void end_by(int signal)
{
	sigset_t set;

	screen_close();
	watched(&set);
	raise(signal);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	exit(128 + signal); /* it was ignored when we were started */
}

static void stop(void)
{
	screen_close();
	raise(SIGSTOP);
	/* Later. */
	if (take() == 0)
		show();
}

static void do_signal(int signal)
{
	switch (signal) {
	case SIGWINCH:
		show();
		break;
	case SIGTSTP:
		stop();
		break;
	default:
		end_by(signal);
	}
}

/* A terminal in raw mode makes no signals: what it would make them of comes as
 * bytes.  False: the end. */
static bool do_key(void)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1)
		return false;
	switch (key) {
	case 'c' & 0x1f:
		do_signal(SIGINT);
		break;
	case 'z' & 0x1f:
		do_signal(SIGTSTP);
		break;
	case '\\' & 0x1f:
		do_signal(SIGQUIT);
		break;
	default:
		break;
	}
	return key != 'q' && key != 'Q';
}

bool screen_wait(uint64_t until)
{
	struct pollfd p[] = {
		{.fd = screen.signals, .events = POLLIN},
		{.fd = screen.keys ? STDIN_FILENO : -1, .events = POLLIN},
	};

	for (;;) {
		uint64_t now = now_ms();
		struct signalfd_siginfo info;
		int n;

		if (now >= until)
			return true;
		n = poll(p, ARRAY_LEN(p), (int)(until - now));
		if (n < 0 && errno != EINTR)
			return false;
		if (n <= 0)
			continue;
		if (p[0].revents &&
		    read(screen.signals, &info, sizeof(info)) == sizeof(info))
			do_signal((int)info.ssi_signo);
		if (p[1].revents && !do_key())
			return false;
	}
}
