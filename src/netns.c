/*
 * netns.c - a namespace, a tap, an address, a neighbour: by ioctl, because a
 * process for each would cost more than all of a start's other work.
 */
#include "ark.h"
#include "netns.h"
#include "proto.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static void set_address(struct sockaddr *where, const char *address)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	inet_pton(AF_INET, address, &in.sin_addr);
	memcpy(where, &in, sizeof(in));
}

static void set_mac(struct sockaddr *where, const char *text)
{
	unsigned b[6] = {0};

	sscanf(text, "%x:%x:%x:%x:%x:%x", &b[0], &b[1], &b[2], &b[3], &b[4],
	       &b[5]);
	where->sa_family = ARPHRD_ETHER;
	for (int i = 0; i < 6; i++)
		where->sa_data[i] = (char)b[i];
}

static struct ifreq tap_request(void)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, TAP_NAME, sizeof(TAP_NAME));
	return request;
}

static int make_tap(void)
{
	struct ifreq request = tap_request();
	AUTO_CLOSE int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);

	request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request) < 0)
		return -1;
	return steal_fd(&fd);
}

static int set_hardware_address(int sock)
{
	struct ifreq request = tap_request();

	set_mac(&request.ifr_hwaddr, TAP_MAC);
	return ioctl(sock, SIOCSIFHWADDR, &request);
}

static int set_ip_address(int sock)
{
	struct ifreq request = tap_request();

	set_address(&request.ifr_addr, GATEWAY_ADDRESS);
	if (ioctl(sock, SIOCSIFADDR, &request) < 0)
		return -1;
	set_address(&request.ifr_netmask, "255.255.255.252");
	return ioctl(sock, SIOCSIFNETMASK, &request);
}

static int set_up(int sock)
{
	struct ifreq request = tap_request();

	request.ifr_flags = IFF_UP | IFF_RUNNING;
	return ioctl(sock, SIOCSIFFLAGS, &request);
}

static int set_neighbour(int sock)
{
	struct arpreq request = {.arp_flags = ATF_COM | ATF_PERM};

	set_address(&request.arp_pa, GUEST_ADDRESS);
	set_mac(&request.arp_ha, GUEST_MAC);
	memcpy(request.arp_dev, TAP_NAME, sizeof(TAP_NAME));
	return ioctl(sock, SIOCSARP, &request);
}

/* A guest must not meet us over an IPv6 link-local address that the kernel
 * made up.  A host without IPv6 has no such file. */
static int disable_ipv6(void)
{
	AUTO_CLOSE int fd = open("/proc/sys/net/ipv6/conf/all/disable_ipv6",
				 O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	return write_full(fd, "1", 1);
}

/* It stays when we close it; it goes with its namespace. */
static int give_away(int tap, uid_t uid)
{
	if (ioctl(tap, TUNSETOWNER, (unsigned long)uid) < 0 ||
	    ioctl(tap, TUNSETPERSIST, 1UL) < 0)
		return -1;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

int netns_enter_new(bool by_name, uid_t uid, const char **step)
{
	AUTO_CLOSE int tap = -1;
	AUTO_CLOSE int sock = -1;

	*step = "make a network namespace";
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	*step = "disable IPv6";
	if (disable_ipv6() < 0)
		return -1;
	*step = "make a tap device with /dev/net/tun";
	tap = make_tap();
	if (tap < 0)
		return -1;
	*step = "set up the tap device";
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || set_hardware_address(sock) < 0 ||
	    set_ip_address(sock) < 0 || set_up(sock) < 0 ||
	    set_neighbour(sock) < 0)
		return -1;
	return by_name ? give_away(tap, uid) : steal_fd(&tap);
}
