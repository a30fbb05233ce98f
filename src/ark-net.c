/*
 * ark-net - the network of sandboxes.  ark-net(1) is the manual.
 *
 * up, prepare, open and down are run by whoever runs the VM, who holds its
 * lock; publish, unpublish and policy take it themselves.
 */
#include "netports.h"
#include "netfacts.h"

#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <sys/file.h>

static const char usage[] =
	"ark-net "
	"init|check|gc|up|prepare|open|down|plan|show|publish|unpublish|"
	"policy "
	"[NAME [WORD...]]";

static const char help[] =
	"Usage: ark-net init | check | gc\n"
	"       ark-net up|prepare|open|down|plan NAME\n"
	"       ark-net show [--json] NAME\n"
	"       ark-net publish NAME "
	"[[ADDRESS:]PORT:]GUESTPORT[/udp][=WHAT]...\n"
	"       ark-net unpublish NAME PORT[/udp]...\n"
	"       ark-net policy NAME open|none\n"
	"\n"
	"The network of sandboxes: the host's firewall, the way in and out of\n"
	"each, published ports.\n"
	"\n"
	"  init       make the host's chains right, and all published ports\n"
	"  check      say what is not right with them\n"
	"  gc         remove what belongs to no running sandbox\n"
	"  up         connect a sandbox whose VM has been started\n"
	"  prepare    the same, but no packet passes before open\n"
	"  open       open its published ports\n"
	"  down       remove all that it has on the host\n"
	"  plan       print what up and open feed to other programs\n"
	"  show       print address, policy, limits and published ports\n"
	"  publish    make ports of the guest reachable on the host\n"
	"  unpublish  close ports of the host again\n"
	"  policy     what the guest may reach: the internet or nothing\n"
	"\n"
	"      --json     show: one JSON object\n"
	"  -h, --help     show this and exit\n"
	"      --version  show the version and exit\n";

/* ---- up, open, down, policy --------------------------------------------- */

static int with_host(struct sandbox *s,
		     int (*work)(struct nethost *h, struct sandbox *s))
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	int r = nethost_open(&h);

	return r < 0 ? r : work(&h, s);
}

static int down(struct nethost *h, struct sandbox *s)
{
	return s->slot ? net_down(h, s->run, s->slot, s->name) : 0;
}

static int verb_up(struct sandbox *s, int n, char **words)
{
	(void)n;
	(void)words;
	return with_host(s, net_up);
}

static int verb_prepare(struct sandbox *s, int n, char **words)
{
	(void)n;
	(void)words;
	return with_host(s, net_prepare);
}

static int verb_open(struct sandbox *s, int n, char **words)
{
	(void)n;
	(void)words;
	return with_host(s, net_open);
}

static int verb_down(struct sandbox *s, int n, char **words)
{
	(void)n;
	(void)words;
	return with_host(s, down);
}

static int verb_policy(struct sandbox *s, int n, char **words)
{
	int r;

	(void)n;
	if (strcmp(words[0], "open") != 0 && strcmp(words[0], "none") != 0)
		return fail(EX_USAGE, "bad policy '%s': neither open nor none",
			    words[0]);
	r = sandbox_lock(s);
	if (r < 0)
		return r;
	if (write_value(s->dir, "policy", "%s", words[0]) < 0)
		return fail_errno(EX_IOERR, "cannot record the policy of '%s'",
				  s->name);
	return s->state == VM_RUNNING || s->state == VM_PAUSED
		       ? with_host(s, net_policy)
		       : 0;
}

/* ---- publish ------------------------------------------------------------ */

static int verb_publish(struct sandbox *s, int n, char **words)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	size_t count = 0;
	const char *why;
	int r = 0;

	if (!ports)
		return fail_errno(EX_OSERR, "cannot publish");
	for (int i = 0; i < n; i++) {
		int more = port_parse(words[i], ports + count,
				      PORTS_MAX - count, &why);

		if (more == 0)
			return fail(EX_USAGE, "bad port '%s': %s", words[i],
				    why);
		count += (size_t)more;
	}
	r = sandbox_lock(s);
	return r < 0 ? r : net_publish(s, ports, count);
}

