/*
 * ch-api.h - requests to a Cloud Hypervisor.
 * Source: vmm/src/api/openapi/cloud-hypervisor.yaml and vmm/src/api/http/.
 */
#ifndef ARK_CH_API_H
#define ARK_CH_API_H

#include "http.h"

#include <stddef.h>

#define CH_API_SOCKET "qmp.sock" /* in the slot, whatever is spoken there */

struct ch_api {
	int fd;
	struct http_reply reply;
	char why[400]; /* it was refused, or is not known; printable */
};

/* Connect to the one of a slot; NULL and errno.  Owned by the caller. */
struct ch_api *ch_api_open(int run);

void ch_api_close(struct ch_api **api);
#define CH_AUTO_API __attribute__((cleanup(ch_api_close)))

/* PUT or GET of "vm.boot" and so on, `body` may be NULL.  0; or -1 with the
 * reason in api->why and errno: EREMOTEIO when it was refused, anything else
 * when nobody knows what has become of it. */
int ch_api_put(struct ch_api *api, const char *what, const char *body,
	       unsigned ms);
int ch_api_get(struct ch_api *api, const char *what, unsigned ms);

/* A text of the last reply, "" when it is not in there. */
void ch_api_text(const struct ch_api *api, const char *key, char *out,
		 size_t size);

#endif
