/*
 * qmp.h - QEMU's machine protocol: JSON lines on a unix socket.
 * Source: QEMU docs/interop/qmp-spec.txt.
 *
 * A QMP socket serves one client at a time.  The control socket belongs to
 * whoever holds the flock of the sandbox, the event socket to the keeper.
 */
#ifndef ARK_QMP_H
#define ARK_QMP_H

#include <jansson.h>
#include <stddef.h>

#define QMP_LINE_MAX 65536

struct qmp {
	int fd;
	size_t len;
	char buf[QMP_LINE_MAX];
};

/* Connect to dir/name and leave negotiation mode.  0, or -1 and errno. */
int qmp_open(struct qmp *q, int dir, const char *name, unsigned ms);
void qmp_close(struct qmp *q);

/* Execute a command; `arguments` (may be NULL) is taken over.  The `return`
 * member in *result, owned by the caller, when result is not NULL.  0; or -1
 * and errno: ETIMEDOUT means that the state of the VMM is not known, EREMOTEIO
 * that QEMU refused, with its words in q->buf. */
int qmp_execute(struct qmp *q, const char *command, json_t *arguments,
		json_t **result, unsigned ms);

/* The same without a result, with a descriptor that QEMU gets a copy of. */
int qmp_execute_fd(struct qmp *q, const char *command, json_t *arguments,
		   int fd, unsigned ms);

/* The next complete line of what was read, parsed, or NULL; *bad is set when
 * a line was no JSON object or too long: the peer is not to be trusted on. */
json_t *qmp_next(struct qmp *q, int *bad);

/* Read once what is there; bytes, 0 at the end, -1 and errno. */
ssize_t qmp_fill(struct qmp *q);

#endif
