/*
 * qemu-version.c - which QEMU this host has, without asking it every time: the
 * question takes as long as a restore.
 */
#include "qemu-version.h"

#include <sys/stat.h>

#define CACHE "qemu-version"

/* "QEMU emulator version 7.2.22 (Debian ...": the fourth word. */
bool qemu_version_of(const char *text, char *version, size_t size)
{
	static const char before[] = "QEMU emulator version ";
	size_t len;

	if (strncmp(text, before, sizeof(before) - 1) != 0)
		return false;
	text += sizeof(before) - 1;
	len = strspn(text, "0123456789.");
	if (len == 0 || len >= size)
		return false;
	memcpy(version, text, len);
	version[len] = '\0';
	return true;
}

static int ask(const char *program, char *version, size_t size)
{
	const char *const argv[] = {program, "--version", NULL};
	AUTO_FREE char *output = NULL;
	struct run run = {.argv = argv, .output = &output};

	if (run_text(&run) != 0 || !output ||
	    !qemu_version_of(output, version, size))
		return fail(EX_UNAVAILABLE, "cannot tell the version of %s",
			    program);
	return 0;
}

/* The cache names the program by what changes when it is replaced. */
int qemu_version(const char *program, char *version, size_t size)
{
	char known[512], line[512];
	struct stat st;
	size_t len;
	AUTO_CLOSE int run = run_open(true);
	int r;

	if (run < 0)
		return run;
	if (stat(program, &st) < 0)
		return fail_errno(EX_UNAVAILABLE, "cannot find %s", program);
	snprintf(line, sizeof(line), "%s %lld %lld ", program,
		 (long long)st.st_size, (long long)st.st_mtime);
	len = strlen(line);
	if (read_value(run, CACHE, known, sizeof(known)) > 0 &&
	    strncmp(known, line, len) == 0) {
		snprintf(version, size, "%s", known + len);
		return 0;
	}
	r = ask(program, version, size);
	if (r == 0)
		write_value(run, CACHE, "%s%s", line, version);
	return r;
}
