/*
 * jail.c - the place that a VMM lives in, and the way out of it for us.
 *
 * 1. The namespaces come first and the mounts are made private before any of
 *    ours: nothing of the jail is ever in the host's mount table, and all of it
 *    goes with its last process, however that ends.
 * 2. The new root is mounted over /proc, which every host has and of which
 *    nothing is needed any more.  No directory is made for it.
 * 3. Files and directories of the host are bound one by one: what is not on
 *    the list is not there, instead of being there and forbidden.
 * 4. Devices are nodes of our own and not binds, because the host's /dev/kvm
 *    belongs to a group that no VMM is in, and must not change for one.  So
 *    the root is the one mount without nodev; it is read-only when the VMM
 *    comes, and to make a node takes a capability that it does not have.
 * 5. pivot_root, not chroot: the old root is unmounted, so that there is
 *    nothing to climb back to.
 * 6. A session of its own: a signal to its process group would reach the
 *    keeper's.
 * 7. The host's name and the host's System V and POSIX queues are left behind
 *    with the UTS and IPC namespaces.  There is no user namespace: it would be
 *    one in which the VMM is root, and open the kernel's worst parts to it.
 */
#include "jail.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ROOT_FLAGS (MS_NOSUID | MS_NOEXEC)
#define BIND_FLAGS (MS_RDONLY | MS_NOSUID | MS_NODEV)
#define FILE_PATH_MAX 128

/* Where libraries are.  A way that leads over a link leads to another of these,
 * and the links themselves are made again. */
static const char *const libraries[] = {
	"/lib/x86_64-linux-gnu",
	"/usr/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib64",
	NULL,
};

/* Instead of the first two, on hosts that do not have them. */
static const char *const all_libraries[] = {"/lib", "/usr/lib", NULL};

/* For a program from there. */
static const char *const local_libraries[] = {"/usr/local/lib", NULL};

static const char *const links[] = {"/lib", "/lib64", "/usr/lib64"};

/* ---- what is bound ------------------------------------------------------ */

