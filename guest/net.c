/*
 * net.c - lo and eth0, by ioctl: there may be no ip(8) in the image.
 *
 * The addresses are the same in every guest; the network namespace around the
 * VM tells them apart.  The gateway's hardware address is known as well, so a
 * permanent entry saves the first packet of every boot an ARP exchange, and a
 * restored guest never has a stale one.
 */
#include "guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define NETMASK "255.255.255.252"

static const unsigned char gateway_mac[6] = {0x02, 0x00, 0x0a,
					     0x00, 0x02, 0x01};

static void set_address(struct sockaddr *to, const char *text)
{
	struct sockaddr_in in = {.sin_family = AF_INET,
				 .sin_addr.s_addr = inet_addr(text)};

	memcpy(to, &in, sizeof(in));
}

static int interface(int fd, int request, const char *name, const char *address)
{
	struct ifreq r;

	memset(&r, 0, sizeof(r));
	memcpy(r.ifr_name, name, strlen(name));
	if (address)
		set_address(&r.ifr_addr, address);
	else
		r.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(fd, request, &r);
}

static int default_route(int fd)
{
	struct rtentry r;

	memset(&r, 0, sizeof(r));
	set_address(&r.rt_dst, "0.0.0.0");
	set_address(&r.rt_genmask, "0.0.0.0");
	set_address(&r.rt_gateway, GATEWAY_ADDRESS);
	r.rt_flags = RTF_UP | RTF_GATEWAY;
	return ioctl(fd, SIOCADDRT, &r);
}

static int neighbour(int fd)
{
	struct arpreq r;

	memset(&r, 0, sizeof(r));
	set_address(&r.arp_pa, GATEWAY_ADDRESS);
	r.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(r.arp_ha.sa_data, gateway_mac, sizeof(gateway_mac));
	r.arp_flags = ATF_PERM | ATF_COM;
	memcpy(r.arp_dev, "eth0", 4);
	return ioctl(fd, SIOCSARP, &r);
}

void net_up(void)
{
	AUTO_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (interface(fd, SIOCSIFFLAGS, "lo", NULL) < 0)
		say("no loopback: %s", strerror(errno));
	if (interface(fd, SIOCSIFADDR, "eth0", GUEST_ADDRESS) < 0 ||
	    interface(fd, SIOCSIFNETMASK, "eth0", NETMASK) < 0 ||
	    interface(fd, SIOCSIFFLAGS, "eth0", NULL) < 0 ||
	    neighbour(fd) < 0 || default_route(fd) < 0)
		say("no network: %s", strerror(errno));
}
