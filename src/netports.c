/*
 * netports.c - change which ports are published.
 *
 * The order of publish on a running sandbox: the keeper reserves (nobody else
 * has the port), slot/ports, vm/NAME/publish (it comes back at the next start),
 * the rule.  Killed in between, it leaves a port that is reserved or on a list
 * and closed; the next `ark-net open` makes it whole.  Unpublish goes
 * backwards, so a rule never outlives its reservation.
 */
#include "netports.h"
#include "keeper-sock.h"

#include <errno.h>

struct list {
	struct port at[PORTS_MAX];
	size_t n;
};

static int read_list(struct list *l, int dir, const char *file,
		     const struct sandbox *s)
{
	int n = ports_read(dir, file, l->at, PORTS_MAX);

	if (n < 0)
		return fail_errno(EX_DATAERR, "cannot read the ports of '%s'",
				  s->name);
	l->n = (size_t)n;
	return 0;
}

static int write_list(const struct list *l, int dir, const char *file,
		      const struct sandbox *s)
{
	if (ports_write(dir, file, l->at, l->n) < 0)
		return fail_errno(EX_IOERR, "cannot record the ports of '%s'",
				  s->name);
	return 0;
}

/* Both lists, and whether the second counts. */
struct published {
	struct list wanted; /* vm/NAME/publish */
	struct list held;   /* slot/ports */
	bool runs;
};

static int read_both(struct published *p, const struct sandbox *s)
{
	int r = read_list(&p->wanted, s->dir, "publish", s);

	p->runs = s->state == VM_RUNNING || s->state == VM_PAUSED;
	if (r < 0 || !p->runs)
		return r;
	return read_list(&p->held, s->run, "ports", s);
}

static int write_both(const struct published *p, const struct sandbox *s)
{
	int r = p->runs ? write_list(&p->held, s->run, "ports", s) : 0;

	return r < 0 ? r : write_list(&p->wanted, s->dir, "publish", s);
}

/* Load the rules of slot/ports, unless `open` is still to come. */
static int load(const struct published *p, struct sandbox *s)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	int r;

	if (!p->runs || s->starting)
		return 0;
	r = nethost_open(&h);
	return r < 0 ? r : net_open(&h, s);
}

/* ---- the keeper --------------------------------------------------------- */

static int ask(const struct sandbox *s, const char *verb,
	       const struct port *port, char *answer, size_t size)
{
	char request[64];

	snprintf(request, sizeof(request), "%s %s %s %u", verb,
		 port->udp ? "udp" : "tcp", port->address, port->host);
	return keeper_ask(s, request, answer, size);
}

static int reserve_port(const struct sandbox *s, struct port *port)
{
	char answer[KEEPER_PACKET], clean[KEEPER_PACKET];
	const char *why;
	long long number;
	int r = ask(s, "reserve", port, answer, sizeof(answer));

	if (r < 0)
		return r;
	if (strncmp(answer, "ok ", 3) == 0 &&
	    parse_num(answer + 3, 1, 65535, &number, &why)) {
		port->host = (uint16_t)number;
		return 0;
	}
	printable(clean, sizeof(clean), answer);
	return fail(EX_UNAVAILABLE, "cannot publish: %s",
		    strncmp(clean, "busy ", 5) == 0 ? clean + 5 : clean);
}

/* It may be that nobody is there to hold it any more: then it is free. */
static void release_port(const struct sandbox *s, const struct port *port)
{
	char answer[KEEPER_PACKET];

	if (s->keeper_alive)
		ask(s, "release", port, answer, sizeof(answer));
}

/* ---- publish ------------------------------------------------------------ */

static int check_new(const struct list *l, const struct port *port,
		     const struct sandbox *s)
{
	if (l->n == PORTS_MAX)
		return fail(EX_USAGE, "more than %d ports", PORTS_MAX);
	for (size_t i = 0; i < l->n; i++)
		if (port_clash(&l->at[i], port))
			return fail(EX_CANTCREAT,
				    "sandbox '%s' has port %u of %s already",
				    s->name, port->host, l->at[i].address);
	return 0;
}

