/*
 * system.c - what a userland expects to find in its root.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const struct {
	const char *path, *type, *options;
	unsigned long flags;
	mode_t mode;
} mounts[] = {
	{"/run", "tmpfs", "mode=0755", MS_NOSUID | MS_NODEV, 0755},
	{"/dev/pts", "devpts", "gid=5,mode=620,ptmxmode=666",
	 MS_NOSUID | MS_NOEXEC, 0755},
	{"/dev/shm", "tmpfs", "mode=1777", MS_NOSUID | MS_NODEV, 01777},
};

static const char *const links[][2] = {
	{"/proc/self/fd", "/dev/fd"},
	{"/proc/self/fd/0", "/dev/stdin"},
	{"/proc/self/fd/1", "/dev/stdout"},
	{"/proc/self/fd/2", "/dev/stderr"},
};

int write_file(const char *path, mode_t mode, const char *text, size_t len)
{
	char temporary[256];
	AUTO_CLOSE int fd = -1;

	snprintf(temporary, sizeof(temporary), "%s.ark", path);
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0)
		return -1;
	if (write(fd, text, len) == (ssize_t)len && fchmod(fd, mode) == 0 &&
	    rename(temporary, path) == 0)
		return 0;
	unlink(temporary);
	return -1;
}

static void write_resolv_conf(void)
{
	static const char text[] = "nameserver " GATEWAY_ADDRESS "\n";

	mkdir("/etc", 0755);
	if (write_file("/etc/resolv.conf", 0644, text, sizeof(text) - 1) < 0)
		say("no /etc/resolv.conf: %s", strerror(errno));
}

void system_mounts(void)
{
	/* The disk, not memory: what runs here writes large files there. */
	if (mkdir("/tmp", 01777) == 0)
		chmod("/tmp", 01777);
	for (size_t i = 0; i < ARRAY_LEN(mounts); i++) {
		mkdir(mounts[i].path, mounts[i].mode);
		if (mount(mounts[i].type, mounts[i].path, mounts[i].type,
			  mounts[i].flags, mounts[i].options) < 0)
			fatal("cannot mount '%s': %s", mounts[i].path,
			      strerror(errno));
	}
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (symlink(links[i][0], links[i][1]) < 0 && errno != EEXIST)
			say("no '%s': %s", links[i][1], strerror(errno));
	write_resolv_conf();
}
