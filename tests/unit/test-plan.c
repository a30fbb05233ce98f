/*
 * test-plan - the texts of the network: from slot and policy, from what a
 * firewall has to what it lacks.
 */
#include "tap.h"

#include "chains.h"
#include "netfacts.h"

#define NET 0x0a140000

static char *text;
static size_t text_len;

static FILE *begin(void)
{
	free(text);
	text = NULL;
	return open_memstream(&text, &text_len);
}

/* Lines of `text` that hold `part`. */
static int lines_with(const char *part)
{
	int n = 0;

	for (const char *at = text; at && *at;) {
		const char *end = strchr(at, '\n');
		char line[512];

		snprintf(line, sizeof(line), "%.*s",
			 (int)(end ? end - at : (long)strlen(at)), at);
		n += strstr(line, part) != NULL;
		at = end ? end + 1 : NULL;
	}
	return n;
}

static struct plan make(int slot, const char *name)
{
	struct plan p;

	plan_make(&p, slot, name, "/run/ark", NET);
	snprintf(p.dns, sizeof(p.dns), "192.0.2.53");
	p.open = true;
	return p;
}

static void test_arithmetic(void)
{
	static const struct {
		int slot;
		const char *outer, *link;
	} rows[] = {
		{1, "10.20.0.1", "ark0001"},
		{255, "10.20.0.255", "ark00ff"},
		{256, "10.20.1.0", "ark0100"},
		{65534, "10.20.255.254", "arkfffe"},
	};
	struct plan p, other;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		p = make(rows[i].slot, "x");
		is_str(p.outer, rows[i].outer, "address");
		is_str(p.link, rows[i].link, "link");
	}
	p = make(5, "web");
	ok(strncmp(p.comment, p.mark, strlen(p.mark)) == 0 &&
		   strcmp(p.comment + strlen(p.mark), "web") == 0,
	   "the comment is mark and name");
	plan_make(&other, 5, "web", "/run/ark2", NET);
	ok(strcmp(p.mark, other.mark) != 0, "another ARK_RUN, another mark");
}

static void test_rules(void)
{
	static const struct {
		const char *part;
		int open, none;
	} rows[] = {
		{":INPUT DROP", 1, 1},
		{":FORWARD DROP", 1, 1},
		{":OUTPUT DROP", 1, 1},
		{"COMMIT", 3, 3},
		{"-A USER -j ACCEPT", 1, 0},
		{"192.0.2.53", 4, 0},
		{"--dport 53", 6, 2},
		{"-d 169.254.0.0/16 -g DENY", 1, 1},
		{"-d 10.0.0.0/8 -g DENY", 1, 1},
		{"-d 224.0.0.0/3 -g DENY", 1, 1},
		{"-d 10.20.0.0/16 -g DENY", 1, 1},
		{"-d 198.51.100.1 -g DENY", 1, 1},
		{"-A FORWARD -i eth0 -p tcp --dport 1024 -j DROP", 1, 1},
		{"-A PREROUTING -i tap0 ! -s 10.0.2.2 -j DROP", 1, 1},
		{"-i eth0 -d 10.20.0.5 -j DNAT --to-destination 10.0.2.2", 1,
		 1},
		{"-s 10.0.2.2 -o eth0 -j SNAT --to-source 10.20.0.5", 1, 1},
	};
	struct plan p = make(5, "web");
	const char *agent, *known;

	snprintf(p.own[p.owned++], 16, "198.51.100.1");
	for (int open = 1; open >= 0; open--) {
		FILE *out = begin();

		p.open = open;
		plan_rules(&p, out);
		fclose(out);
		for (size_t i = 0; i < ARRAY_LEN(rows); i++)
			is_num(lines_with(rows[i].part),
			       open ? rows[i].open : rows[i].none,
			       rows[i].part);
		agent = strstr(text, "-A FORWARD -i eth0 -p tcp --dport 1024");
		known = strstr(text, "-A FORWARD -m conntrack");
		ok(agent && known && agent < known,
		   "the agent's port before what is known");
	}
}

