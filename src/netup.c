/*
 * netup.c - bring the network of a sandbox up, take it down.
 *
 * Up, while the guest boots, as the keeper's child:
 * 1. slot/net names the address: from now on `down` knows what to look for.
 * 2. The host's chains are read, made, read back; or nothing goes on.
 * 3. The rules inside, before there is anything to filter.
 * 4. Forwarding inside; the uplink, made inside with its other end outside:
 *    it dies with the namespace, that is with the VMM.
 * 5. The host's end: its sysctls, its alias (whose it is), then up.
 * Any prefix of this is a sandbox without a network, and down removes it.
 * A restored guest, which goes on where it was, has 5 only in open, when its
 * identity is confirmed: slot/held says so, and the rest is made while it
 * loads.  Ports follow in open too: slot/open says that there may be rules,
 * before there are.
 *
 * Down goes backwards.  Connections are forgotten when no packet can come any
 * more that would make them again: the next sandbox with this address must not
 * inherit any.
 */
#include "netup.h"
#include "netfacts.h"
#include "links.h"
#include "proto.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

/* ---- the plan ----------------------------------------------------------- */

int net_settings(const struct sandbox *s, struct plan *p)
{
	char policy[8];
	struct conf conf;
	long long rate;
	int r = conf_load(&conf);

	if (r < 0)
		return r;
	if (read_value(s->dir, "policy", policy, sizeof(policy)) < 0) {
		if (errno != ENOENT)
			return fail_errno(EX_DATAERR,
					  "cannot read the policy of '%s'",
					  s->name);
		snprintf(policy, sizeof(policy), "%s", conf.policy);
	}
	p->open = strcmp(policy, "open") == 0;
	if (!p->open && strcmp(policy, "none") != 0)
		return fail(EX_DATAERR, "sandbox '%s' has a bad policy",
			    s->name);
	if (read_number(s->dir, "net-rate", 1, INT64_MAX, &rate) == 0)
		p->rate = (uint64_t)rate;
	else if (errno != ENOENT)
		return fail_errno(EX_DATAERR, "cannot read the rate of '%s'",
				  s->name);
	return 0;
}

/* The address that it was brought up with, should ark.conf have changed. */
static void read_outer(int slot, struct plan *p)
{
	char text[16];

	if (read_value(slot, "net", text, sizeof(text)) > 0 &&
	    strspn(text, "0123456789.") == strlen(text))
		snprintf(p->outer, sizeof(p->outer), "%s", text);
}

int net_plan(const struct nethost *h, const struct sandbox *s, struct plan *p)
{
	if (!s->slot)
		return fail(EX_CANTCREAT,
			    "sandbox '%s' is %s: it has no network", s->name,
			    state_word(s));
	plan_make(p, s->slot, s->name, h->run_path, h->want.net);
	snprintf(p->dns, sizeof(p->dns), "%s", h->want.dns);
	read_outer(s->run, p);
	find_own(p);
	return net_settings(s, p);
}

/* ---- up ----------------------------------------------------------------- */

static int load_rules(struct nethost *h, const struct plan *p, int netns)
{
	AUTO_FREE char *text = NULL;
	char lock[PATH_MAX + 32];

	/* Its own lock file: legacy iptables has one for all namespaces. */
	snprintf(lock, sizeof(lock), "%.*s/%04x/xtables.lock", PATH_MAX,
		 h->run_path, (unsigned)p->slot);
	AS_TEXT(text, plan_rules(p, out));
	return nethost_restore_in(h, netns, lock, text);
}

static int make_link(const struct plan *p, int netns)
{
	AUTO_FREE char *text = NULL;
	char host[64];

	snprintf(host, sizeof(host), "/proc/%d/ns/net", (int)getpid());
	AS_TEXT(text, plan_inside(p, host, out));
	return link_batch("ip", text, netns);
}

static int shape(const struct plan *p, int netns)
{
	AUTO_FREE char *text = NULL;

	AS_TEXT(text, plan_shape(p, out));
	return link_batch("tc", text, netns);
}

static int raise_host(const struct plan *p)
{
	AUTO_FREE char *sysctls = NULL;
	AUTO_FREE char *text = NULL;
	int r;

	AS_TEXT(sysctls, plan_host_sysctl(p, out));
	AS_TEXT(text, (plan_mark_link(p, out), plan_host(p, out)));
	r = write_sysctls(sysctls);
	return r < 0 ? r : link_batch("ip", text, 0);
}

static int forward_inside(void *data)
{
	AUTO_FREE char *text = NULL;

	(void)data;
	AS_TEXT(text, plan_inside_sysctl(out));
	return write_sysctls(text);
}

static int make_inside(struct nethost *h, const struct plan *p, int netns)
{
	int r = load_rules(h, p, netns);

	if (r == 0)
		r = link_within(netns, forward_inside, NULL);
	if (r == 0)
		r = link_clear(p, h->run_path, netns);
	if (r == 0)
		r = make_link(p, netns);
	return r < 0 ? r : shape(p, netns);
}

/* Whose the host's end is, or nobody could take it away: the namespace of a
 * dead VMM lives on for as long as a connection into it waits for an answer. */
