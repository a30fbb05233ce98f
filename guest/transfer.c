/*
 * transfer.c - files in and out, in a child that owns the connection.
 *
 * A child, because both disk and client may block for as long as they like.
 * It answers by itself; when it is killed the connection just ends.  After an
 * error it reads on for a while: the client may be sending still, and a reset
 * could take the reason away from it.
 */
#include "guest.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define CONN_FD 3
#define LINGER_S 10

static void linger(void)
{
	static char waste[65536];
	time_t until = time(NULL) + LINGER_S;
	struct timeval limit = {.tv_sec = LINGER_S};

	shutdown(CONN_FD, SHUT_WR);
	setsockopt(CONN_FD, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	while (read(CONN_FD, waste, sizeof(waste)) > 0 && time(NULL) < until)
		;
}

NORETURN static void refuse(int code, const char *text)
{
	char data[4 + sizeof(struct tree_error)];
	size_t len = strlen(text);

	put_u32((unsigned char *)data, (uint32_t)code);
	memcpy(data + 4, text, len);
	if (frame_send(CONN_FD, FRAME_ERROR, data, 4 + len) == 0)
		linger();
	_exit(code);
}

/* "." for the root itself; everything is relative to it. */
static const char *relative(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

static unsigned tree_flags(uint32_t flags)
{
	return (flags & FILE_PARENTS ? TREE_PARENTS : 0u) |
	       (flags & FILE_INTO ? TREE_INTO : 0u);
}

static void transfer(const struct request *r, int root)
{
	struct tree_error error = {{0}};
	const char *path = relative(r->path);
	struct stat st;
	int result;

	if (r->op == OP_GET && fstatat(root, path, &st, 0) < 0) {
		snprintf(error.text, sizeof(error.text),
			 "cannot find '%.256s' in the guest: %s", r->path,
			 strerror(errno));
		refuse(EX_NOINPUT, error.text);
	}
	result = r->op == OP_GET ? tree_send(CONN_FD, root, path, &error)
				 : tree_recv(CONN_FD, root, path, r->argv[0],
					     tree_flags(r->flags), &error);
	if (result < 0)
		refuse(EX_IOERR, error.text);
}

void transfer_run(const struct request *r, int conn, uint32_t id)
{
	static const unsigned char done[12];
	char text[16];
	int root;

	/* Nothing but the connection: no other exec may have to wait for an
	 * end of file that we hold back. */
	if (dup2(conn, CONN_FD) < 0)
		_exit(EX_OSERR);
	syscall(SYS_close_range, CONN_FD + 1, ~0u, 0);
	child_reset();
	root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(text, sizeof(text), "%u", id);
	if (frame_send_text(CONN_FD, FRAME_STARTED, text) < 0)
		_exit(EX_IOERR);
	transfer(r, root);
	if (frame_send(CONN_FD, FRAME_EXIT, done, sizeof(done)) < 0)
		_exit(EX_IOERR);
	linger();
	_exit(0);
}
