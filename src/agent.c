/*
 * agent.c - find the agent of a sandbox and ask it.
 *
 * 1. By TCP it is reached inside the sandbox's own network namespace.  That
 *    has no name: it is the VMM's, it lives as long as the VMM, and it is
 *    entered through a pidfd, so it cannot be another sandbox's by accident,
 *    whatever the pid is used for since.
 * 2. By vsock it is reached through a socket that the VMM has made in its jail,
 *    in a directory that the VMM can write to.  So no link in it is followed,
 *    the socket itself is connected to and not its name, and the one who
 *    listens must be that VMM: or we would lend our root to it, to talk to
 *    any socket of the host.
 */
#include "agent.h"
#include "unixsock.h"
#include "vmm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <uuid/uuid.h>

/* ---- TCP ---------------------------------------------------------------- */

static int enter_network(const struct proc *vmm)
{
	AUTO_CLOSE int pidfd = proc_pidfd(vmm);

	if (pidfd < 0)
		return -1;
	return setns(pidfd, CLONE_NEWNET);
}

/* Wait for a connect in progress; 0, or -1 and errno. */
static int await_connect(int fd, unsigned ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0, n;

	do
		n = poll(&poller, 1, (int)ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -1;
	if (n == 0)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -1;
	errno = error;
	return error ? -1 : 0;
}

static int connect_here(unsigned ms)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(AGENT_PORT),
	};
	const int one = 1;
	AUTO_CLOSE int fd = -1;

	inet_pton(AF_INET, GUEST_ADDRESS, &to.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 &&
	    (errno != EINPROGRESS || await_connect(fd, ms) < 0))
		return -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (fcntl(fd, F_SETFL, 0) < 0)
		return -1;
	return steal_fd(&fd);
}

/* There and back: a socket stays where it was made, and this process has other
 * things to do at home (a network to take down, perhaps). */
static int connect_tcp(const struct proc *vmm, unsigned ms)
{
	AUTO_CLOSE int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int fd, saved;

	if (home < 0 || enter_network(vmm) < 0)
		return -1;
	fd = connect_here(ms);
	saved = errno;
	if (setns(home, CLONE_NEWNET) < 0)
		die(EX_OSERR, "cannot leave the network of a sandbox: %s",
		    strerror(errno));
	errno = saved;
	return fd;
}

/* ---- vsock -------------------------------------------------------------- */

static int check_peer(int fd, const struct proc *vmm)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -1;
	if (peer.pid == vmm->pid && proc_alive(vmm))
		return 0;
	errno = EPERM;
	return -1;
}

