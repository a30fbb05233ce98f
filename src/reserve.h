/*
 * reserve.h - host ports that a keeper holds for its sandbox.
 *
 * A reservation is a bound socket that never listens: no other program can
 * have the port, and it is free when the keeper ends, however that happens.
 * Never in the VMM: that could listen on it.
 */
#ifndef ARK_RESERVE_H
#define ARK_RESERVE_H

#include "publish.h"

struct reservations {
	size_t n;
	struct {
		struct port port;
		int fd;
	} held[PORTS_MAX];
};

/* Hold the port; host 0: a free one from 20000-29999 is chosen and put there.
 * 0, or -1 with the reason in `why` ("port 8080 of 127.0.0.1 is in use by
 * sandbox 'x'"). */
int reserve(struct reservations *r, struct port *port, char *why, size_t size);

/* Let it go; one that is not held is fine. */
void unreserve(struct reservations *r, const struct port *port);

#endif
