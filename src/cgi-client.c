/*
 * cgi-client.c - is the client still there, while it waits for something long?
 *
 * 1. The web server says so by closing its half of our connection (lighttpd's
 *    tcp-fin-propagate).  It does not always: 1.4.69 looks for the end of a
 *    client only when the request had not come whole with its connection.
 * 2. So, once a second, the kernel is asked for the state of the client's own
 *    connection, which the server has told the addresses of (sock_diag(7)).  It
 *    answers with the socket that listens there when that has gone.  Where it
 *    knows neither, because the server is elsewhere, nothing is concluded.
 *
 * A client that closes its half only, and still waits, is taken to be gone.
 */
#include "cgi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LOOK_MS 1000

static struct {
	int netlink; /* -1: nothing can be known */
	struct inet_diag_req_v2 question;
} w = {.netlink = -1};

int client_fd(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) == 0 && S_ISSOCK(st.st_mode)
		       ? STDIN_FILENO
		       : -1;
}

/* TCP_ESTABLISHED and so on; 0: there is no such connection, or no answer. */
static int ask(void)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 question;
	} request = {
		.head = {.nlmsg_len = sizeof(request),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.question = w.question,
	};
	union {
		struct nlmsghdr head;
		char room[4096];
	} reply;
	const struct inet_diag_msg *found = NLMSG_DATA(&reply.head);
	ssize_t n;

	if (send(w.netlink, &request, sizeof(request), 0) < 0)
		return 0;
	n = recv(w.netlink, &reply, sizeof(reply), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*found)) ||
	    reply.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	return found->idiag_state;
}

static bool parse_address(const char *text, unsigned char *family, __be32 *out)
{
	*family = strchr(text, ':') ? AF_INET6 : AF_INET;
	return inet_pton(*family, text, out) == 1;
}

void client_watch(const char *local, uint16_t local_port, const char *remote,
		  uint16_t remote_port)
{
	struct inet_diag_req_v2 *q = &w.question;
	unsigned char family;

	*q = (struct inet_diag_req_v2){
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = ~0U,
		.id = {.idiag_sport = htons(local_port),
		       .idiag_dport = htons(remote_port),
		       .idiag_cookie = {INET_DIAG_NOCOOKIE,
					INET_DIAG_NOCOOKIE}},
	};
	if (!parse_address(local, &q->sdiag_family, q->id.idiag_src) ||
	    !parse_address(remote, &family, q->id.idiag_dst) ||
	    family != q->sdiag_family)
		return;
	w.netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
			   NETLINK_SOCK_DIAG);
	if (w.netlink < 0 || ask() != 0)
		return;
	close(w.netlink);
	w.netlink = -1;
}

static bool is_there(void)
{
	return w.netlink < 0 || ask() == TCP_ESTABLISHED;
}

int client_poll(struct pollfd *p, size_t n, int ms, const sigset_t *mask)
{
	struct pollfd all[CLIENT_POLL_MAX + 1];
	uint64_t end = now_ms() + (uint64_t)(ms < 0 ? 0 : ms);

	memcpy(all, p, n * sizeof(*p));
	all[n] = (struct pollfd){.fd = client_fd(), .events = POLLRDHUP};
	while (true) {
		uint64_t now = now_ms();
		uint64_t left = ms < 0 ? LOOK_MS : now < end ? end - now : 0;
		struct timespec time;
		int ready;

		if (left > LOOK_MS)
			left = LOOK_MS;
		time.tv_sec = (time_t)(left / 1000);
		time.tv_nsec = (long)(left % 1000) * 1000000;
		ready = ppoll(all, n + 1, &time, mask);
		memcpy(p, all, n * sizeof(*p));
		if (ready < 0)
			return -1;
		if (all[n].revents || (ready == 0 && !is_there())) {
			errno = EPIPE;
			return -1;
		}
		if (ready > 0 || (ms >= 0 && now_ms() >= end))
			return ready;
	}
}
