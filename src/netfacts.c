/*
 * netfacts.c - resolver, addresses, routes and sysctls of the host.
 */
#include "netfacts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>

/* ---- resolver ----------------------------------------------------------- */

bool parse_resolver(const char *text, char address[16], bool *loopback)
{
	char word[64];
	struct in_addr in;

	*loopback = false;
	for (; text; text = strchr(text, '\n'), text += text != NULL) {
		if (sscanf(text, " nameserver %63s", word) != 1 ||
		    inet_pton(AF_INET, word, &in) != 1)
			continue;
		if (ntohl(in.s_addr) >> 24 == 127) {
			*loopback = true;
			continue;
		}
		inet_ntop(AF_INET, &in, address, 16);
		return true;
	}
	return false;
}

void find_resolver(char address[16])
{
	/* The second holds what a stub on 127.0.0.53 asks. */
	static const char *const files[] = {"/etc/resolv.conf",
					    "/run/systemd/resolve/resolv.conf"};
	bool loopback = true;

	for (size_t i = 0; loopback && i < ARRAY_LEN(files); i++) {
		char text[8192];
		/* A link on purpose, at most hosts. */
		AUTO_CLOSE int fd = open(files[i], O_RDONLY | O_CLOEXEC);
		ssize_t n = fd < 0 ? -1 : read_full(fd, text, sizeof(text) - 1);

		text[n < 0 ? 0 : n] = '\0';
		if (parse_resolver(text, address, &loopback))
			return;
	}
	address[0] = '\0';
}

/* ---- addresses and routes ----------------------------------------------- */

static bool ours(const char *device)
{
	return strncmp(device, LINK_PREFIX, strlen(LINK_PREFIX)) == 0;
}

/* IPv4 address of an entry, host order; 0 when it has none. */
static uint32_t address_of(const struct ifaddrs *i)
{
	struct sockaddr_in in;

	if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET)
		return 0;
	memcpy(&in, i->ifa_addr, sizeof(in));
	return ntohl(in.sin_addr.s_addr);
}

void find_own(struct plan *p)
{
	struct ifaddrs *list;

	if (getifaddrs(&list) < 0)
		return;
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct in_addr in = {htonl(address_of(i))};

		if (in.s_addr && !(i->ifa_flags & IFF_LOOPBACK) &&
		    p->owned < OWN_MAX)
			inet_ntop(AF_INET, &in, p->own[p->owned++], 16);
	}
	freeifaddrs(list);
}

struct route {
	char device[IF_NAMESIZE];
	uint32_t to, mask; /* host order */
};

/* Call `each` with every IPv4 route of the main table, until it returns other
 * than 0. */
static int each_route(int (*each)(const struct route *r, void *data),
		      void *data)
{
	FILE *in = fopen("/proc/net/route", "re");
	char line[256];
	int result = 0;

	while (in && result == 0 && fgets(line, sizeof(line), in)) {
		struct route r;
		unsigned to, mask;

		if (sscanf(line, "%15s %8x %*x %*x %*d %*d %*d %8x", r.device,
			   &to, &mask) != 3)
			continue;
		r.to = ntohl(to);
		r.mask = ntohl(mask);
		result = each(&r, data);
	}
	if (in)
		fclose(in);
	return result;
}

static int refuse_inside(const struct route *r, void *data)
{
	const uint32_t net = *(const uint32_t *)data;

	/* A wider one (a VPN's 10.0.0.0/8) is no conflict: ours are longer. */
	if (ours(r->device) || r->mask < 0xffff0000 ||
	    (r->to & 0xffff0000) != net)
		return 0;
	return fail(EX_UNAVAILABLE,
		    "%u.%u.0.0/16 is in use on this host (%s): set another "
		    "net in ark.conf",
		    net >> 24, net >> 16 & 255, r->device);
}

int check_net_free(uint32_t net)
{
	struct ifaddrs *list;
	int r = each_route(refuse_inside, &net);

	if (r < 0 || getifaddrs(&list) < 0)
		return r;
	for (const struct ifaddrs *i = list; i && r == 0; i = i->ifa_next) {
		struct route own = {.to = address_of(i), .mask = UINT32_MAX};

		snprintf(own.device, sizeof(own.device), "%s", i->ifa_name);
		r = refuse_inside(&own, &net);
	}
	freeifaddrs(list);
	return r;
}

/* ---- sysctls ------------------------------------------------------------ */

static int write_sysctl(const char *name, const char *value)
{
	char path[256];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/sys/net/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && strncmp(name, "ipv6/", 5) == 0 &&
	    access("/proc/net/if_inet6", F_OK) < 0)
		return 0;
	if (fd < 0 || write_full(fd, value, strlen(value)) < 0)
		return fail_errno(EX_OSERR, "cannot set net/%s to %s", name,
				  value);
	return 0;
}

int write_sysctls(const char *text)
{
	char name[128], value[32];
	int r = 0;

	for (; r == 0 && sscanf(text, "%127s %31s", name, value) == 2;
	     text = strchr(text, '\n') + 1)
		r = write_sysctl(name, value);
	return r;
}

static int forward(const char *device)
{
	char name[128];

	/* Without the label of a second address (eth0:1). */
	snprintf(name, sizeof(name), "ipv4/conf/%.*s/forwarding",
		 (int)strcspn(device, ":"), device);
	return ours(device) ? 0 : write_sysctl(name, "1");
}

static int forward_default(const struct route *r, void *data)
{
	(void)data;
	return r->to == 0 && r->mask == 0 ? forward(r->device) : 0;
}

static bool wanted(uint32_t address, const struct port *ports, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct in_addr in;

		if (inet_pton(AF_INET, ports[i].address, &in) == 1 &&
		    (in.s_addr == 0 || ntohl(in.s_addr) == address))
			return true;
	}
	return false;
}

int forward_uplinks(bool egress, const struct port *ports, size_t n)
{
	struct ifaddrs *list;
	int r = egress ? each_route(forward_default, NULL) : 0;

	if (r < 0 || n == 0 || getifaddrs(&list) < 0)
		return r;
	for (const struct ifaddrs *i = list; i && r == 0; i = i->ifa_next)
		if (address_of(i) && !(i->ifa_flags & IFF_LOOPBACK) &&
		    wanted(address_of(i), ports, n))
			r = forward(i->ifa_name);
	freeifaddrs(list);
	return r;
}
