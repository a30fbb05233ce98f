/*
 * fuzz-qmp.c - lines that a VMM, perhaps taken over by its guest, sends to
 * the keeper (events) and to a command (replies).
 */
#include "ark.h"
#include "qmp.h"
#include "vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Both drivers of qmp.c read from a socket whose other end has said all. */
static int said(const uint8_t *data, size_t size)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) < 0)
		abort();
	if (write(ends[1], data, size) < 0)
		abort();
	close(ends[1]);
	return ends[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct qmp *q;
	json_t *result = NULL;
	int bad;

	if (size == 0 || size > 100000)
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		abort();
	q->fd = said(data, size);
	while (qmp_fill(q) > 0) {
		json_t *object;

		while ((object = qmp_next(q, &bad)))
			json_decref(object);
		if (bad)
			break;
	}
	close(q->fd);

	q->len = 0;
	q->fd = said(data, size);
	if (qmp_execute(q, "query-status", NULL, &result, 10) == 0)
		json_decref(result);
	qmp_close(q);
	free(q);
	return 0;
}
