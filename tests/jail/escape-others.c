/*
 * escape-others.c - sockets and processes of others, and what it could become.
 */
#include "escape.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

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
	struct iovec local = {&byte, 1}, remote = {&byte, 1};

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

/* ---- all of them -------------------------------------------------------- */

const struct attempt other_attempts[] = {
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
	{"tcp-listen", tcp_listen},
	{NULL, NULL},
};
