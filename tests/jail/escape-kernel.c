/*
 * escape-kernel.c - what the kernel would do for it, and how much of it.
 */
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK 65536
#define MIB (1ULL << 20)

/* ---- the kernel --------------------------------------------------------- */

static int mount_tmpfs(void)
{
	return mount("none", "/run/save", "tmpfs", 0, NULL);
}

static int mount_proc(void)
{
	return mount("proc", "/run/save", "proc", 0, NULL);
}

static int remount_root(void)
{
	return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL);
}

static int new_mount_api(void)
{
	return (int)syscall(SYS_fsopen, "tmpfs", 0);
}

static int unmount(void)
{
	return umount2("/proc", MNT_DETACH);
}

static int change_root(void)
{
	return chroot("/run");
}

static int pivot(void)
{
	return (int)syscall(SYS_pivot_root, "/run", "/run/save");
}

static int unshare_user(void)
{
	return unshare(CLONE_NEWUSER);
}

static int unshare_mounts(void)
{
	return unshare(CLONE_NEWNS);
}

static int nothing(void *unused)
{
	(void)unused;
	return 0;
}

static int clone_user(void)
{
	static char stack[STACK];

	return clone(nothing, stack + STACK, CLONE_NEWUSER | SIGCHLD, NULL);
}

static int clone3_user(void)
{
	struct clone_args how = {.flags = CLONE_NEWUSER};
	long pid = syscall(SYS_clone3, &how, sizeof(how));

	if (pid == 0)
		_exit(0);
	return (int)pid;
}

static int enter_namespace(void)
{
	int fd = try_open("/proc/self/ns/net", O_RDONLY);

	return fd < 0 ? -1 : setns(fd, 0);
}

static int handle(void)
{
	struct file_handle *h = calloc(1, sizeof(*h) + 128);

	h->handle_bytes = 8;
	return open_by_handle_at(BASE, h, O_RDONLY);
}

static int load_bpf(void)
{
	union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY,
			       .key_size = 4,
			       .value_size = 4,
			       .max_entries = 1};

	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int perf(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .exclude_kernel = 1,
				       .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static int uffd(void)
{
	return (int)syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}

static int uring(void)
{
	struct io_uring_params params = {0};

	return (int)syscall(SYS_io_uring_setup, 4, &params);
}

static int keyring(void)
{
	return (int)syscall(SYS_keyctl, 0 /* GET_KEYRING_ID */, -3, 0);
}

static int add_a_key(void)
{
	return (int)syscall(SYS_add_key, "user", "ark", "x", 1, -3);
}

static int kernel_log(void)
{
	char log[4096];

	return (int)syscall(SYS_syslog, 3 /* read all */, log, sizeof(log));
}

static int load_module(void)
{
	return (int)syscall(SYS_init_module, "", 0, "");
}

/* Through the 32-bit gate, where the numbers are others: 26 is ptrace, 0 its
 * TRACEME.  The filter kills for it, hence a child. */
static int old_gate(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long r = 26;

		__asm__ volatile("int $0x80" : "+a"(r) : "b"(0) : "memory");
		_exit(r < 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 0;
	errno = EPERM;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static int shared_memory(void)
{
	return shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static int message_queue(void)
{
	return (int)mq_open("/ark", O_RDWR | O_CREAT, 0600, NULL);
}

/* ---- limits ------------------------------------------------------------- */

/* Bytes until /run is full. */
static uint64_t fill_run(void)
{
	static char block[65536];
	int fd = try_open("/run/save/fill", O_WRONLY | O_CREAT | O_TRUNC);
	uint64_t bytes = 0;
	ssize_t n;

	while ((n = write(fd, block, sizeof(block))) > 0 && bytes < 1024 * MIB)
		bytes += (uint64_t)n;
	unlink("/run/save/fill");
	return bytes;
}

static uint64_t fill_names(void)
{
	uint64_t made = 0;
	char path[64];

	for (; made < 100000; made++) {
		snprintf(path, sizeof(path), "/run/save/%d", (int)made);
		if (mkdir(path, 0700) < 0)
			break;
	}
	return made;
}

/* The highest MiB of its disk that it can write. */
static uint64_t grow_disk(void)
{
	uint64_t low = 0, high = 1ULL << 24;

	while (low + 1 < high) {
		uint64_t middle = (low + high) / 2;

		if (pwrite(DISK, "x", 1, (off_t)(middle * MIB)) == 1)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* MiB that can be mapped; nothing of it is touched. */
static uint64_t map_until_full(int how)
{
	const size_t step = 64 * MIB;
	static void *at[4096];
	uint64_t n = 0;

	while (n < 4096) {
		at[n] = mmap(NULL, step, PROT_READ | PROT_WRITE,
			     how | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at[n] == MAP_FAILED)
			break;
		n++;
	}
	for (uint64_t i = 0; i < n; i++)
		munmap(at[i], step);
	return n * 64;
}

static uint64_t private_memory(void)
{
	return map_until_full(MAP_PRIVATE);
}

static uint64_t shared_mappings(void)
{
	return map_until_full(MAP_SHARED);
}

static uint64_t processes(void)
{
	static pid_t child[5000];
	uint64_t n = 0;

	while (n < 5000 && (child[n] = fork()) >= 0) {
		if (child[n] == 0)
			for (;;)
				pause();
		n++;
	}
	for (uint64_t i = 0; i < n; i++)
		kill(child[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return n;
}

static uint64_t descriptors(void)
{
	uint64_t n = 0;

	while (n < 1000000 && dup(CONSOLE) >= 0)
		n++;
	close_range(CONSOLE + 2, ~0U, 0);
	return n;
}

/* ---- all of them -------------------------------------------------------- */

const struct attempt kernel_attempts[] = {
	{"mount-tmpfs", mount_tmpfs},
	{"mount-proc", mount_proc},
	{"remount-root", remount_root},
	{"new-mount-api", new_mount_api},
	{"unmount", unmount},
	{"chroot", change_root},
	{"pivot-root", pivot},
	{"unshare-user", unshare_user},
	{"unshare-mounts", unshare_mounts},
	{"clone-user", clone_user},
	{"clone3-user", clone3_user},
	{"setns", enter_namespace},
	{"handle", handle},
	{"bpf", load_bpf},
	{"perf", perf},
	{"userfaultfd", uffd},
	{"io-uring", uring},
	{"keyring", keyring},
	{"add-key", add_a_key},
	{"kernel-log", kernel_log},
	{"module", load_module},
	{"32-bit-gate", old_gate},
	{"shared-memory", shared_memory},
	{"message-queue", message_queue},
	{NULL, NULL},
};

const struct bound bounds[] = {
	{"fill-run", fill_run},
	{"fill-names", fill_names},
	{"grow-disk-mib", grow_disk},
	{"private-memory-mib", private_memory},
	{"shared-mappings-mib", shared_mappings},
	{"processes", processes},
	{"descriptors", descriptors},
	{NULL, NULL},
};
