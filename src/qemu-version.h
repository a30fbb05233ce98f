/*
 * qemu-version.h - which QEMU this host has.
 */
#ifndef ARK_QEMU_VERSION_H
#define ARK_QEMU_VERSION_H

#include "state.h"

/* "7.2.22" of that program: 0, or the negative exit code, told. */
int qemu_version(const char *program, char *version, size_t size);

/* Out of what it prints; pure. */
bool qemu_version_of(const char *text, char *version, size_t size);

#endif