/* Byte by byte: what comes after the line is the agent's. */
static int read_line(int fd, char *line, size_t size, unsigned ms)
{
	struct pollfd poller = {.fd = fd, .events = POLLIN};
	uint64_t end = now_ms() + ms;

	for (size_t len = 0; len + 1 < size;) {
		uint64_t now = now_ms();
		int n = poll(&poller, 1, now < end ? (int)(end - now) : 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ETIMEDOUT;
		if (n <= 0)
			return -1;
		if (recv(fd, line + len, 1, 0) != 1) {
			errno = ECONNREFUSED; /* nobody listens in the guest */
			return -1;
		}
		if (line[len] == '\n') {
			line[len] = '\0';
			return 0;
		}
		len++;
	}
	errno = EPROTO;
	return -1;
}

/* "CONNECT 1024" is answered with "OK 1073741824", the host's port. */
static int connect_vsock(const struct proc *vmm, const char *path, unsigned ms)
{
	static const char ask[] = "CONNECT " STRING(AGENT_PORT) "\n";
	AUTO_CLOSE int node =
		jail_open(vmm, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	AUTO_CLOSE int fd = -1;
	char line[32];

	if (node < 0)
		return -1;
	fd = unix_connect_node(node, SOCK_STREAM);
	if (fd < 0 || check_peer(fd, vmm) < 0 ||
	    send(fd, ask, sizeof(ask) - 1, MSG_NOSIGNAL) < 0 ||
	    read_line(fd, line, sizeof(line), ms) < 0)
		return -1;
	if (strncmp(line, "OK ", 3) != 0) {
		errno = EPROTO;
		return -1;
	}
	return steal_fd(&fd);
}

int agent_connect(const struct sandbox *s, unsigned ms)
{
	const struct vmm *driver = vmm_of(s);

	if (!driver)
		return -1;
	if (driver->vsock)
		return connect_vsock(&s->vmm, driver->vsock, ms);
	return connect_tcp(&s->vmm, ms);
}

/* ---- requests ----------------------------------------------------------- */

int agent_hello(int fd, enum op op, const unsigned char *generation)
{
	unsigned char hello[4 + 1 + GENERATION_LEN];

	put_u32(hello, PROTO_VERSION);
	hello[4] = (unsigned char)op;
	memcpy(hello + 5, generation, GENERATION_LEN);
	return frame_send(fd, FRAME_HELLO, hello, sizeof(hello));
}

/* A VM without a keeper has nobody who reads its console or records its end:
 * the first command that meets one starts a new one. */
int agent_mend_keeper(const struct sandbox *s)
{
	const char *const argv[] = {sibling("ark-vm"), "adopt", s->name, NULL};

	if (s->keeper_alive)
		return 0;
	if (run_wait(argv) != 0)
		return fail(EX_ARK, "cannot start a keeper for sandbox '%s'",
			    s->name);
	return 0;
}

static int check_runs(const struct sandbox *s)
{
	if (s->state == VM_DEAD)
		return fail(EX_ARK, "sandbox '%s' is dead: %s", s->name,
			    s->reason);
	if (s->state != VM_RUNNING)
		return fail(EX_ARK, "sandbox '%s' is not running: it is %s",
			    s->name, state_word(s));
	if (s->starting)
		return fail(EX_ARK, "sandbox '%s' is still starting", s->name);
	return 0;
}

int agent_generation(const struct sandbox *s,
		     unsigned char generation[GENERATION_LEN])
{
	char text[40];

	if (read_value(s->run, "generation", text, sizeof(text)) < 0)
		return -1;
	if (uuid_parse(text, generation) == 0)
		return 0;
	errno = EINVAL;
	return -1;
}

int agent_open(struct sandbox *s, enum op op)
{
	unsigned char generation[GENERATION_LEN];
	AUTO_CLOSE int fd = -1;
	int r = check_runs(s);

	if (r == 0)
		r = agent_mend_keeper(s);
	if (r < 0)
		return r;
	if (agent_generation(s, generation) < 0)
		return fail(EX_ARK, "sandbox '%s' has no generation", s->name);
	fd = agent_connect(s, 10000);
	if (fd < 0)
		return fail_errno(EX_ARK, "cannot reach the agent of '%s'",
				  s->name);
	if (agent_hello(fd, op, generation) < 0)
		return fail_errno(EX_ARK, "cannot ask the agent of '%s'",
				  s->name);
	return steal_fd(&fd);
}

bool agent_answers(const struct sandbox *s, unsigned ms)
{
	unsigned char generation[GENERATION_LEN];
	AUTO_CLOSE int fd = -1;
	char why[64];

	if (agent_generation(s, generation) < 0)
		return false;
	fd = agent_connect(s, ms);
	return fd >= 0 && agent_hello(fd, OP_PING, generation) == 0 &&
	       frame_send(fd, FRAME_GO, NULL, 0) == 0 &&
	       agent_finish(fd, why, sizeof(why)) == 0;
}

int agent_finish(int fd, char *why, size_t size)
{
	AUTO_FREE struct frame *f = malloc(sizeof(*f));
	const char *text = "connection lost";
	int code = EX_ARK;

	if (!f)
		return fail_errno(EX_OSERR, "cannot read the agent's answer");
	while (frame_recv(fd, f) == 1) {
		if (f->type == FRAME_EXIT && f->len == 12)
			return (int)(get_u32(f->data) & 0xff);
		if (f->type != FRAME_ERROR)
			continue;
		if (f->len >= 4) {
			code = (int)(get_u32(f->data) & 0xff);
			text = (const char *)f->data + 4;
		}
		break;
	}
	if (code == 0)
		code = EX_ARK;
	if (!why)
		return fail(code, "%s", text);
	snprintf(why, size, "%s", text);
	return -code;
}
