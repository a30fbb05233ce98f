/*
 * plan.c - the texts.  Pure: no file is read, no process started.
 *
 * 1. The namespace alone must hold a guest, and a VMM that was taken over:
 *    FORWARD, INPUT and OUTPUT drop what is not named, and the whole deny list
 *    stands here.  The host's chains (chains.c) are the second line.
 * 2. The agent's port is refused before anything is accepted, whatever became
 *    of the packet's address on its way.
 * 3. A packet from the guest with another source than its own, and one from
 *    the uplink that claims to come from inside, ends before any address is
 *    translated and before anything is accepted, known connection or not.
 * 4. TCP that begins in the middle is answered with a reset (outward: a clone
 *    wakes up with its parent's connections, which must neither hang nor leak
 *    under its identity) or dropped (inward: the far end of one that was cut).
 * 5. The agent's connections pass without connection tracking: one that is
 *    idle for days, or older than the tracking, is still one.
 * 6. What is denied is answered, so that programs fail at once, and TCP with a
 *    reset: an ICMP error alone lets connect() try for a second.
 */
#include "plan.h"
#include "netns.h"
#include "proto.h"

#define TAP "tap0"
#define CONNECTIONS 512 /* at once, each way, TCP and the rest apart */

const char *const private_networks[] = {
	"0.0.0.0/8",
	"10.0.0.0/8",
	"100.64.0.0/10",
	"127.0.0.0/8",
	"169.254.0.0/16",
	"172.16.0.0/12",
	"192.0.0.0/24",
	"192.168.0.0/16",
	"198.18.0.0/15",
	"224.0.0.0/3",
	NULL,
};

uint32_t plan_hash(const char *text)
{
	uint32_t hash = 2166136261U;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return hash;
}

void plan_mark(const char *run, char mark[16])
{
	snprintf(mark, 16, "ark:%08x:", plan_hash(run));
}

void plan_link(int slot, char link[16])
{
	snprintf(link, 16, LINK_PREFIX "%04x", (unsigned)slot & 0xffff);
}

void plan_make(struct plan *p, int slot, const char *name, const char *run,
	       uint32_t net)
{
	uint32_t outer = net + (uint32_t)slot;
	char mark[16];

	memset(p, 0, sizeof(*p));
	p->slot = slot;
	p->net = net;
	snprintf(p->name, sizeof(p->name), "%s", name);
	snprintf(p->outer, sizeof(p->outer), "%u.%u.%u.%u", outer >> 24,
		 outer >> 16 & 255, outer >> 8 & 255, outer & 255);
	plan_link(slot, p->link);
	plan_mark(run, mark);
	snprintf(p->mark, sizeof(p->mark), "%s%04x:", mark,
		 (unsigned)slot & 0xffff);
	snprintf(p->comment, sizeof(p->comment), "%s%s", p->mark, p->name);
}

/* ---- rules inside ------------------------------------------------------- */

/* One table less: each costs 15 ms (nft commits one after the other). */
static void put_mangle(const struct plan *p, FILE *out)
{
	fprintf(out,
		"*mangle\n"
		":PREROUTING ACCEPT [0:0]\n"
		":INPUT ACCEPT [0:0]\n"
		":FORWARD ACCEPT [0:0]\n"
		":OUTPUT ACCEPT [0:0]\n"
		":POSTROUTING ACCEPT [0:0]\n"
		"-A PREROUTING -i " TAP " ! -s " GUEST_ADDRESS " -j DROP\n"
		"-A PREROUTING -i " UPLINK " -s 10.0.2.0/30 -j DROP\n"
		"-A PREROUTING -i " UPLINK " ! -d %s -j DROP\n"
		"-A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS "
		"--clamp-mss-to-pmtu\n"
		"COMMIT\n",
		p->outer);
}

static bool has_dns(const struct plan *p)
{
	return p->open && *p->dns;
}

