/*
 * spec.h - the options that say how a sandbox is made, shared by the commands
 * that make one.
 */
#ifndef ARK_SPEC_H
#define ARK_SPEC_H

#include "state.h"

/* One option each, from the text that the user typed; one that is bad ends the
 * process with 64 and a line.  spec_publish() adds to spec->ports. */
void spec_cpus(struct sandbox_spec *spec, const char *text);
void spec_memory(struct sandbox_spec *spec, const char *text);
void spec_disk(struct sandbox_spec *spec, const char *text);
void spec_publish(struct sandbox_spec *spec, const char *text);
void spec_policy(struct sandbox_spec *spec, const char *text);
void spec_net_rate(struct sandbox_spec *spec, const char *text);
void spec_io_rate(struct sandbox_spec *spec, const char *text);
void spec_ttl(struct sandbox_spec *spec, const char *text);

#endif