static void test_links(void)
{
	struct plan p = make(5, "web");
	FILE *out = begin();

	plan_inside(&p, "/proc/1/ns/net", out);
	plan_mark_link(&p, out);
	plan_host(&p, out);
	fclose(out);
	is_str(text,
	       "link add eth0 address 02:00:0a:14:00:02 type veth peer name "
	       "ark0005 address 02:00:0a:14:00:01 netns /proc/1/ns/net\n"
	       "addr add 10.20.0.5/32 dev eth0\n"
	       "link set eth0 up\n"
	       "neigh replace 169.254.1.1 lladdr 02:00:0a:14:00:01 dev eth0 "
	       "nud permanent\n"
	       "route replace 169.254.1.1/32 dev eth0 scope link\n"
	       "route replace default via 169.254.1.1 dev eth0 src 10.20.0.5\n"
	       "link set dev ark0005 alias \"ark:561cfe30:0005:web\"\n"
	       "link set dev ark0005 up\n"
	       "neigh replace 10.20.0.5 lladdr 02:00:0a:14:00:02 dev ark0005 "
	       "nud permanent\n"
	       "route replace 10.20.0.5/32 dev ark0005\n",
	       "links");
	out = begin();
	plan_shape(&p, out);
	fclose(out);
	is_str(text, "", "no rate, no limit");
	out = begin();
	p.rate = 100000000;
	plan_shape(&p, out);
	fclose(out);
	is_str(text,
	       "qdisc replace dev eth0 root tbf rate 100000000bit burst "
	       "131072b latency 50ms\n"
	       "qdisc replace dev tap0 root tbf rate 100000000bit burst "
	       "131072b latency 50ms\n",
	       "a rate, both ways");
}

static void test_ports(void)
{
	static const struct {
		const char *spec, *rule;
	} rows[] = {
		{"8080:80", "-A ARK-PF -d 127.0.0.1/32 -p tcp --dport 8080 -m "
			    "comment --comment \"%s\" -j DNAT "
			    "--to-destination 10.20.0.5:80\n"},
		{"0.0.0.0:53:53/udp", "-A ARK-PF -p udp --dport 53 -m comment "
				      "--comment \"%s\" -j DNAT "
				      "--to-destination 10.20.0.5:53\n"},
	};
	struct plan p = make(5, "web");
	struct port port;
	const char *why;
	char want[512];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *at = strstr(rows[i].rule, "%s");
		FILE *out = begin();

		port_parse(rows[i].spec, &port, 1, &why);
		plan_port(&p, &port, out);
		fclose(out);
		snprintf(want, sizeof(want), "%.*s%s%s",
			 (int)(at - rows[i].rule), rows[i].rule, p.comment,
			 at + 2);
		is_str(text, want, rows[i].spec);
	}
}

/* ---- the host's chains -------------------------------------------------- */

static const struct chains want = {.net = NET, .dns = "192.0.2.53"};
static char why[256];

/* As iptables-save would print what was restored. */
static char *saved(const char *restored)
{
	char *copy = strdup(restored);

	for (char *at = copy; at && (at = strstr(at, "\n-I ")); at++)
		at[2] = 'A';
	return copy;
}

static char *mended(const char *save)
{
	FILE *out = begin();

	chains_mend(&want, save, out);
	fclose(out);
	return text;
}

static char *without_line(const char *from, const char *line, size_t len)
{
	char *copy = strdup(from);
	size_t at = (size_t)(line - from);

	if (copy)
		memmove(copy + at, copy + at + len,
			strlen(copy + at + len) + 1);
	return copy;
}

/* Each line of ours is missed, and what mends it names that table. */
static void test_each_line(const char *save)
{
	char table[16] = "";

	for (const char *line = save; *line;) {
		size_t len = strcspn(line, "\n") + 1;
		AUTO_FREE char *less = without_line(save, line, len);

		if (*line == '*')
			snprintf(table, sizeof(table), "%.*s", (int)len, line);
		if (*line == '-') {
			ok(!chains_ok(&want, less, why, sizeof(why)),
			   "missed: %.*s", (int)len - 1, line);
			ok(strstr(mended(less), table) != NULL, "mended");
		}
		line += len;
	}
}

static void test_chains(void)
{
	const struct chains other_dns = {.net = NET, .dns = "192.0.2.54"};
	const struct chains other_net = {.net = NET + 65536,
					 .dns = "192.0.2.53"};
	AUTO_FREE char *save = saved(mended(""));
	AUTO_FREE char *twice = NULL;
	AUTO_FREE char *strange = NULL;

	ok(!chains_ok(&want, "", why, sizeof(why)), "nothing is not right");
	ok(!chains_any(""), "and none is there");
	is_num(lines_with("COMMIT"), 3, "three tables");
	is_num(lines_with("-I "), 4, "four jumps are put first");
	ok(chains_ok(&want, save, why, sizeof(why)), "what was made is right");
	ok(chains_any(save), "and there");
	is_str(mended(save), "", "nothing to mend");
	ok(!chains_ok(&other_dns, save, why, sizeof(why)), "another resolver");
	ok(!chains_ok(&other_net, save, why, sizeof(why)), "another net");
	test_each_line(save);
	if (asprintf(&twice,
		     "%s*filter\n-A INPUT -i ark+ -m comment --comment ark "
		     "-j ARK-IN\n",
		     save) < 0 ||
	    asprintf(&strange, "%s*filter\n-A ARK-FROM -j ACCEPT\n", save) < 0)
		exit(99);
	ok(!chains_ok(&want, twice, why, sizeof(why)), "a jump twice");
	mended(twice);
	is_num(lines_with("-D INPUT -i ark+"), 1, "one of them goes");
	ok(!chains_ok(&want, strange, why, sizeof(why)), "a rule too many");
	mended(strange);
	is_num(lines_with(":ARK-FROM"), 1, "the chain is made anew");
	is_num(lines_with(":ARK-PF"), 0, "that of the ports is not");
}

