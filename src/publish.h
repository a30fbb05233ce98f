/*
 * publish.h - published ports: what people type, and the lists in files.
 *
 * vm/NAME/publish is what is wanted, slot/ports what is held; a line of both is
 *	tcp 127.0.0.1 8080 80 what
 * protocol, address and port on the host (port 0: one is chosen at start), port
 * in the guest, a word for people or "-".
 */
#ifndef ARK_PUBLISH_H
#define ARK_PUBLISH_H

#include "ark.h"

#define PORTS_MAX 256
#define PORT_TEXT_MAX 96

struct port {
	bool udp;
	char address[16]; /* dotted; 0.0.0.0 is every address of the host */
	uint16_t host;	  /* 0: to be chosen */
	uint16_t guest;
	char what[32]; /* a word, or empty */
};

/* [ADDRESS:]HOST:GUEST[/tcp|/udp][=WHAT] or GUEST[/tcp|/udp][=WHAT], each port
 * also a range A-B.  The number of ports, or 0 with the reason in *why. */
int port_parse(const char *spec, struct port *out, size_t max,
	       const char **why);

/* The list in dir/name: its length (no such file: 0), or -1 and errno, EINVAL
 * when a line is not one. */
int ports_read(int dir, const char *name, struct port *ports, size_t max);

/* Replace it: 0, or -1 and errno. */
int ports_write(int dir, const char *name, const struct port *ports, size_t n);

/* Would both want the same port of the host? */
bool port_clash(const struct port *a, const struct port *b);

/* "127.0.0.1:8080 -> 80/tcp what", for people; "tcp 127.0.0.1 8080 80 what",
 * without the newline, for files. */
void port_show(const struct port *p, char text[PORT_TEXT_MAX]);
void port_line(const struct port *p, char text[PORT_TEXT_MAX]);

#endif
