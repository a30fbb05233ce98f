/*
 * reserve.c - reserve host ports with bound, never listening sockets.
 */
#include "reserve.h"
#include "state.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>

/* Below the range that kernels take ports of outgoing connections from. */
#define FREE_FIRST 20000
#define FREE_COUNT 10000

static int bind_port(const struct port *port)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(port->host),
	};
	AUTO_CLOSE int fd = socket(
		AF_INET, (port->udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC,
		0);

	if (inet_pton(AF_INET, port->address, &at.sin_addr) != 1) {
		errno = EINVAL;
		return -1;
	}
	/* No SO_REUSEADDR: that would let two holders of one port exist. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return -1;
	return steal_fd(&fd);
}

static bool same_port(const struct port *a, const struct port *b)
{
	return a->udp == b->udp && a->host == b->host &&
	       strcmp(a->address, b->address) == 0;
}

/* Does the slot hold a port that meets this one? */
static bool slot_has(int slot, const struct port *port)
{
	struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	int n = ports ? ports_read(slot, "ports", ports, PORTS_MAX) : 0;
	bool found = false;

	for (int i = 0; i < n; i++)
		found |= port_clash(&ports[i], port);
	free(ports);
	return found;
}

/* Name of the sandbox that has the port, or "". */
static void find_owner(const struct port *port, char *name, size_t size)
{
	AUTO_CLOSE int run = run_open(false);
	DIR *stream = run < 0 ? NULL : fdopendir(dup(run));
	const struct dirent *entry;

	name[0] = '\0';
	while (stream && !name[0] && (entry = readdir(stream))) {
		AUTO_CLOSE int slot = -1;

		if (strlen(entry->d_name) != 4)
			continue;
		slot = open_dir(run, entry->d_name);
		if (slot >= 0 && slot_has(slot, port) &&
		    read_value(slot, "vm", name, size) < 0)
			name[0] = '\0';
	}
	if (stream)
		closedir(stream);
}

static int explain(const struct port *port, int error, char *why, size_t size)
{
	char owner[NAME_MAX_LEN + 2] = "";

	if (error == EADDRINUSE)
		find_owner(port, owner, sizeof(owner));
	if (error == EADDRINUSE && owner[0])
		snprintf(why, size, "port %u of %s is in use by sandbox '%s'",
			 port->host, port->address, owner);
	else
		snprintf(why, size, "cannot have port %u of %s: %s", port->host,
			 port->address, strerror(error));
	return -1;
}

/* Start somewhere else each time: two keepers that begin at the same number
 * would meet at every one that follows. */
static int bind_free_port(struct port *port)
{
	uint32_t first;

	if (getrandom(&first, sizeof(first), 0) != sizeof(first))
		first = (uint32_t)now_ms();
	for (uint32_t i = 0; i < FREE_COUNT; i++) {
		int fd;

		port->host = (uint16_t)(FREE_FIRST + (first + i) % FREE_COUNT);
		fd = bind_port(port);
		if (fd >= 0 || errno != EADDRINUSE)
			return fd;
	}
	return -1;
}

int reserve(struct reservations *r, struct port *port, char *why, size_t size)
{
	int fd;

	if (r->n == PORTS_MAX) {
		snprintf(why, size, "more than %d ports", PORTS_MAX);
		return -1;
	}
	fd = port->host ? bind_port(port) : bind_free_port(port);
	if (fd < 0)
		return explain(port, errno, why, size);
	r->held[r->n].port = *port;
	r->held[r->n].fd = fd;
	r->n++;
	return 0;
}

void unreserve(struct reservations *r, const struct port *port)
{
	for (size_t i = 0; i < r->n; i++) {
		if (!same_port(&r->held[i].port, port))
			continue;
		close(r->held[i].fd);
		r->held[i] = r->held[--r->n];
		return;
	}
}