static int slots_seen;

static void sum_slots(int slot, void *data)
{
	(void)data;
	slots_seen += slot;
}

static void test_unpublish(void)
{
	static const char save[] =
		"*nat\n"
		"-A ARK-PF -p tcp -m comment --comment \"ark:AA:0005:web\" -j "
		"DNAT --to-destination 10.20.0.5:80\n"
		"-A ARK-PF -p tcp -m comment --comment \"ark:AA:0005:w\" -j "
		"DNAT --to-destination 10.20.0.5:81\n"
		"-A ARK-PF -p tcp -m comment --comment \"ark:BB:0005:web\" -j "
		"DNAT --to-destination 10.20.0.5:82\n"
		"-A ARK-PF -p tcp -m comment --comment \"ark:AA:0006:web\" -j "
		"DNAT --to-destination 10.20.0.6:80\n"
		"-A ARK-PF -p tcp -j DNAT --to-destination 10.20.0.5:83\n"
		"-A OTHER -p tcp -m comment --comment \"ark:AA:0005:web\" -j "
		"DNAT --to-destination 10.20.0.5:84\n"
		"*filter\n"
		"-A ARK-PF -p tcp -m comment --comment \"ark:AA:0005:web\" -j "
		"DROP\n";
	FILE *out = begin();

	is_num((long long)chains_unpublish(save, "ark:AA:0005:", out), 2,
	       "two of that slot");
	fclose(out);
	is_str(text,
	       "-D ARK-PF -p tcp -m comment --comment \"ark:AA:0005:web\" -j "
	       "DNAT --to-destination 10.20.0.5:80\n"
	       "-D ARK-PF -p tcp -m comment --comment \"ark:AA:0005:w\" -j "
	       "DNAT --to-destination 10.20.0.5:81\n",
	       "by the lines that name them");
	chains_slots(save, "ark:AA:", sum_slots, NULL);
	is_num(slots_seen, 5 + 5 + 6, "the slots of one ARK_RUN");
}

static void test_six(void)
{
	FILE *out = begin();
	AUTO_FREE char *save = NULL;

	chains6_mend("", out);
	fclose(out);
	save = saved(text);
	ok(!chains6_ok(""), "IPv6: nothing is not right");
	ok(chains6_ok(save), "what was made is");
}

static void test_resolver(void)
{
	static const struct {
		const char *file, *address;
		bool loopback;
	} rows[] = {
		{"nameserver 192.0.2.1\n", "192.0.2.1", false},
		{"# x\nsearch a\nnameserver  192.0.2.1\nnameserver 192.0.2.2",
		 "192.0.2.1", false},
		{"nameserver 127.0.0.53\nnameserver 192.0.2.2\n", "192.0.2.2",
		 true},
		{"nameserver 127.0.0.53\noptions edns0\n", NULL, true},
		{"nameserver 2001:db8::1\nnameserver 192.0.2.2\n", "192.0.2.2",
		 false},
		{"nameserver ::1\n", NULL, false},
		{"#nameserver 192.0.2.1\n", NULL, false},
		{"nameserver 192.0.2.1 -j ACCEPT\n", "192.0.2.1", false},
		{"nameserver 192.0.2.256\nnameserver\n", NULL, false},
		{"", NULL, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char address[16] = "";
		bool loopback, found = parse_resolver(rows[i].file, address,
						      &loopback);

		ok(found == (rows[i].address != NULL), "%s", rows[i].file);
		if (rows[i].address)
			is_str(address, rows[i].address, "its address");
		ok(loopback == rows[i].loopback, "one on the loopback");
	}
}

int main(void)
{
	test_arithmetic();
	test_rules();
	test_links();
	test_ports();
	test_chains();
	test_unpublish();
	test_six();
	test_resolver();
	free(text);
	return done();
}
