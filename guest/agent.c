/*
 * agent.c - the loop: one poll(2), no sleep, no thread.
 *
 * Who may ask: the other end must be the gateway's address on eth0 or, over
 * vsock, the host.  The address alone would be enough against users of the
 * guest, who cannot send from it; the listener is bound to eth0 as well, so
 * that nothing that comes over the loopback is ever accepted.
 */
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <linux/vm_sockets.h>

#define BACKLOG 128
#define WATCH_MAX (3 + CONNS_MAX + 5 * (EXECS_MAX + ENDED_MAX))
#ifndef MCL_ONFAULT
#define MCL_ONFAULT 4
#endif

static struct pollfd fds[WATCH_MAX];
static struct {
	ready_fn *ready;
	void *object;
} sources[WATCH_MAX];
static nfds_t watched;
static uint64_t wake;

uint64_t clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void watch(int fd, short events, ready_fn *ready, void *object)
{
	if (watched == WATCH_MAX)
		return;
	fds[watched] = (struct pollfd){.fd = fd, .events = events};
	sources[watched].ready = ready;
	sources[watched].object = object;
	watched++;
}

void wake_at(uint64_t at)
{
	if (at < wake)
		wake = at;
}

static int listen_tcp(void)
{
	static const char device[] = "eth0";
	struct sockaddr_in any = {.sin_family = AF_INET,
				  .sin_port = htons(AGENT_PORT)};
	AUTO_CLOSE int fd =
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
		       sizeof(device)) < 0 ||
	    bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -1;
	return steal_fd(&fd);
}

static int listen_vsock(void)
{
	struct sockaddr_vm any = {.svm_family = AF_VSOCK,
				  .svm_port = AGENT_PORT,
				  .svm_cid = VMADDR_CID_ANY};
	AUTO_CLOSE int fd =
		socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -1;
	return steal_fd(&fd);
}

static bool is_host(const struct sockaddr_storage *peer)
{
	struct sockaddr_in in;
	struct sockaddr_vm vm;

	if (peer->ss_family == AF_VSOCK) {
		memcpy(&vm, peer, sizeof(vm));
		return vm.svm_cid == VMADDR_CID_HOST;
	}
	memcpy(&in, peer, sizeof(in));
	return peer->ss_family == AF_INET &&
	       in.sin_addr.s_addr == inet_addr(GATEWAY_ADDRESS);
}

static void accept_ready(void *object, short revents)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	int one = 1;
	int fd = accept4(*(int *)object, (struct sockaddr *)&peer, &len,
			 SOCK_CLOEXEC);

	(void)revents;
	if (fd < 0)
		return;
	if (!is_host(&peer)) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	conn_new(fd);
}

static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		exec_reaped(pid, status);
		hooks_reaped(pid, status);
	}
}

static void signal_ready(void *object, short revents)
{
	struct signalfd_siginfo info;

	(void)revents;
	while (read(*(int *)object, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD && getpid() == 1)
			power_off();
	reap();
}

/* What init(8)s take as a wish to go down, besides SIGCHLD. */
static int open_signals(void)
{
	static const int wanted[] = {SIGCHLD, SIGTERM, SIGINT,
				     SIGUSR1, SIGUSR2, SIGPWR};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		sigaddset(&set, wanted[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The agent must be the last to feel what runs in the guest: memory in core,
 * no OOM kill, descriptors for all execs at once. */
static void protect(void)
{
	struct rlimit files = {.rlim_cur = 8192, .rlim_max = 524288};

	mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
	write_to(AT_FDCWD, "/proc/self/oom_score_adj", "-1000");
	setrlimit(RLIMIT_NOFILE, &files);
	umask(022);
}

static void turn(void)
{
	uint64_t now = wake == NEVER ? 0 : clock_ms();
	int timeout = wake == NEVER ? -1 : 0;

	if (wake != NEVER && wake > now)
		timeout = wake - now > 60000 ? 60000 : (int)(wake - now) + 1;
	if (poll(fds, watched, timeout) < 0)
		return;
	for (nfds_t i = 0; i < watched; i++)
		if (fds[i].revents)
			sources[i].ready(sources[i].object, fds[i].revents);
}

void agent_main(void)
{
	int signals = open_signals();
	int tcp = listen_tcp(), vsock = listen_vsock();

	if (signals < 0 || (tcp < 0 && vsock < 0))
		fatal("the agent cannot listen: %s", strerror(errno));
	protect();
	say("%s", &AGENT_READY[sizeof("ark: ") - 1]);
	for (;;) {
		watched = 0;
		wake = NEVER;
		watch(signals, POLLIN, signal_ready, &signals);
		if (tcp >= 0 && conn_room())
			watch(tcp, POLLIN, accept_ready, &tcp);
		if (vsock >= 0 && conn_room())
			watch(vsock, POLLIN, accept_ready, &vsock);
		conns_watch();
		execs_watch();
		hooks_watch();
		turn();
		execs_settle();
		hooks_settle();
		conns_settle();
	}
}
