/*
 * keeper-sock.c - requests to a keeper and its answers.
 */
#include "keeper-sock.h"
#include "unixsock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SOCK "keeper.sock"

int keeper_sock_open(struct keeper_sock *k, int run)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		k->client[i] = -1;
	k->listener = unix_listen(run, SOCK, SOCK_SEQPACKET);
	if (k->listener < 0)
		return -1;
	return fcntl(k->listener, F_SETFL, O_NONBLOCK);
}

/* "PROTO ADDRESS PORT" as a port; false when it is not that. */
static bool parse_port(const char *text, struct port *port)
{
	char proto[4], address[16], number[8];
	const char *why;
	long long host;
	int end = 0;

	memset(port, 0, sizeof(*port));
	if (sscanf(text, "%3s %15s %7s%n", proto, address, number, &end) != 3 ||
	    text[end])
		return false;
	if (!parse_num(number, 0, 65535, &host, &why))
		return false;
	port->udp = strcmp(proto, "udp") == 0;
	if (!port->udp && strcmp(proto, "tcp") != 0)
		return false;
	memcpy(port->address, address, sizeof(port->address));
	port->host = (uint16_t)host;
	return true;
}

void keeper_answer(struct reservations *r, const char *request, char *answer,
		   size_t size)
{
	struct port port;
	char why[256];

	if (strncmp(request, "reserve ", 8) == 0 &&
	    parse_port(request + 8, &port)) {
		if (reserve(r, &port, why, sizeof(why)) == 0)
			snprintf(answer, size, "ok %u", port.host);
		else
			snprintf(answer, size, "busy %s", why);
	} else if (strncmp(request, "release ", 8) == 0 &&
		   parse_port(request + 8, &port)) {
		unreserve(r, &port);
		snprintf(answer, size, "ok");
	} else {
		snprintf(answer, size, "bad request");
	}
}

static void take_clients(struct keeper_sock *k)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->client[i] < 0)
			k->client[i] = accept4(k->listener, NULL, NULL,
					       SOCK_CLOEXEC | SOCK_NONBLOCK);
}

void keeper_sock_reply(struct keeper_sock *k, size_t client, const char *text)
{
	/* Whoever does not read its answer has none. */
	(void)!send(k->client[client], text, strlen(text), MSG_NOSIGNAL);
}

static void serve_client(struct keeper_sock *k, size_t client,
			 const struct keeper_hooks *hooks)
{
	char request[KEEPER_PACKET], answer[KEEPER_PACKET];
	ssize_t n = recv(k->client[client], request, sizeof(request) - 1, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hooks->release(hooks->data, client);
		close(k->client[client]);
		k->client[client] = -1;
		return;
	}
	request[n] = '\0';
	if (strcmp(request, "hold") == 0) {
		hooks->hold(hooks->data, client);
		return;
	}
	if (strcmp(request, "release") == 0) {
		hooks->release(hooks->data, client);
		snprintf(answer, sizeof(answer), "ok");
	} else {
		keeper_answer(&k->reserved, request, answer, sizeof(answer));
	}
	keeper_sock_reply(k, client, answer);
}

void keeper_sock_serve(struct keeper_sock *k, const struct keeper_hooks *hooks)
{
	for (size_t i = 0; i < KEEPER_CLIENTS; i++)
		if (k->client[i] >= 0)
			serve_client(k, i, hooks);
	take_clients(k);
}

int keeper_connect(const struct sandbox *s)
{
	const struct timeval limit = {.tv_sec = 10};
	AUTO_CLOSE int fd = unix_connect(s->run, SOCK, SOCK_SEQPACKET);

	if (fd < 0)
		return fail_errno(EX_UNAVAILABLE,
				  "keeper of sandbox '%s' does not listen",
				  s->name);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return steal_fd(&fd);
}

int keeper_talk(int fd, const struct sandbox *s, const char *request,
		char *answer, size_t size)
{
	ssize_t n = send(fd, request, strlen(request), MSG_NOSIGNAL);

	if (n > 0)
		n = recv(fd, answer, size - 1, 0);
	if (n <= 0)
		return fail_errno(EX_UNAVAILABLE,
				  "keeper of sandbox '%s' does not answer",
				  s->name);
	answer[n] = '\0';
	return 0;
}

int keeper_ask(const struct sandbox *s, const char *request, char *answer,
	       size_t size)
{
	AUTO_CLOSE int fd = keeper_connect(s);

	return fd < 0 ? fd : keeper_talk(fd, s, request, answer, size);
}
