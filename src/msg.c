/*
 * msg.c - messages: one line, one write(2), nothing in it that a guest could
 * use to drive the terminal that shows it.
 */
#include "ark.h"

#include <errno.h>
#include <stdarg.h>

const char *progname = "ark";

/* Length of the UTF-8 sequence at s, or 0 when it is not a good one.  The C1
 * controls (U+0080-U+009F) count as bad: terminals obey them. */
static size_t utf8_len(const unsigned char *s)
{
	size_t len = 0;

	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		len = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		len = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		len = 4;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (len == 2 && s[0] == 0xc2 && s[1] < 0xa0)
		return 0;
	return len;
}

void printable(char *out, size_t size, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t used = 0;

	while (*s && used + 5 < size) {
		size_t len = 1;

		if (*s >= 0x80)
			len = utf8_len(s);
		if (len == 0 || *s < 0x20 || *s == 0x7f) {
			out[used++] = '?';
			s++;
			continue;
		}
		memcpy(out + used, s, len);
		used += len;
		s += len;
	}
	out[used] = '\0';
}

static void say(const char *fmt, va_list args, int saved_errno)
{
	char text[1024], line[1200], clean[1100];
	size_t len;

	vsnprintf(text, sizeof(text), fmt, args);
	if (saved_errno) {
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, ": %s",
			 strerror(saved_errno));
	}
	printable(clean, sizeof(clean), text);
	len = (size_t)snprintf(line, sizeof(line), "%s: %s\n", progname, clean);
	if (len >= sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	/* Nobody is left to tell when stderr itself is broken. */
	(void)!write(STDERR_FILENO, line, len);
}

void warn_line(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args, 0);
	va_end(args);
}

int fail(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args, 0);
	va_end(args);
	return -code;
}

int fail_errno(int code, const char *fmt, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, fmt);
	say(fmt, args, saved);
	va_end(args);
	errno = saved;
	return -code;
}

void die(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args, 0);
	va_end(args);
	exit(code);
}

void die_usage(const char *usage)
{
	die(EX_USAGE, "usage: %s (try --help)", usage);
}

int flush_stdout(void)
{
	if (!ferror(stdout) && fflush(stdout) == 0)
		return 0;
	if (errno == EPIPE)
		return -EX_IOERR;
	return fail_errno(EX_IOERR, "cannot write to stdout");
}

int finish(int code)
{
	int flushed = flush_stdout();

	if (code < 0)
		code = -code;
	return code ? code : -flushed;
}
