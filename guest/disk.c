/*
 * disk.c - the root: a read-only base, shared by all sandboxes of an image,
 * and the sandbox's own disk over it.
 *
 * 1. Drives are told apart by the serial that the host gave them, never by the
 *    order in which they came up.
 * 2. When the disk is larger than its file system, the guest grows it: the host
 *    must not run a file system tool on what a guest has written.
 * 3. A descriptor of the disk's mount is kept.  After switch_root no path
 *    leads there, and at power off it must be remounted read-only.
 */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define BASE "/base"
#define DISK "/disk"
#define WAIT_MS 10000
#define STEP_MS 5

#define SUPER 1024 /* ext4: where its superblock is, and what of it we read */
#define SUPER_BLOCKS_LO 4
#define SUPER_BLOCK_SIZE 24
#define SUPER_BLOCKS_HI 336
#define EXT4_IOC_RESIZE_FS _IOW('f', 16, uint64_t)

static int mounted = -1;

static bool has_serial(int block, const char *name, const char *serial)
{
	char path[300], text[32];
	AUTO_CLOSE int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%s/serial", name);
	fd = openat(block, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	while (n > 0 && text[n - 1] == '\n')
		n--;
	return n == (ssize_t)strlen(serial) &&
	       memcmp(text, serial, (size_t)n) == 0;
}

/* "/dev/NAME" of the drive with that serial. */
static bool find(char *device, size_t size, const char *serial)
{
	DIR *block = opendir("/sys/block");
	const struct dirent *entry;
	bool found = false;

	while (block && !found && (entry = readdir(block))) {
		found = has_serial(dirfd(block), entry->d_name, serial);
		if (found)
			snprintf(device, size, "/dev/%s", entry->d_name);
	}
	if (block)
		closedir(block);
	return found;
}

static void wait_for(char *device, size_t size, const char *serial)
{
	struct timespec step = {.tv_nsec = STEP_MS * 1000000};

	for (int ms = 0; ms < WAIT_MS; ms += STEP_MS) {
		if (find(device, size, serial))
			return;
		nanosleep(&step, NULL);
	}
	fatal("no drive with serial '%s'", serial);
}

/* How many blocks the file system has and could have; equal when it fills its
 * device or is not understood. */
static void measure(const char *device, uint64_t *has, uint64_t *could)
{
	unsigned char super[SUPER_BLOCKS_HI + 4];
	AUTO_CLOSE int fd = open(device, O_RDONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	unsigned shift;

	*has = *could = 0;
	if (fd < 0 || pread(fd, super, sizeof(super), SUPER) != sizeof(super) ||
	    ioctl(fd, (int)BLKGETSIZE64, &bytes) < 0)
		return;
	shift = get_u32(super + SUPER_BLOCK_SIZE);
	if (shift > 6)
		return;
	*has = get_u32(super + SUPER_BLOCKS_LO) |
	       (uint64_t)get_u32(super + SUPER_BLOCKS_HI) << 32;
	*could = bytes >> (10 + shift);
}

static void mount_disk(void)
{
	uint64_t has, could;
	char device[300];

	wait_for(device, sizeof(device), "ark-disk");
	measure(device, &has, &could);
	/* Unused inode tables are holes, and stay so. */
	if (mount(device, DISK, "ext4", MS_NOATIME, "discard,noinit_itable") <
	    0)
		fatal("cannot mount the disk: %s", strerror(errno));
	mounted = open(DISK, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (could > has && ioctl(mounted, EXT4_IOC_RESIZE_FS, &could) < 0)
		say("the disk does not grow: %s", strerror(errno));
	if ((mkdir(DISK "/upper", 0755) < 0 && errno != EEXIST) ||
	    (mkdir(DISK "/work", 0755) < 0 && errno != EEXIST))
		fatal("cannot write to the disk: %s", strerror(errno));
}

void disk_mount(const char *root, const char *base_type)
{
	char device[300];
	const char *options = strcmp(base_type, "ext4") == 0 ? "noload" : NULL;

	mkdir(BASE, 0755);
	mkdir(DISK, 0755);
	mkdir(root, 0755);
	wait_for(device, sizeof(device), "ark-base");
	if (mount(device, BASE, base_type, MS_RDONLY | MS_NOATIME, options) < 0)
		fatal("cannot mount the base: %s", strerror(errno));
	mount_disk();
	/* redirect_dir: a directory of the base can be renamed. */
	if (mount("overlay", root, "overlay", MS_NOATIME,
		  "lowerdir=" BASE ",upperdir=" DISK "/upper,workdir=" DISK
		  "/work,redirect_dir=on") < 0)
		fatal("cannot mount the root: %s", strerror(errno));
}

void disk_close(void)
{
	char path[32];

	mount(NULL, "/", NULL, MS_REMOUNT | MS_RDONLY, NULL);
	if (mounted < 0)
		return;
	syncfs(mounted);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", mounted);
	mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL);
}
