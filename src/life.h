/*
 * life.h - what can be done to the VM of a sandbox.
 *
 * Each takes an open sandbox, does the whole thing and tells what failed; 0 or
 * the negative exit code.
 */
#ifndef ARK_LIFE_H
#define ARK_LIFE_H

#include "keeper.h"

/* What this host starts VMs with: driver and accelerator, a cold start.  0, or
 * the negative exit code, told. */
int vm_choose(struct start *how);

/* Start it that way; state and ram remain the caller's. */
int vm_begin(struct sandbox *s, struct start *how);

/* Start it and return when an exec has worked; -EX_CANTCREAT when it runs. */
int vm_start(struct sandbox *s);

/* Ask the guest to power off, force it after `ms`.  A VM that does not run is
 * fine. */
int vm_stop(struct sandbox *s, uint64_t ms);

/* End the VMM now. */
int vm_kill(struct sandbox *s);

int vm_pause(struct sandbox *s);
int vm_resume(struct sandbox *s);

/* Wait until it does not run any more. */
int vm_wait(struct sandbox *s);

/* Remove the sandbox; one that runs is -EX_CANTCREAT without `force`. */
int vm_remove(struct sandbox *s, bool force);

/* Print the console log; `follow`: go on until the VM ends. */
int vm_logs(struct sandbox *s, bool follow);

#endif
