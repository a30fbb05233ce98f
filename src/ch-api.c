/*
 * ch-api.c - requests to a Cloud Hypervisor, and what it says of them.
 */
#include "ark.h"
#include "ch-api.h"
#include "unixsock.h"

#include <errno.h>
#include <jansson.h>
#include <sys/socket.h>

void ch_api_close(struct ch_api **api)
{
	if (*api && (*api)->fd >= 0)
		close((*api)->fd);
	free(*api);
}

struct ch_api *ch_api_open(int run)
{
	struct ch_api *api = malloc(sizeof(*api));

	if (!api)
		return NULL;
	api->why[0] = '\0';
	api->fd = unix_connect(run, CH_API_SOCKET, SOCK_STREAM);
	if (api->fd >= 0)
		return api;
	free(api);
	return NULL;
}

static int ask(struct ch_api *api, const char *method, const char *what,
	       const char *body, unsigned ms)
{
	char path[64];

	snprintf(path, sizeof(path), "/api/v1/%s", what);
	if (http_request(api->fd, method, path, body, &api->reply, ms) < 0) {
		int saved = errno;

		snprintf(api->why, sizeof(api->why),
			 "what became of %s is not known: %s", what,
			 strerror(saved));
		errno = saved;
		return -1;
	}
	if (api->reply.status / 100 == 2)
		return 0;
	http_reason(&api->reply, api->why, sizeof(api->why));
	errno = EREMOTEIO;
	return -1;
}

int ch_api_put(struct ch_api *api, const char *what, const char *body,
	       unsigned ms)
{
	return ask(api, "PUT", what, body, ms);
}

int ch_api_get(struct ch_api *api, const char *what, unsigned ms)
{
	return ask(api, "GET", what, NULL, ms);
}

void ch_api_text(const struct ch_api *api, const char *key, char *out,
		 size_t size)
{
	/* A counter that has never counted is 2^64 - 1. */
	json_t *object = json_loadb(api->reply.body, api->reply.len,
				    JSON_DECODE_INT_AS_REAL, NULL);
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(out, size, "%s", text ? text : "");
	json_decref(object);
}
