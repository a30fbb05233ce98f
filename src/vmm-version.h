/*
 * vmm-version.h - which version a VMM's program is of.
 */
#ifndef ARK_VMM_VERSION_H
#define ARK_VMM_VERSION_H

#include "state.h"

/* How to read what a program prints for --version; pure. */
typedef bool version_of(const char *text, char *version, size_t size);

/* "7.2.22" of that program, remembered as ARK_RUN/CACHE: 0, or the negative
 * exit code, told. */
int vmm_version(const char *program, version_of *of, const char *cache,
		char *version, size_t size);

#endif