static void put_nat(const struct plan *p, FILE *out)
{
	static const char *const protocols[] = {"udp", "tcp"};

	fprintf(out,
		"*nat\n"
		":PREROUTING ACCEPT [0:0]\n"
		":INPUT ACCEPT [0:0]\n"
		":OUTPUT ACCEPT [0:0]\n"
		":POSTROUTING ACCEPT [0:0]\n"
		"-A PREROUTING -i " UPLINK
		" -d %s -j DNAT --to-destination " GUEST_ADDRESS "\n",
		p->outer);
	for (size_t i = 0; has_dns(p) && i < ARRAY_LEN(protocols); i++)
		fprintf(out,
			"-A PREROUTING -i " TAP " -d " GATEWAY_ADDRESS
			" -p %s --dport 53 -j DNAT --to-destination %s\n",
			protocols[i], p->dns);
	fprintf(out,
		"-A POSTROUTING -s " GUEST_ADDRESS " -o " UPLINK
		" -j SNAT --to-source %s\n"
		"COMMIT\n",
		p->outer);
}

static void put_egress(const struct plan *p, FILE *out)
{
	fprintf(out,
		"-A EGRESS -p tcp ! --syn -j REJECT --reject-with tcp-reset\n"
		"-A EGRESS -p tcp -m connlimit --connlimit-above %d "
		"--connlimit-mask 0 -j REJECT --reject-with tcp-reset\n"
		"-A EGRESS ! -p tcp -m connlimit --connlimit-above %d "
		"--connlimit-mask 0 -j DROP\n"
		"-A EGRESS -j RATE\n",
		CONNECTIONS, CONNECTIONS);
	if (has_dns(p))
		fprintf(out,
			"-A EGRESS -d %s -p udp --dport 53 -j ACCEPT\n"
			"-A EGRESS -d %s -p tcp --dport 53 -j ACCEPT\n",
			p->dns, p->dns);
	for (size_t i = 0; private_networks[i]; i++)
		fprintf(out, "-A EGRESS -d %s -g DENY\n", private_networks[i]);
	fprintf(out, "-A EGRESS -d %u.%u.0.0/16 -g DENY\n", p->net >> 24,
		p->net >> 16 & 255);
	for (size_t i = 0; i < p->owned; i++)
		fprintf(out, "-A EGRESS -d %s -g DENY\n", p->own[i]);
	fprintf(out, "-A EGRESS -j USER\n"
		     "-A EGRESS -g DENY\n");
	if (p->open)
		fprintf(out, "-A USER -j ACCEPT\n");
}

static void put_filter(const struct plan *p, FILE *out)
{
	static const char *const known =
		"-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT";

	fprintf(out,
		"*filter\n"
		":INPUT DROP [0:0]\n"
		":FORWARD DROP [0:0]\n"
		":OUTPUT DROP [0:0]\n"
		":EGRESS - [0:0]\n"
		":RATE - [0:0]\n"
		":USER - [0:0]\n"
		":DENY - [0:0]\n"
		"-A INPUT -i " TAP " -s " GUEST_ADDRESS
		" -p tcp --sport %d ! --syn -j ACCEPT\n"
		"-A INPUT %s\n"
		"-A INPUT -p icmp --icmp-type echo-request -m limit "
		"--limit 10/second -j ACCEPT\n"
		"-A INPUT -i " TAP " -p udp --dport 53 -j REJECT\n"
		"-A INPUT -i " TAP
		" -p tcp --dport 53 -j REJECT --reject-with tcp-reset\n"
		"-A OUTPUT %s\n"
		"-A OUTPUT -o " TAP " -d " GUEST_ADDRESS
		" -p tcp --dport %d -j ACCEPT\n",
		AGENT_PORT, known, known, AGENT_PORT);
	fprintf(out,
		"-A FORWARD -i " UPLINK " -p tcp --dport %d -j DROP\n"
		"-A FORWARD %s\n"
		"-A FORWARD -i " UPLINK " -p tcp ! --syn -j DROP\n"
		"-A FORWARD -i " UPLINK " -o " TAP
		" -m connlimit --connlimit-above %d --connlimit-mask 0"
		" -j DROP\n"
		"-A FORWARD -i " UPLINK " -o " TAP
		" -m conntrack --ctstate DNAT -j ACCEPT\n"
		"-A FORWARD -i " TAP " -o " UPLINK " -s " GUEST_ADDRESS
		" -g EGRESS\n",
		AGENT_PORT, known, CONNECTIONS);
	fprintf(out, "-A RATE -m limit --limit 500/second --limit-burst 1000 "
		     "-j RETURN\n"
		     "-A RATE -j DROP\n"
		     "-A DENY -p tcp -j REJECT --reject-with tcp-reset\n"
		     "-A DENY -j REJECT --reject-with icmp-admin-prohibited\n");
	put_egress(p, out);
	fprintf(out, "COMMIT\n");
}

