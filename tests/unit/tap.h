/*
 * tap.h - results of a unit test as TAP, for prove.
 */
#ifndef TAP_H
#define TAP_H

#include "ark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/mman.h>

static int tap_count, tap_failed;

__attribute__((unused))
PRINTF(2, 3) static bool ok(bool good, const char *fmt, ...)
{
	char text[512], clean[520];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	printable(clean, sizeof(clean), text);
	printf("%sok %d - %s\n", good ? "" : "not ", ++tap_count, clean);
	fflush(stdout);
	tap_failed += !good;
	return good;
}

__attribute__((unused)) static bool is_num(long long got, long long want,
					   const char *what)
{
	bool good = ok(got == want, "%s", what);

	if (!good)
		printf("#  got: %lld\n# want: %lld\n", got, want);
	return good;
}

__attribute__((unused)) static bool is_str(const char *got, const char *want,
					   const char *what)
{
	bool good = ok(got && strcmp(got, want) == 0, "%s", what);
	char clean[1024];

	if (!good) {
		printable(clean, sizeof(clean), got ? got : "(null)");
		printf("#  got: '%s'\n# want: '%s'\n", clean, want);
	}
	return good;
}

/* What the code under test says on stderr goes into a file in memory ... */
__attribute__((unused)) static void catch_stderr(void)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
		exit(99);
	close(fd);
}

__attribute__((unused)) static void forget(void)
{
	if (ftruncate(STDERR_FILENO, 0) < 0 ||
	    lseek(STDERR_FILENO, 0, SEEK_SET) < 0)
		exit(99);
}

/* ... and this takes out what it said since the last time: true when that is
 * exactly one line, without control bytes, that holds `text`. */
__attribute__((unused)) static bool told(const char *text)
{
	static char said[8192];
	ssize_t len = pread(STDERR_FILENO, said, sizeof(said) - 1, 0);
	bool good = len > 1;

	said[len > 0 ? len : 0] = '\0';
	forget();
	for (ssize_t i = 0; i < len; i++)
		if ((unsigned char)said[i] < 0x20)
			good &= said[i] == '\n' && i == len - 1;
	good = good && said[len - 1] == '\n' && strstr(said, text);
	if (!good)
		printf("# told: %s\n", len > 0 ? said : "nothing");
	return good;
}

__attribute__((unused)) static bool told_nothing(void)
{
	off_t len = lseek(STDERR_FILENO, 0, SEEK_END);

	if (len > 0)
		told("");
	return len == 0;
}

/* A private directory that is removed at the end; its descriptor. */
static char tap_dir_path[64];

__attribute__((unused)) static void tap_dir_remove(void)
{
	remove_tree(AT_FDCWD, tap_dir_path);
}

__attribute__((unused)) static int tap_dir(void)
{
	snprintf(tap_dir_path, sizeof(tap_dir_path), "/tmp/ark-unit.XXXXXX");
	if (!mkdtemp(tap_dir_path))
		exit(99);
	atexit(tap_dir_remove);
	return open(tap_dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The same, with ARK_ROOT and ARK_RUN below it. */
__attribute__((unused)) static int tap_ark(void)
{
	int dir = tap_dir();
	char path[sizeof(tap_dir_path) + 8];

	snprintf(path, sizeof(path), "%s/root", tap_dir_path);
	setenv("ARK_ROOT", path, 1);
	snprintf(path, sizeof(path), "%s/run", tap_dir_path);
	setenv("ARK_RUN", path, 1);
	return dir;
}

__attribute__((unused)) static void put_file(int dir, const char *name,
					     const char *text, size_t len)
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || write_full(fd, text, len) < 0)
		exit(99);
}

__attribute__((unused)) static void put_link(const char *to, int dir,
					     const char *name)
{
	if (symlinkat(to, dir, name) < 0)
		exit(99);
}

/* `return done()` ends main(). */
static int done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
