/*
 * info.h - all that is known of a sandbox, for people and for programs.
 */
#ifndef ARK_INFO_H
#define ARK_INFO_H

#include "state.h"

#include <jansson.h>

/* The object that `ark ps --json` and `ark inspect` print (ark-state(5)), with
 * what it uses (usage.h); a new reference, or NULL when there is no memory. */
json_t *info_json(const struct sandbox *s, unsigned usage);

/* What holds its VMM, read back from the kernel (ark-state(5)); a new
 * reference, or NULL when no VMM runs. */
json_t *info_jail(const struct sandbox *s);

/* What has gone through its devices (ark-state(5)), for which its VMM is
 * asked; a new reference, or NULL when that one has no answer. */
json_t *info_counters(const struct sandbox *s);

/* "running", "starting", "dead(REASON)" ... as people read it. */
void info_state(const struct sandbox *s, char *out, size_t size);

/* "kvm", "none (tcg)", or "-" when it does not run. */
void info_isolation(const struct sandbox *s, char *out, size_t size);

#endif