/* The directories above a path, in the new root, where we are. */
static int make_parents(const char *path)
{
	char part[FILE_PATH_MAX];
	size_t len = strlen(path);

	if (len >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (size_t i = 1; i < len; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path + 1, i - 1);
		part[i - 1] = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

/* Under its own name, read-only.  MS_BIND takes no flags at once; nobody else
 * is in this namespace between the two. */
static int bind_here(const char *path, unsigned long flags)
{
	if (mount(path, path + 1, NULL, MS_BIND, NULL) < 0)
		return -1;
	return mount(NULL, path + 1, NULL, MS_REMOUNT | MS_BIND | flags, NULL);
}

static int bind_file(const char *path, unsigned long flags)
{
	AUTO_CLOSE int place = -1;

	if (make_parents(path) < 0)
		return -1;
	place = open(path + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	return place < 0 ? -1 : bind_here(path, flags);
}

/* Is there a directory of this very name, on no way over a link? */
static bool is_directory(const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	AUTO_CLOSE int fd =
		(int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

	return fd >= 0;
}

static int bind_directories(const char *const *paths, unsigned long flags)
{
	for (; *paths; paths++) {
		if (!is_directory(*paths))
			continue;
		if (make_parents(*paths) < 0 ||
		    (mkdir(*paths + 1, 0755) < 0 && errno != EEXIST) ||
		    bind_here(*paths, flags) < 0)
			return -1;
	}
	return 0;
}

static int copy_links(void)
{
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		char target[FILE_PATH_MAX];
		ssize_t n = readlink(links[i], target, sizeof(target) - 1);

		if (n < 0)
			continue;
		target[n] = '\0';
		if (make_parents(links[i]) < 0 ||
		    symlink(target, links[i] + 1) < 0)
			return -1;
	}
	return 0;
}

/* Does the program ask for an interpreter?  A static one needs no libraries. */
static bool is_dynamic(const char *program)
{
	AUTO_CLOSE int fd = open(program, O_RDONLY | O_CLOEXEC);
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (fd < 0 || read_full(fd, &head, sizeof(head)) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return true;
	for (int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)head.e_phoff + i * head.e_phentsize;

		if (pread(fd, &part, sizeof(part), at) != sizeof(part))
			return true;
		if (part.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static int bind_libraries(const char *program)
{
	bool debian = is_directory("/usr/lib/x86_64-linux-gnu");
	bool local = strncmp(program, "/usr/local/", 11) == 0;

	if (copy_links() < 0 || bind_directories(libraries, BIND_FLAGS) < 0 ||
	    (!debian && bind_directories(all_libraries, BIND_FLAGS) < 0) ||
	    (local && bind_directories(local_libraries, BIND_FLAGS) < 0))
		return -1;
	if (access("/etc/ld.so.cache", R_OK) < 0)
		return 0;
	return bind_file("/etc/ld.so.cache", BIND_FLAGS | MS_NOEXEC);
}

/* ---- what is made ------------------------------------------------------- */

/* A node like the host's; one that is `owned` is for this VMM alone. */
static int make_node(const char *path, bool owned, uid_t uid)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -1;
	if (!S_ISCHR(st.st_mode)) {
		errno = ENODEV;
		return -1;
	}
	if (make_parents(path) < 0 ||
	    mknod(path + 1, S_IFCHR | (owned ? 0600 : 0666), st.st_rdev) < 0)
		return -1;
	return owned ? chown(path + 1, uid, uid) : 0;
}

static int make_devices(const struct jail *j)
{
	if (make_node("/dev/null", false, 0) < 0 ||
	    make_node("/dev/urandom", false, 0) < 0)
		return -1;
	if (j->kvm && make_node("/dev/kvm", true, j->uid) < 0)
		return -1;
	return j->tun ? make_node("/dev/net/tun", true, j->uid) : 0;
}

static int write_file(const struct jail_file *file)
{
	char path[FILE_PATH_MAX];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "run/restore/%s", file->name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	return fd < 0 ? -1 : write_full(fd, file->data, file->len);
}

/* Sticky: its own group may make files there, but not move ours away. */
static int make_run(const struct jail *j)
{
	char options[96];

	snprintf(options, sizeof(options),
		 "mode=1770,gid=%u,size=8M,nr_inodes=64", (unsigned)j->uid);
	if (mkdir("run", 0755) < 0 ||
	    mount("ark-run", "run", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  options) < 0 ||
	    mkdir("run/restore", 0755) < 0 || mkdir("run/save", 0700) < 0 ||
	    chown("run/save", j->uid, j->uid) < 0)
		return -1;
	for (size_t i = 0; i < j->n_files; i++)
		if (write_file(&j->files[i]) < 0)
			return -1;
	return 0;
}

static int make_proc(void)
{
	if (mkdir("proc", 0555) < 0)
		return -1;
	return mount("proc", "proc", "proc",
		     MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
		     "subset=pid");
}

/* ---- in ----------------------------------------------------------------- */

static int make_root(void)
{
	if (setsid() < 0 ||
	    unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
	    sethostname("vmm", 3) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("ark-jail", "/proc", "tmpfs", ROOT_FLAGS,
		  "mode=755,size=1M,nr_inodes=256") < 0)
		return -1;
	return chdir("/proc");
}

/* The old root comes to lie over the new one, at the same place, and is taken
 * off it. */
static int leave_old_root(void)
{
	if (syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -1;
	return mount(NULL, "/", NULL,
		     MS_REMOUNT | MS_BIND | MS_RDONLY | ROOT_FLAGS, NULL);
}

int jail_enter(const struct jail *j, const char **step)
{
	mode_t mask = umask(0);

	*step = "make its mount namespace";
	if (make_root() < 0)
		return -1;
	*step = "bind its program into its jail";
	if (bind_file(j->program, BIND_FLAGS) < 0 ||
	    (is_dynamic(j->program) && bind_libraries(j->program) < 0) ||
	    bind_directories(j->reads, BIND_FLAGS | MS_NOEXEC) < 0)
		return -1;
	*step = "make the devices of its jail";
	if (make_devices(j) < 0)
		return -1;
	*step = "make /run of its jail";
	if (make_run(j) < 0)
		return -1;
	*step = "mount /proc of its jail";
	if (make_proc() < 0)
		return -1;
	*step = "leave the host's root";
	if (leave_old_root() < 0)
		return -1;
	umask(mask);
	return 0;
}

/* ---- from outside ------------------------------------------------------- */

int jail_open(const struct proc *vmm, const char *path, int flags)
{
	/* A link that it leaves there would be followed from our root. */
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
