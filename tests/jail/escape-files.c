/*
 * escape-files.c - files of the host, of others, and those it shares with
 * others.
 */
#include "escape.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_shadow(void)
{
	return try_open("/etc/shadow", O_RDONLY);
}

static int read_passwd(void)
{
	return try_open("/etc/passwd", O_RDONLY);
}

static int read_other_disk(void)
{
	return try_open(given("disk"), O_RDONLY);
}

static int list_run(void)
{
	return try_open(given("run"), O_RDONLY | O_DIRECTORY);
}

static int list_places(void)
{
	static const char *const places[] = {"/home", "/root",	 "/var", "/sys",
					     "/tmp",  "/boot",	 "/mnt", "/opt",
					     "/bin",  "/dev/shm"};
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(places) / sizeof(*places); i++)
		fd = try_open(places[i], O_RDONLY | O_DIRECTORY);
	return fd;
}

static int climb(void)
{
	if (chdir("../../../../../..") < 0)
		return -1;
	return try_open("etc/shadow", O_RDONLY);
}

static int climb_from_descriptors(void)
{
	char path[64];
	int fd = -1;

	for (int from = 0; fd < 0 && from < 32; from++) {
		fd = openat(from, "..", O_RDONLY | O_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d/../disk", from);
		if (fd < 0)
			fd = try_open(path, O_RDONLY);
		snprintf(path, sizeof(path), "/proc/self/fd/%d/..", from);
		if (fd < 0)
			fd = try_open(path, O_RDONLY | O_DIRECTORY);
	}
	return fd;
}

static int root_of_init(void)
{
	return try_open("/proc/1/root/etc/shadow", O_RDONLY);
}

static int proc_of_keeper(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)given_pid());
	return try_open(path, O_RDONLY);
}

static int proc_sys(void)
{
	return try_open("/proc/sys/kernel/hostname", O_RDONLY);
}

static int proc_write(void)
{
	return try_open("/proc/self/mem", O_RDWR);
}

static int write_root(void)
{
	return try_open("/made", O_WRONLY | O_CREAT);
}

static int write_program(void)
{
	return try_open("/proc/self/exe", O_WRONLY);
}

static int write_dev(void)
{
	return try_open("/dev/made", O_WRONLY | O_CREAT);
}

static int write_restore(void)
{
	return try_open("/run/restore/made", O_WRONLY | O_CREAT);
}

static int move_restore(void)
{
	return rename("/run/restore", "/run/gone");
}

/* ---- what it shares with others ----------------------------------------- */

static int open_again(int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return try_open(path, flags);
}

static int write_kernel(void)
{
	return open_again(KERNEL, O_RDWR);
}

static int write_initrd(void)
{
	return open_again(INITRD, O_RDWR);
}

static int write_base(void)
{
	return open_again(BASE, O_RDWR);
}

static int mode_of_base(void)
{
	return fchmod(BASE, 0666);
}

static int write_ram(void)
{
	int fd = open_again(RAM, O_RDWR);

	return fd < 0 ? -1 : (int)pwrite(fd, "x", 1, 0);
}

static int map_ram(void)
{
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, RAM, 0);

	return at == MAP_FAILED ? -1 : 0;
}

static int cut_ram(void)
{
	return ftruncate(RAM, 4096);
}

static int punch_ram(void)
{
	return fallocate(RAM, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			 4096);
}

/* ---- all of them -------------------------------------------------------- */

const struct attempt file_attempts[] = {
	{"read-shadow", read_shadow},
	{"read-passwd", read_passwd},
	{"read-other-disk", read_other_disk},
	{"list-ark-run", list_run},
	{"list-places", list_places},
	{"climb", climb},
	{"climb-from-descriptors", climb_from_descriptors},
	{"root-of-init", root_of_init},
	{"proc-of-keeper", proc_of_keeper},
	{"proc-sys", proc_sys},
	{"proc-write", proc_write},
	{"write-root", write_root},
	{"write-program", write_program},
	{"write-dev", write_dev},
	{"write-restore", write_restore},
	{"move-restore", move_restore},
	{"write-kernel", write_kernel},
	{"write-initrd", write_initrd},
	{"write-base", write_base},
	{"mode-of-base", mode_of_base},
	{"write-ram", write_ram},
	{"map-ram", map_ram},
	{"cut-ram", cut_ram},
	{"punch-ram", punch_ram},
	{NULL, NULL},
};
