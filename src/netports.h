/*
 * netports.h - publish and unpublish, on sandboxes that run and that do not.
 */
#ifndef ARK_NETPORTS_H
#define ARK_NETPORTS_H

#include "netup.h"

/* Publish these as well and print each as it is now, "127.0.0.1:20001 ->
 * 80/tcp".  The sandbox is locked.  0, or the negative exit code, told, with
 * nothing changed. */
int net_publish(struct sandbox *s, struct port *ports, size_t n);

/* Close a port of the host; -EX_NOINPUT, told, when it is not published. */
int net_unpublish(struct sandbox *s, uint16_t host, bool udp);

#endif