static int mark_link(const struct plan *p)
{
	AUTO_FREE char *text = NULL;

	AS_TEXT(text, plan_mark_link(p, out));
	return link_batch("ip", text, 0);
}

/* The last step, with which packets begin to flow. */
static int let_go(const struct sandbox *s, const struct plan *p)
{
	int r = raise_host(p);

	if (r == 0)
		r = forward_uplinks(p->open, NULL, 0);
	if (r == 0 && unlinkat(s->run, "held", 0) < 0 && errno != ENOENT)
		r = fail_errno(EX_IOERR, "cannot record the network of '%s'",
			       s->name);
	return r;
}

/* ---- ports -------------------------------------------------------------- */

static int publish_slot(struct nethost *h, int dir, const struct plan *p)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	int r, n = ports ? ports_read(dir, "ports", ports, PORTS_MAX) : -1;

	if (n < 0)
		return fail_errno(EX_DATAERR, "cannot read the ports of '%s'",
				  p->name);
	r = forward_uplinks(false, ports, (size_t)n);
	return r < 0 ? r : nethost_publish(h, p, ports, (size_t)n);
}

static int publish_again(struct slot *slot, void *data)
{
	struct nethost *h = data;
	struct plan p;

	if (!slot->alive || faccessat(slot->dir, "open", F_OK, 0) < 0)
		return 0;
	plan_make(&p, slot->number, slot->name, h->run_path, h->want.net);
	read_outer(slot->dir, &p);
	return publish_slot(h, slot->dir, &p);
}

/* Under LOCK_EX.  Whoever flushed our chains has flushed the published ports of
 * all sandboxes as well. */
static int ensure(struct nethost *h, bool all)
{
	bool mended;
	int r = nethost_ensure(h, all, &mended);

	return r < 0 || !(all || mended) ? r
					 : each_slot(h->run, publish_again, h);
}

int net_init(struct nethost *h)
{
	int r = nethost_lock(h, LOCK_EX);

	if (r == 0) {
		r = ensure(h, true);
		nethost_unlock(h);
	}
	return r;
}

static int make_network(struct nethost *h, struct sandbox *s, bool hold)
{
	struct plan p = {0};
	AUTO_CLOSE int netns = -1;
	int r = net_plan(h, s, &p);

	if (r < 0)
		return r;
	netns = link_netns(&s->vmm);
	if (netns < 0)
		return fail_errno(EX_CANTCREAT,
				  "cannot find the namespace of '%s'", s->name);
	if (write_value(s->run, "net", "%s", p.outer) < 0 ||
	    (hold && write_value(s->run, "held", "1") < 0))
		return fail_errno(EX_IOERR, "cannot record the address of '%s'",
				  s->name);
	r = nethost_lock(h, LOCK_EX);
	if (r < 0)
		return r;
	r = ensure(h, false);
	if (r == 0)
		r = nethost_lock(h, LOCK_SH);
	if (r == 0)
		r = make_inside(h, &p, netns);
	if (r == 0)
		r = hold ? mark_link(&p) : let_go(s, &p);
	nethost_unlock(h);
	return r;
}

int net_up(struct nethost *h, struct sandbox *s)
{
	return make_network(h, s, false);
}

int net_prepare(struct nethost *h, struct sandbox *s)
{
	return make_network(h, s, true);
}

static bool has(const struct sandbox *s, const char *file)
{
	return faccessat(s->run, file, F_OK, 0) == 0;
}

int net_open(struct nethost *h, struct sandbox *s)
{
	struct plan p = {0};
	int r = net_plan(h, s, &p);

	if (r == 0 && has(s, "held"))
		r = let_go(s, &p);
	if (r < 0 || (!has(s, "ports") && !has(s, "open")))
		return r;
	if (write_value(s->run, "open", "1") < 0)
		return fail_errno(EX_IOERR, "cannot record the ports of '%s'",
				  s->name);
	r = nethost_lock(h, LOCK_EX);
	if (r < 0)
		return r;
	r = publish_slot(h, s->run, &p);
	nethost_unlock(h);
	return r;
}

/* ---- down --------------------------------------------------------------- */

/* What the sandbox began, and what it was to answer. */
static int forget(const struct plan *p)
{
	int r = link_forget(0, "-s", p->outer);
	int again = link_forget(0, "-r", p->outer);

	return r < 0 ? r : again;
}

/* With a VMM that lives, by the end that is certainly its own; with a dead one
 * the link is gone or about to be, unless somebody holds the namespace. */
static int remove_link(const struct nethost *h, int dir, const struct plan *p)
{
	struct proc vmm;
	AUTO_CLOSE int netns = -1;
	int r = 0;

	if (proc_read(dir, "vmm", &vmm) == 0 && proc_alive(&vmm))
		netns = link_netns(&vmm);
	if (netns >= 0)
		r = link_drop(netns);
	return r < 0 ? r : link_remove(p->link, h->run_path);
}

