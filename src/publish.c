/*
 * publish.c - published ports as words of a command line and lines of a file.
 *
 * What comes out of here goes into rules of the host's firewall as text, so
 * nothing passes that is not an address in its one canonical form, a number or
 * a name.
 */
#include "publish.h"
#include "proto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>

#define SPEC_MAX 128
#define LIST_MAX (PORTS_MAX * PORT_TEXT_MAX)

struct range {
	uint16_t first, last;
};

static bool parse_port(const char *text, uint16_t *port, const char **why)
{
	long long number;

	if (!parse_num(text, 1, 65535, &number, why)) {
		*why = "not a port (1 to 65535)";
		return false;
	}
	*port = (uint16_t)number;
	return true;
}

/* "80" or "5736-5740"; the text is cut up. */
static bool parse_range(char *text, struct range *r, const char **why)
{
	char *dash = strchr(text, '-');

	if (dash)
		*dash++ = '\0';
	if (!parse_port(text, &r->first, why))
		return false;
	r->last = r->first;
	if (dash && !parse_port(dash, &r->last, why))
		return false;
	*why = "a range that ends before it begins";
	return r->first <= r->last;
}

/* Only what inet_ntop() would print: "127.1" and "010.0.0.1" are read as
 * different addresses by different programs. */
static bool parse_address(const char *text, char out[16])
{
	struct in_addr in;

	return inet_pton(AF_INET, text, &in) == 1 &&
	       inet_ntop(AF_INET, &in, out, 16) && strcmp(text, out) == 0;
}

static bool parse_protocol(const char *text, bool *udp)
{
	*udp = strcmp(text, "udp") == 0;
	return *udp || strcmp(text, "tcp") == 0;
}

/* Cut off what is behind the last `mark`; NULL when there is none. */
static char *cut(char *text, char mark)
{
	char *at = strrchr(text, mark);

	if (at)
		*at++ = '\0';
	return at;
}

static bool parse_ends(char *text, struct port *p, struct range *host,
		       struct range *guest, const char **why)
{
	char *inner = cut(text, ':');
	char *outer = inner ? cut(text, ':') : NULL;

	snprintf(p->address, sizeof(p->address), "127.0.0.1");
	*host = (struct range){0, 0};
	if (!inner)
		return parse_range(text, guest, why);
	*why = "not an IPv4 address (as in 127.0.0.1:8080:80)";
	if (outer && !parse_address(text, p->address))
		return false;
	if (!parse_range(outer ? outer : text, host, why) ||
	    !parse_range(inner, guest, why))
		return false;
	*why = "two ranges of different length";
	return host->last - host->first == guest->last - guest->first;
}

int port_parse(const char *spec, struct port *out, size_t max, const char **why)
{
	char text[SPEC_MAX];
	struct port p = {0};
	struct range host, guest;
	const char *what, *protocol;
	size_t count;

	*why = "too long";
	if (strlen(spec) >= sizeof(text))
		return 0;
	snprintf(text, sizeof(text), "%s", spec);
	what = cut(text, '=');
	*why = "the word after = must be a name of at most 31 characters";
	if (what && (!name_ok(what) || strlen(what) >= sizeof(p.what)))
		return 0;
	snprintf(p.what, sizeof(p.what), "%s", what ? what : "");
	protocol = cut(text, '/');
	*why = "neither tcp nor udp";
	if (protocol && !parse_protocol(protocol, &p.udp))
		return 0;
	if (!parse_ends(text, &p, &host, &guest, why))
		return 0;
	*why = "1024 is the agent's port";
	if (guest.first <= AGENT_PORT && guest.last >= AGENT_PORT)
		return 0;
	count = (size_t)(guest.last - guest.first) + 1;
	*why = "too many ports";
	if (count > max)
		return 0;
	for (size_t i = 0; i < count; i++) {
		out[i] = p;
		out[i].guest = (uint16_t)(guest.first + i);
		out[i].host = host.first ? (uint16_t)(host.first + i) : 0;
	}
	return (int)count;
}