static int add_port(struct published *p, const struct sandbox *s,
		    struct port *port)
{
	const struct port typed = *port;
	int r = check_new(&p->wanted, port, s);

	if (r == 0 && p->runs)
		r = check_new(&p->held, port, s);
	if (r == 0 && p->runs)
		r = reserve_port(s, port);
	if (r < 0)
		return r;
	p->wanted.at[p->wanted.n++] = typed;
	if (p->runs)
		p->held.at[p->held.n++] = *port;
	return 0;
}

static void undo(const struct published *before, const struct sandbox *s,
		 const struct port *ports, size_t n)
{
	write_both(before, s);
	for (size_t i = 0; before->runs && i < n; i++)
		release_port(s, &ports[i]);
}

int net_publish(struct sandbox *s, struct port *ports, size_t n)
{
	AUTO_FREE struct published *p = calloc(2, sizeof(*p));
	char text[PORT_TEXT_MAX];
	size_t done = 0;
	int r;

	if (!p)
		return fail_errno(EX_OSERR, "cannot publish");
	r = read_both(p, s);
	if (r < 0)
		return r;
	p[1] = p[0];
	while (r == 0 && done < n) {
		r = add_port(p, s, &ports[done]);
		done += r == 0;
	}
	if (r == 0)
		r = write_both(p, s);
	if (r == 0)
		r = load(p, s);
	if (r < 0) {
		undo(&p[1], s, ports, done);
		return r;
	}
	for (size_t i = 0; i < n; i++) {
		port_show(&ports[i], text);
		puts(text);
	}
	return 0;
}

/* ---- unpublish ---------------------------------------------------------- */

static void drop(struct list *l, size_t i)
{
	l->n--;
	memmove(&l->at[i], &l->at[i + 1], (l->n - i) * sizeof(l->at[0]));
}

/* What was wanted when this was chosen. */
static void drop_wanted(struct list *l, const struct port *held)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct port *w = &l->at[i];

		if (w->udp == held->udp && w->guest == held->guest &&
		    (w->host == held->host || w->host == 0) &&
		    strcmp(w->address, held->address) == 0) {
			drop(l, i);
			return;
		}
	}
}

static int close_port(struct published *p, struct sandbox *s,
		      const struct port *port)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	struct plan plan;
	int r = write_list(&p->held, s->run, "ports", s);

	if (r == 0)
		r = load(p, s);
	if (r == 0)
		r = nethost_open(&h);
	if (r == 0)
		r = net_plan(&h, s, &plan);
	if (r == 0)
		r = net_cut(&plan, port);
	if (r == 0)
		release_port(s, port);
	return r;
}

int net_unpublish(struct sandbox *s, uint16_t host, bool udp)
{
	AUTO_FREE struct published *p = calloc(1, sizeof(*p));
	struct list *list;
	size_t found = 0;
	int r;

	if (!p)
		return fail_errno(EX_OSERR, "cannot unpublish");
	r = read_both(p, s);
	if (r < 0)
		return r;
	list = p->runs ? &p->held : &p->wanted;
	for (size_t i = 0; r == 0 && i < list->n;) {
		const struct port port = list->at[i];

		if (port.host != host || port.udp != udp) {
			i++;
			continue;
		}
		found++;
		drop(list, i);
		if (p->runs) {
			drop_wanted(&p->wanted, &port);
			r = close_port(p, s, &port);
		}
	}
	if (r == 0 && found == 0)
		return fail(EX_NOINPUT, "sandbox '%s' has no port %u/%s",
			    s->name, host, udp ? "udp" : "tcp");
	return r < 0 ? r : write_list(&p->wanted, s->dir, "publish", s);
}
