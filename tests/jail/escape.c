/*
 * escape.c - a VMM that has been taken over.
 *
 * It runs in the place of the real one, with all that it inherits, and tries to
 * get out.  Each attempt is one line on the console: "refused NAME ERRNO" or
 * "SUCCEEDED NAME"; what is not refused but bounded, "limited NAME NUMBER".
 * What it attacks outside it reads from the file that it got as kernel, a line
 * "KEY VALUE" each.  Asked for its version it is the VMM that it replaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KERNEL = 3, INITRD, RAM, TAP, CONTROL, EVENTS, BASE, DISK, CONSOLE };

#define STACK 65536
#define MIB (1ULL << 20)

/* ---- what it was told --------------------------------------------------- */

static char told[4096];

/* The value of a key, or "": such a path does not exist. */
static const char *given(const char *key)
{
	static char value[512];
	const char *line = told;
	size_t len = strlen(key);

	value[0] = '\0';
	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) == 0 && line[len] == ' ') {
			snprintf(value, sizeof(value), "%.*s",
				 (int)strcspn(line + len + 1, "\n"),
				 line + len + 1);
			break;
		}
	}
	return value;
}

/* Nobody's when it was not told: 0 would be its own. */
static pid_t given_pid(void)
{
	pid_t pid = (pid_t)strtol(given("pid"), NULL, 10);

	return pid ? pid : INT32_MAX;
}

/* ---- files -------------------------------------------------------------- */

static int try_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600);
}

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

/* ---- sockets ------------------------------------------------------------ */

static int connect_unix(const char *name, bool abstract)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t len = strlen(name);

	if (fd < 0 || len + 1 >= sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path + abstract, name, len);
	len += offsetof(struct sockaddr_un, sun_path) + abstract;
	return connect(fd, (struct sockaddr *)&to, (socklen_t)len);
}

static int unix_path(void)
{
	return connect_unix(given("socket"), false);
}

static int unix_abstract(void)
{
	return connect_unix("ark-escape", true);
}

static struct sockaddr_in address(uint32_t host)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)strtoul(given("port"), NULL, 10)),
		.sin_addr.s_addr = htonl(host),
	};
}

static int tcp_host(void)
{
	struct sockaddr_in to = address(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 ? -1 : connect(fd, (struct sockaddr *)&to, sizeof(to));
}

static int tcp_listen(void)
{
	struct sockaddr_in at = address(INADDR_ANY);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	return listen(fd, 1);
}

static int raw_socket(void)
{
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
}

static int packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0);
}

static int netlink_socket(void)
{
	return socket(AF_NETLINK, SOCK_RAW, 0);
}

static int vsock_socket(void)
{
	return socket(AF_VSOCK, SOCK_STREAM, 0);
}

static int inet6_socket(void)
{
	return socket(AF_INET6, SOCK_STREAM, 0);
}

static int alg_socket(void)
{
	return socket(AF_ALG, SOCK_SEQPACKET, 0);
}

/* ---- processes ---------------------------------------------------------- */

static int trace_keeper(void)
{
	return (int)ptrace(PTRACE_ATTACH, given_pid(), NULL, NULL);
}

static int trace_nobody(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int read_keeper(void)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {told, 1};

	return (int)process_vm_readv(given_pid(), &local, 1, &remote, 1, 0);
}

static int signal_keeper(void)
{
	return kill(given_pid(), 0);
}

/* Process 1 is never among "all": only another one would count. */
static int signal_all(void)
{
	return kill(-1, SIGCONT);
}

static int limit_keeper(void)
{
	struct rlimit old;

	return prlimit(given_pid(), RLIMIT_NOFILE, NULL, &old);
}

/* ---- privileges --------------------------------------------------------- */

static int become_root(void)
{
	return setuid(0);
}

static int become_group(void)
{
	gid_t root = 0;

	return (int)syscall(SYS_setgroups, 1, &root);
}

static int exec_own_file(void)
{
	int fd = try_open("/run/program", O_WRONLY | O_CREAT);
	char *const argv[] = {NULL};

	if (fd < 0 || write(fd, "#!/\n", 4) != 4 || fchmod(fd, 04755) < 0)
		return 0; /* no test of what it is for */
	close(fd);
	return execve("/run/program", argv, argv);
}

static int exec_memory(void)
{
	return (int)syscall(SYS_memfd_create, "program", 0);
}

static int make_char_device(void)
{
	return mknod("/run/mem", S_IFCHR | 0666, makedev(1, 1));
}

static int make_block_device(void)
{
	return mknod("/run/disk", S_IFBLK | 0666, makedev(8, 0));
}

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

static int load_module(void)
{
	return (int)syscall(SYS_init_module, told, sizeof(told), "");
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

static const struct attempt {
	const char *name;
	int (*run)(void);
} attempts[] = {
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
	{"unix-path", unix_path},
	{"unix-abstract", unix_abstract},
	{"tcp-host", tcp_host},
	{"raw-socket", raw_socket},
	{"packet-socket", packet_socket},
	{"netlink-socket", netlink_socket},
	{"vsock-socket", vsock_socket},
	{"inet6-socket", inet6_socket},
	{"alg-socket", alg_socket},
	{"trace-keeper", trace_keeper},
	{"trace", trace_nobody},
	{"read-keeper", read_keeper},
	{"signal-keeper", signal_keeper},
	{"signal-all", signal_all},
	{"limit-keeper", limit_keeper},
	{"become-root", become_root},
	{"become-group", become_group},
	{"exec-own-file", exec_own_file},
	{"exec-memory", exec_memory},
	{"char-device", make_char_device},
	{"block-device", make_block_device},
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
	{"module", load_module},
	{"32-bit-gate", old_gate},
	{"shared-memory", shared_memory},
	{"message-queue", message_queue},
	{"tcp-listen", tcp_listen},
	/* Of a clone: the memory that its siblings run on. */
	{"write-ram", write_ram},
	{"map-ram", map_ram},
	{"cut-ram", cut_ram},
	{"punch-ram", punch_ram},
};

static const struct bound {
	const char *name;
	uint64_t (*run)(void);
} bounds[] = {
	{"fill-run", fill_run},
	{"fill-names", fill_names},
	{"grow-disk-mib", grow_disk},
	{"private-memory-mib", private_memory},
	{"shared-mappings-mib", shared_mappings},
	{"processes", processes},
	{"descriptors", descriptors},
};

int main(int argc, char **argv)
{
	const char *version = getenv("ESCAPE_VERSION");
	ssize_t n;

	/* Asked before it is started, and outside of any jail. */
	if (argc == 2 && strcmp(argv[1], "--version") == 0 && version)
		return puts(version) == EOF;
	n = pread(KERNEL, told, sizeof(told) - 1, 0);

	told[n > 0 ? n : 0] = '\0';
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < sizeof(attempts) / sizeof(*attempts); i++) {
		int r = attempts[i].run();

		if (r < 0)
			dprintf(CONSOLE, "refused %s %s\n", attempts[i].name,
				strerrorname_np(errno));
		else
			dprintf(CONSOLE, "SUCCEEDED %s\n", attempts[i].name);
	}
	for (size_t i = 0; i < sizeof(bounds) / sizeof(*bounds); i++)
		dprintf(CONSOLE, "limited %s %llu\n", bounds[i].name,
			(unsigned long long)bounds[i].run());
	dprintf(CONSOLE, "done\n");
	sleep(5);
	return 0;
}
