/*
 * vmm-version.c - which VMM this host has, without asking it every time: the
 * question takes as long as a restore.
 */
#include "vmm-version.h"

#include <sys/stat.h>

static int ask(const char *program, version_of *of, char *version, size_t size)
{
	const char *const argv[] = {program, "--version", NULL};
	AUTO_FREE char *output = NULL;
	struct run run = {.argv = argv, .output = &output};

	if (run_text(&run) != 0 || !output || !of(output, version, size))
		return fail(EX_UNAVAILABLE, "cannot tell the version of %s",
			    program);
	return 0;
}

/* The cache names the program by what changes when it is replaced. */
int vmm_version(const char *program, version_of *of, const char *cache,
		char *version, size_t size)
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
	if (read_value(run, cache, known, sizeof(known)) > 0 &&
	    strncmp(known, line, len) == 0) {
		snprintf(version, size, "%s", known + len);
		return 0;
	}
	r = ask(program, of, version, size);
	if (r == 0)
		write_value(run, cache, "%s%s", line, version);
	return r;
}