static int unpublish_one(struct sandbox *s, const char *word)
{
	char number[8];
	size_t len = strcspn(word, "/");
	const char *why;
	long long port;
	bool udp = strcmp(word + len, "/udp") == 0;

	snprintf(number, sizeof(number), "%.*s", (int)len, word);
	if (len >= sizeof(number) ||
	    !parse_num(number, 1, 65535, &port, &why) ||
	    (word[len] && !udp && strcmp(word + len, "/tcp") != 0))
		return fail(EX_USAGE, "bad port '%s': not PORT or PORT/udp",
			    word);
	return net_unpublish(s, (uint16_t)port, udp);
}

static int verb_unpublish(struct sandbox *s, int n, char **words)
{
	int result = sandbox_lock(s);

	for (int i = 0; i < n && result != -EX_NOINPUT; i++) {
		int r = unpublish_one(s, words[i]);

		if (result == 0)
			result = r;
	}
	return result;
}

/* ---- show, plan --------------------------------------------------------- */

static bool as_json;

struct facts {
	struct plan plan;
	struct port ports[PORTS_MAX];
	size_t n;
};

/* Of a sandbox without a slot there is no address, and its ports are wishes. */
static int gather(struct facts *f, struct sandbox *s, struct nethost *h)
{
	int n;
	int r = net_settings(s, &f->plan);

	if (r == 0 && s->slot)
		r = net_plan(h, s, &f->plan);
	if (r < 0)
		return r;
	snprintf(f->plan.dns, sizeof(f->plan.dns), "%s", h->want.dns);
	n = s->slot ? ports_read(s->run, "ports", f->ports, PORTS_MAX)
		    : ports_read(s->dir, "publish", f->ports, PORTS_MAX);
	if (n < 0)
		return fail_errno(EX_DATAERR, "cannot read the ports of '%s'",
				  s->name);
	f->n = (size_t)n;
	return 0;
}

static json_t *text_or_null(const char *text)
{
	return *text ? json_string(text) : json_null();
}

static json_t *port_json(const struct port *p)
{
	return json_pack("{s:s, s:s, s:o, s:i, s:o}", "protocol",
			 p->udp ? "udp" : "tcp", "address", p->address, "host",
			 p->host ? json_integer(p->host) : json_null(), "guest",
			 p->guest, "what", text_or_null(p->what));
}

static int show_json(const struct facts *f, const struct sandbox *s)
{
	const struct plan *p = &f->plan;
	json_t *ports = json_array();
	json_t *all;
	int r;

	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(ports, port_json(&f->ports[i]));
	all = json_pack(
		"{s:s, s:o, s:s, s:o, s:o, s:o}", "name", s->name, "address",
		text_or_null(p->outer), "policy", p->open ? "open" : "none",
		"rate",
		p->rate ? json_integer((json_int_t)p->rate) : json_null(),
		"dns", text_or_null(p->open ? p->dns : ""), "ports", ports);
	r = all ? json_dumpf(all, stdout, JSON_COMPACT) : -1;
	json_decref(all);
	puts("");
	return r < 0 ? fail(EX_OSERR, "cannot print") : 0;
}

static void show_text(const struct facts *f)
{
	const struct plan *p = &f->plan;
	char text[PORT_TEXT_MAX];

	printf("address  %s\n", *p->outer ? p->outer : "-");
	printf("policy   %s\n", p->open ? "open" : "none");
	if (p->rate)
		printf("rate     %llu bit/s\n", (unsigned long long)p->rate);
	printf("dns      %s\n", p->open && *p->dns ? p->dns : "-");
	for (size_t i = 0; i < f->n; i++) {
		port_show(&f->ports[i], text);
		printf("port     %s\n", text);
	}
}

static int verb_show(struct sandbox *s, int n, char **words)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	AUTO_FREE struct facts *f = calloc(1, sizeof(*f));
	int r;

	(void)n;
	(void)words;
	if (!f)
		return fail_errno(EX_OSERR, "no memory");
	r = nethost_open(&h);
	if (r == 0)
		r = gather(f, s, &h);
	if (r < 0)
		return r;
	if (as_json)
		return show_json(f, s);
	show_text(f);
	return 0;
}

