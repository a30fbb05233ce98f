/*
 * jail.c - the place that a VMM lives in, and the way out of it for us.
 */
#include "jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

int jail_open(const struct proc *vmm, const char *path, int flags)
{
	/* Its root, not ours: a link to /etc/shadow that it leaves there is
	 * not even a link to its own.  The magic link "root" is the one that
	 * has to be followed. */
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	AUTO_CLOSE int proc = proc_dir(vmm);
	AUTO_CLOSE int root = -1;

	if (proc < 0)
		return -1;
	root = openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}
