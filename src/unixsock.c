/*
 * unixsock.c - unix sockets in state directories.
 */
#include "ark.h"
#include "unixsock.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* sun_path holds 108 bytes, a state directory may be deeper: the socket is
 * named through the descriptor of its directory. */
static struct sockaddr_un address_of(int dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path),
		 "/proc/self/fd/%d/%s", dir, name);
	return address;
}

int unix_listen(int dir, const char *name, int type)
{
	struct sockaddr_un address = address_of(dir, name);
	AUTO_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
		return -1;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(dir, name, 0600, 0) < 0 || listen(fd, 4) < 0)
		return -1;
	return steal_fd(&fd);
}

static int connect_to(struct sockaddr_un address, int type)
{
	AUTO_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return steal_fd(&fd);
}

int unix_connect(int dir, const char *name, int type)
{
	return connect_to(address_of(dir, name), type);
}

int unix_connect_node(int node, int type)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat st;

	if (fstat(node, &st) < 0)
		return -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = ENOTSOCK;
		return -1;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d",
		 node);
	return connect_to(address, type);
}