static int verb_plan(struct sandbox *s, int n, char **words)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	AUTO_FREE struct facts *f = calloc(1, sizeof(*f));
	const struct plan *p;
	int r;

	(void)n;
	(void)words;
	if (!f)
		return fail_errno(EX_OSERR, "no memory");
	p = &f->plan;
	r = nethost_open(&h);
	if (r == 0 && !s->slot)
		r = net_plan(&h, s, &f->plan);
	if (r == 0)
		r = gather(f, s, &h);
	if (r < 0)
		return r;
	puts("# on the host: iptables-restore --noflush, what is missing of");
	chains_mend(&h.want, "", stdout);
	puts("# on the host: ip6tables-restore --noflush, likewise");
	chains6_mend("", stdout);
	puts("# in the namespace: iptables-restore");
	plan_rules(p, stdout);
	puts("# in the namespace: below /proc/sys/net");
	plan_inside_sysctl(stdout);
	puts("# in the namespace: ip -batch");
	plan_inside(p, "HOST", stdout);
	puts("# in the namespace: tc -batch");
	plan_shape(p, stdout);
	puts("# on the host: below /proc/sys/net");
	plan_host_sysctl(p, stdout);
	puts("# on the host: ip -batch");
	plan_mark_link(p, stdout);
	plan_host(p, stdout);
	puts("# on the host, open: iptables-restore --noflush\n*nat");
	for (size_t i = 0; i < f->n; i++)
		plan_port(p, &f->ports[i], stdout);
	puts("COMMIT");
	return 0;
}

/* ---- verbs -------------------------------------------------------------- */

static const struct verb {
	const char *name;
	int words, most; /* behind NAME */
	int (*run)(struct sandbox *s, int n, char **words);
} verbs[] = {
	{"up", 0, 0, verb_up},
	{"prepare", 0, 0, verb_prepare},
	{"open", 0, 0, verb_open},
	{"down", 0, 0, verb_down},
	{"plan", 0, 0, verb_plan},
	{"show", 0, 0, verb_show},
	{"publish", 1, PORTS_MAX, verb_publish},
	{"unpublish", 1, PORTS_MAX, verb_unpublish},
	{"policy", 1, 1, verb_policy},
};

static int check(struct nethost *h)
{
	int r = nethost_lock(h, LOCK_SH);

	return r < 0 ? r : nethost_check(h);
}

static int for_host(const char *verb)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	int (*work)(struct nethost * h) = strcmp(verb, "init") == 0 ? net_init
					  : strcmp(verb, "gc") == 0 ? net_gc
								    : check;
	int r = nethost_open(&h);

	return r < 0 ? r : work(&h);
}

static int for_sandbox(int n, char **words)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const struct verb *verb = NULL;
	int r;

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(words[0], verbs[i].name) == 0)
			verb = &verbs[i];
	if (!verb)
		return fail(EX_USAGE, "no such command '%s' (try --help)",
			    words[0]);
	if (n < 2 + verb->words || n > 2 + verb->most)
		die_usage(usage);
	r = sandbox_open(&s, words[1]);
	return r < 0 ? r : verb->run(&s, n - 2, words + 2);
}

/* Who starts us may have a user's PATH. */
static void find_system_programs(void)
{
	char path[4096];
	const char *now = getenv("PATH");

	snprintf(path, sizeof(path), "%s%s/usr/sbin:/sbin:/usr/bin:/bin",
		 now ? now : "", now && *now ? ":" : "");
	setenv("PATH", path, 1);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	static const char *const alone[] = {"init", "check", "gc"};
	int c;

	progname = "ark-net";
	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(help, stdout);
			return finish(0);
		}
		if (c == 'v') {
			printf("ark-net %s\n", ARK_VERSION);
			return finish(0);
		}
		if (c != 'j')
			die_option(argv);
		as_json = true;
	}
	argc -= optind;
	argv += optind;
	if (argc < 1)
		die_usage(usage);
	if (as_json && strcmp(argv[0], "show") != 0)
		die(EX_USAGE, "%s does not take '--json' (try --help)",
		    argv[0]);
	find_system_programs();
	for (size_t i = 0; i < ARRAY_LEN(alone); i++) {
		if (strcmp(argv[0], alone[i]) != 0)
			continue;
		if (argc > 1)
			die_usage(usage);
		return finish(for_host(argv[0]));
	}
	return finish(for_sandbox(argc, argv));
}
