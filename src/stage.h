/*
 * stage.h - where something is put together before it gets its name.
 *
 * A stage is a directory ".NAME.PID.tmp" in the folder (vm, image) that the
 * thing is going to live in: no thing can have such a name.  Whoever works in
 * it holds flock on it, so what can be locked is what a crash left.  Making a
 * stage and locking it happens under flock on the folder, as does the sweep:
 * a sweep meets none between the two.
 */
#ifndef ARK_STAGE_H
#define ARK_STAGE_H

#include "ark.h"

#define STAGE_NAME_MAX (NAME_MAX_LEN + 32)

/* The name of this process' stage for `name`. */
void stage_name(const char *name, char temp[STAGE_NAME_MAX]);

/* Make it and lock it: a directory that the caller owns, the lock lives as
 * long as it; -1 and errno. */
int stage_make(int folder, const char *name, char temp[STAGE_NAME_MAX]);

/* Remove every stage of ARK_ROOT/FOLDER that nobody holds, printing a line for
 * each.  0, or the negative exit code, told. */
int stage_sweep(const char *folder);

#endif
