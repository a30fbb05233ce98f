/*
 * msg.c - messages: one line, one write(2), nothing in it that a guest could
 * use to drive the terminal that shows it.
 */
#include "ark.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>

const char *progname = "ark";

static char last[1100];

const char *last_message(void)
{
	return last;
}

/* Length of the UTF-8 sequence at s, or 0 when it is not a good one: overlong
 * forms, surrogates and what is beyond U+10FFFF are not, nor are the C1
 * controls (U+0080-U+009F), which terminals obey. */
static size_t utf8_len(const unsigned char *s)
{
	static const struct {
		unsigned char first, last; /* range of the first byte */
		unsigned char low, high;   /* range of the second */
		unsigned char len;
	} forms[] = {
		{0xc2, 0xc2, 0xa0, 0xbf, 2}, {0xc3, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};

	for (size_t f = 0; f < ARRAY_LEN(forms); f++) {
		if (s[0] < forms[f].first || s[0] > forms[f].last)
			continue;
		if (s[1] < forms[f].low || s[1] > forms[f].high)
			return 0;
		for (size_t i = 2; i < forms[f].len; i++)
			if ((s[i] & 0xc0) != 0x80)
				return 0;
		return forms[f].len;
	}
	return 0;
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

__attribute__((format(printf, 1, 0))) static void
say(const char *fmt, va_list args, int saved_errno)
{
	char text[1024], line[1200];
	size_t len;

	vsnprintf(text, sizeof(text), fmt, args);
	if (saved_errno) {
		len = strlen(text);
		snprintf(text + len, sizeof(text) - len, ": %s",
			 strerror(saved_errno));
	}
	printable(last, sizeof(last), text);
	len = (size_t)snprintf(line, sizeof(line), "%s: %s\n", progname, last);
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

void die_option(char *const argv[])
{
	die(EX_USAGE, "bad option '%s' (try --help)", argv[optind - 1]);
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
