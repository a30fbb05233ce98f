/*
 * ch.h - the pure parts of the Cloud Hypervisor driver: what is said to it,
 * and what its bytes mean.  Source of all of it: vmm/src/vm_config.rs,
 * vmm/src/vm.rs, vmm/src/memory_manager.rs and event_monitor/ of Cloud
 * Hypervisor v51.2 to v53.0.
 */
#ifndef ARK_CH_H
#define ARK_CH_H

#include "vmm.h"

/* Places in the jail that both sides know. */
#define CH_RESTORE "/run/restore"
#define CH_SAVE "/run/save"
#define CH_VSOCK "/run/vsock"
#define CH_VSOCK_CID 3

/* The configuration of a VM, for vm.create and as config.json of a restore:
 * JSON that depends on vCPUs, memory and plan->restore alone.  Owned by the
 * caller. */
char *ch_config(const struct vmm_plan *plan);

/* Take the list of memory that would be read back out of the text of a
 * state.json, in place: the memory is mapped instead.  NULL, or what is wrong
 * with the text, which a VMM has written. */
const char *ch_seal_state(char *text, size_t *len);

/* "53.0.0" out of "cloud-hypervisor v53.0", "v53.0-12-gabc" or "53.0.0"; false
 * when it is no version. */
bool ch_version_of(const char *text, char *version, size_t size);

/* NULL, or why a version is not used, to be read after "version X ". */
const char *ch_version_refused(const char *version);

/* NULL, or what an accepted version lacks. */
const char *ch_version_lacks(const char *version);

/* The reply to vm.counters; false when it is none. */
bool ch_counters(const char *text, size_t len, struct vmm_counters *c);

/* Is there one on this host that can be used with `accel`?  Nothing is told but
 * that a program does not answer. */
bool ch_usable(enum accel accel);

/* ---- events ------------------------------------------------------------- */

#define CH_EVENT_MAX ((size_t)4096) /* an atomic write to a pipe */

struct ch_events {
	size_t len;
	char buf[CH_EVENT_MAX];
};

/* Add bytes of the stream, as many as there is room for: how many. */
size_t ch_events_feed(struct ch_events *e, const char *data, size_t len);

/* The next event that says something, EVENT_NONE when more bytes are needed.
 * What is no event is skipped: the pipe may have been full in the middle of
 * one. */
enum vmm_event ch_events_next(struct ch_events *e);

#endif
