/*
 * cgroup.h - limits of the host on a VMM: one group of cgroup version 2 for
 * each slot.
 *
 * Version 1, no cgroups and missing controllers are tolerated: then there is
 * no group, or fewer limits.  Which of them hold is never remembered but read
 * from the group; ark-doctor says why some do not.
 */
#ifndef ARK_CGROUP_H
#define ARK_CGROUP_H

#include "vmm.h"

#include <jansson.h>

/* Make the empty group of a slot, with all its limits; *group is its directory,
 * owned by the caller, or -1 when this host gives us none.  0, or -1 with the
 * reason: a limit that can be set must be. */
int cgroup_make(const struct sandbox *s, const struct vmm *driver,
		enum accel accel, int *group, char *why, size_t size);

/* Make a child the first that the kernel ends when the host has no memory left.
 * 0, or -1 and errno. */
int oom_first(pid_t pid);

/* Was its VMM ended by the kernel for want of memory?  Then `why` says whose
 * memory that was. */
bool cgroup_oom(const struct sandbox *s, char *why, size_t size);

/* Remove the group of a slot whose VMM has ended; none is fine.  One that
 * something still lives in stays for gc: no sandbox must be kept from being
 * stopped or removed by what somebody has put there. */
void cgroup_remove(int slot);

/* Remove the groups of this ARK_RUN whose slot nobody holds; prints a line for
 * each.  The caller orders starts (admit_lock): no slot appears meanwhile.  0,
 * or the negative exit code, told. */
int cgroup_gc(int run);

/* The limits that hold for a running VMM, read back; null when it is in no
 * group of ours.  A new reference, or NULL without memory. */
json_t *cgroup_json(const struct sandbox *s);

/* Does the limit that --io-rate asks for hold? */
bool cgroup_limits_io(const struct sandbox *s);

/* What the guest's memory and the VMM may take together, in bytes.  Pure. */
uint64_t cgroup_memory(const struct vmm *driver, enum accel accel,
		       uint64_t guest);

#endif