bool port_clash(const struct port *a, const struct port *b)
{
	static const char any[] = "0.0.0.0";

	return a->udp == b->udp && a->host == b->host && a->host != 0 &&
	       (strcmp(a->address, b->address) == 0 ||
		strcmp(a->address, any) == 0 || strcmp(b->address, any) == 0);
}

void port_show(const struct port *p, char text[PORT_TEXT_MAX])
{
	char host[8] = "?";

	if (p->host)
		snprintf(host, sizeof(host), "%u", p->host);
	snprintf(text, PORT_TEXT_MAX, "%s:%s -> %u/%s%s%s", p->address, host,
		 p->guest, p->udp ? "udp" : "tcp", *p->what ? " " : "",
		 p->what);
}

/* ---- lists in files ----------------------------------------------------- */

void port_line(const struct port *p, char text[PORT_TEXT_MAX])
{
	snprintf(text, PORT_TEXT_MAX, "%s %s %u %u %s", p->udp ? "udp" : "tcp",
		 p->address, p->host, p->guest, *p->what ? p->what : "-");
}

/* One line back: what port_line() would not write is not read either. */
static bool read_line(const char *line, struct port *p)
{
	char protocol[8], what[32], again[PORT_TEXT_MAX];

	if (strlen(line) >= sizeof(again) ||
	    sscanf(line, "%7s %15s %5hu %5hu %31s", protocol, p->address,
		   &p->host, &p->guest, what) != 5)
		return false;
	if (!parse_protocol(protocol, &p->udp) ||
	    !parse_address(p->address, again) || p->guest == 0 ||
	    p->guest == AGENT_PORT)
		return false;
	if (strcmp(what, "-") != 0 && !name_ok(what))
		return false;
	snprintf(p->what, sizeof(p->what), "%s", *what == '-' ? "" : what);
	port_line(p, again);
	return strcmp(line, again) == 0;
}

int ports_read(int dir, const char *name, struct port *ports, size_t max)
{
	AUTO_FREE char *text = malloc(LIST_MAX);
	char *line = text, *end;
	ssize_t len;
	size_t n = 0;

	if (!text)
		return -1;
	len = read_file(dir, name, text, LIST_MAX);
	if (len < 0)
		return errno == ENOENT ? 0 : -1;
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end || n == max)
			break;
		*end = '\0';
		if (!read_line(line, &ports[n++]))
			break;
	}
	/* All of it, without a NUL in between. */
	if (line == text + len)
		return (int)n;
	errno = EINVAL;
	return -1;
}

static int write_list(int fd, const struct port *ports, size_t n)
{
	AUTO_FREE char *text = malloc(LIST_MAX);
	char line[PORT_TEXT_MAX];
	size_t len = 0;

	if (!text)
		return -1;
	for (size_t i = 0; i < n; i++) {
		port_line(&ports[i], line);
		len += (size_t)snprintf(text + len, LIST_MAX - len, "%s\n",
					line);
	}
	return write_full(fd, text, len) < 0 || fsync(fd) < 0 ? -1 : 0;
}

int ports_write(int dir, const char *name, const struct port *ports, size_t n)
{
	char temp[NAME_MAX_LEN + 32];
	AUTO_CLOSE int fd = -1;
	int saved;

	errno = E2BIG;
	if (n > PORTS_MAX)
		return -1;
	snprintf(temp, sizeof(temp), ".%s.%d", name, (int)getpid());
	if (unlinkat(dir, temp, 0) < 0 && errno != ENOENT)
		return -1;
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	if (write_list(fd, ports, n) == 0 &&
	    renameat(dir, temp, dir, name) == 0)
		return 0;
	saved = errno;
	unlinkat(dir, temp, 0);
	errno = saved;
	return -1;
}