/* Under LOCK_EX.  Whatever fails, the rest is tried. */
static int take_down(struct nethost *h, int dir, const struct plan *p)
{
	int r, result = 0;

	if (faccessat(dir, "open", F_OK, 0) == 0)
		result = nethost_publish(h, p, NULL, 0);
	r = remove_link(h, dir, p);
	if (result == 0)
		result = r;
	r = forget(p);
	if (result == 0)
		result = r;
	if (result == 0 && ((unlinkat(dir, "open", 0) < 0 && errno != ENOENT) ||
			    (unlinkat(dir, "net", 0) < 0 && errno != ENOENT)))
		return fail_errno(EX_IOERR,
				  "cannot note the end of the "
				  "network of '%s'",
				  p->name);
	return result;
}

int net_down(struct nethost *h, int dir, int slot, const char *name)
{
	struct plan p;
	int r;

	if (faccessat(dir, "net", F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	plan_make(&p, slot, name, h->run_path, h->want.net);
	read_outer(dir, &p);
	r = nethost_lock(h, LOCK_EX);
	if (r < 0)
		return r;
	r = take_down(h, dir, &p);
	nethost_unlock(h);
	return r;
}

int net_cut(const struct plan *p, const struct port *port)
{
	char number[8];

	snprintf(number, sizeof(number), "%u", port->host);
	return link_forget_port(p->outer, port->udp ? "udp" : "tcp", number);
}

/* ---- policy ------------------------------------------------------------- */

int net_policy(struct nethost *h, struct sandbox *s)
{
	struct plan p = {0};
	AUTO_CLOSE int netns = -1;
	int r = net_plan(h, s, &p);

	if (r < 0)
		return r;
	netns = link_netns(&s->vmm);
	if (netns < 0)
		return fail_errno(EX_CANTCREAT,
				  "cannot find the namespace of '%s'", s->name);
	r = load_rules(h, &p, netns);
	if (r == 0 && p.open)
		r = forward_uplinks(true, NULL, 0);
	/* What was open before must not stay open: on both tables, or the far
	 * end goes on as if it had called us. */
	if (r == 0 && !p.open)
		r = link_forget(netns, "-s", GUEST_ADDRESS);
	if (r == 0 && !p.open)
		r = link_forget(0, "-s", p.outer);
	return r;
}

/* ---- gc ----------------------------------------------------------------- */

struct garbage {
	struct nethost *h;
	bool live[SLOT_MAX + 2];
	bool seen[SLOT_MAX + 2]; /* has published ports */
};

static void note_seen(int slot, void *data)
{
	struct garbage *g = data;

	if (slot <= SLOT_MAX)
		g->seen[slot] = true;
}

static int tidy_slot(struct slot *slot, void *data)
{
	struct garbage *g = data;
	struct plan p;
	int r;

	g->live[slot->number] = slot->alive || slot->held;
	if (g->live[slot->number] || faccessat(slot->dir, "net", F_OK, 0) < 0)
		return 0;
	plan_make(&p, slot->number, slot->name, g->h->run_path, g->h->want.net);
	read_outer(slot->dir, &p);
	r = take_down(g->h, slot->dir, &p);
	if (r == 0)
		printf("removed network of slot %04x\n",
		       (unsigned)slot->number);
	return r;
}

static int tidy_link(int slot, void *data)
{
	struct garbage *g = data;
	struct plan p;
	int r;

	if (slot < 1 || slot > SLOT_MAX || g->live[slot])
		return 0;
	plan_make(&p, slot, "", g->h->run_path, g->h->want.net);
	r = link_remove(p.link, g->h->run_path);
	if (r == 0)
		r = forget(&p);
	if (r == 0)
		printf("removed link %s\n", p.link);
	return r;
}

static int tidy_rules(struct garbage *g)
{
	int result = 0;

	for (int i = 1; i <= SLOT_MAX; i++) {
		struct plan p;
		int r;

		if (!g->seen[i] || g->live[i])
			continue;
		plan_make(&p, i, "", g->h->run_path, g->h->want.net);
		r = nethost_publish(g->h, &p, NULL, 0);
		if (r == 0)
			r = forget(&p);
		if (r == 0)
			printf("removed published ports of slot %04x\n",
			       (unsigned)i);
		if (result == 0)
			result = r;
	}
	return result;
}

static int collect(struct garbage *g)
{
	AUTO_FREE char *save = NULL;
	char mark[16];
	int r, result = each_slot(g->h->run, tidy_slot, g);

	r = link_each(g->h->run_path, tidy_link, g);
	if (result == 0)
		result = r;
	r = nethost_save(g->h, "nat", &save);
	if (r < 0)
		return r;
	plan_mark(g->h->run_path, mark);
	chains_slots(save, mark, note_seen, g);
	r = tidy_rules(g);
	return result < 0 ? result : r;
}

/* Under LOCK_EX from the first look to the last removal: no link is made
 * meanwhile, so none is taken for what it was before. */
int net_gc(struct nethost *h)
{
	AUTO_FREE struct garbage *g = calloc(1, sizeof(*g));
	int r;

	if (!g)
		return fail_errno(EX_OSERR, "cannot look for what is left");
	g->h = h;
	r = nethost_lock(h, LOCK_EX);
	if (r < 0)
		return r;
	r = collect(g);
	nethost_unlock(h);
	return r;
}
