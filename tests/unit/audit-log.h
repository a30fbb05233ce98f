/*
 * audit-log.h - a log in a directory of its own, for the tests of it.
 */
#ifndef AUDIT_LOG_H
#define AUDIT_LOG_H

#include "tap.h"

#include "audit-line.h"

#include <sys/stat.h>

static int dir; /* holds root and run */
static char text[1 << 20];

__attribute__((unused)) static void fresh(void)
{
	remove_tree(dir, "root");
	remove_tree(dir, "run");
	mkdirat(dir, "root", 0700);
}

/* One request that ends well. */
__attribute__((unused)) static int record(const char *action,
					  const char *object)
{
	struct audit a = {
		.tenant = "alice",
		.token = "0123456789ab",
		.address = "127.0.0.1",
		.action = action,
		.object = object,
	};
	int r = audit_begin(&a);

	return r < 0 ? r : audit_end(&a, 200);
}

__attribute__((unused)) static size_t read_log(void)
{
	ssize_t len = read_file(dir, "root/audit.log", text, sizeof(text));

	return len < 0 ? 0 : (size_t)len;
}

__attribute__((unused)) static void write_log(size_t len)
{
	put_file(dir, "root/audit.log", text, len);
}

__attribute__((unused)) static long long lines(void)
{
	long long n = 0;

	read_log();
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

/* The line of that number, from 0. */
__attribute__((unused)) static char *line_at(int n)
{
	char *at = text;

	while (n-- > 0)
		at = strchr(at, '\n') + 1;
	return at;
}

__attribute__((unused)) static int verify(struct audit_check *c)
{
	*c = (struct audit_check){0};
	return audit_verify(NULL, 0, c);
}

__attribute__((unused)) static bool good(long long records)
{
	struct audit_check c;
	int r = verify(&c);

	if (r == 0 && c.last == records && c.lines == records && told_nothing())
		return true;
	printf("# verify: %d, last %lld of %lld lines\n", r, c.last, c.lines);
	told("");
	return false;
}

/* Exactly one fault, told with these words. */
__attribute__((unused)) static void found(const char *what, const char *words)
{
	struct audit_check c;
	int r = verify(&c);

	ok(r == -EX_DATAERR && c.faults == 1 && told(words), "%s", what);
	if (c.faults != 1)
		printf("# %u faults\n", c.faults);
}

__attribute__((unused)) static void ten(void)
{
	char object[16];

	fresh();
	for (int i = 1; i <= 10; i++) {
		snprintf(object, sizeof(object), "alice.%02d", i);
		record("start", object);
	}
	read_log();
}

__attribute__((unused)) static void setup(void)
{
	catch_stderr();
	dir = tap_ark();
}

#endif