void plan_rules(const struct plan *p, FILE *out)
{
	put_mangle(p, out);
	put_nat(p, out);
	put_filter(p, out);
}

/* ---- links, addresses, routes ------------------------------------------- */

void plan_inside(const struct plan *p, const char *host, FILE *out)
{
	fprintf(out,
		"link add " UPLINK " address " UPLINK_MAC
		" type veth peer name %s address " LINK_MAC " netns %s\n"
		"addr add %s/32 dev " UPLINK "\n"
		"link set " UPLINK " up\n"
		"neigh replace " NEXT_HOP " lladdr " LINK_MAC " dev " UPLINK
		" nud permanent\n"
		"route replace " NEXT_HOP "/32 dev " UPLINK " scope link\n"
		"route replace default via " NEXT_HOP " dev " UPLINK
		" src %s\n",
		p->link, host, p->outer, p->outer);
}

void plan_mark_link(const struct plan *p, FILE *out)
{
	fprintf(out, "link set dev %s alias \"%s\"\n", p->link, p->comment);
}

void plan_host(const struct plan *p, FILE *out)
{
	fprintf(out,
		"link set dev %s up\n"
		"neigh replace %s lladdr " UPLINK_MAC " dev %s nud permanent\n"
		"route replace %s/32 dev %s\n",
		p->link, p->outer, p->link, p->outer, p->link);
}

/* 10 ms of the rate may go at once, and never less than the largest packet
 * that the tap hands over in one piece. */
void plan_shape(const struct plan *p, FILE *out)
{
	static const char *const devices[] = {UPLINK, TAP};
	uint64_t burst = p->rate / 8 / 100;

	if (burst < 128 << 10)
		burst = 128 << 10;
	for (size_t i = 0; p->rate && i < ARRAY_LEN(devices); i++)
		fprintf(out,
			"qdisc replace dev %s root tbf rate %llubit "
			"burst %llub latency 50ms\n",
			devices[i], (unsigned long long)p->rate,
			(unsigned long long)burst);
}

void plan_inside_sysctl(FILE *out)
{
	fprintf(out, "ipv6/conf/all/disable_ipv6 1\n"
		     "ipv4/ip_forward 1\n");
}

/* route_localnet: a port published on 127.0.0.1 is reached from there.  What
 * that would open in the other direction, ARK-RAW closes. */
void plan_host_sysctl(const struct plan *p, FILE *out)
{
	fprintf(out,
		"ipv6/conf/%s/disable_ipv6 1\n"
		"ipv4/conf/%s/rp_filter 1\n"
		"ipv4/conf/%s/accept_redirects 0\n"
		"ipv4/conf/%s/send_redirects 0\n"
		"ipv4/conf/%s/route_localnet 1\n"
		"ipv4/conf/%s/forwarding 1\n",
		p->link, p->link, p->link, p->link, p->link, p->link);
}

void plan_port(const struct plan *p, const struct port *port, FILE *out)
{
	fprintf(out, "-A ARK-PF");
	if (strcmp(port->address, "0.0.0.0") != 0)
		fprintf(out, " -d %s/32", port->address);
	fprintf(out,
		" -p %s --dport %u -m comment --comment \"%s\" -j DNAT "
		"--to-destination %s:%u\n",
		port->udp ? "udp" : "tcp", port->host, p->comment, p->outer,
		port->guest);
}
