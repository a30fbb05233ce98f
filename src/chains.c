/*
 * chains.c - ark's chains on the host.  Pure.
 *
 * 1. Never a table is flushed, never a rule touched that is not ours: chains
 *    that begin with ARK-, and rules of the built-in ones that jump to them.
 * 2. A chain of ours is declared anew and filled in the same transaction, so
 *    there is no moment without it.  ARK-PF is only declared when it is not
 *    there: its rules are the published ports.
 * 3. Each rule of ours carries a hash of all of them.  A rule that is missing,
 *    one too many, another resolver, another version of this file: the count of
 *    rules with the right hash is not what it should be.  Comparing the rules
 *    themselves would depend on how a version of iptables prints them.
 * 4. The jumps of FORWARD and INPUT are inserted before all others: a policy
 *    DROP or an earlier rule of Docker's or ufw's does not end what we accept.
 *    What we drop, the namespace has dropped before.
 * 5. -s 127/8 leaves as NEXT_HOP, not masqueraded: that would need an address
 *    of the host, and a host without a network has none.
 */
#include "chains.h"

#define PF "ARK-PF"

struct scan {
	const char *at;
	char table[16];
	char line[1024];
};

static bool next_line(struct scan *s)
{
	size_t len, kept;

	if (!*s->at)
		return false;
	len = strcspn(s->at, "\n");
	kept = len < sizeof(s->line) ? len : sizeof(s->line) - 1;
	memcpy(s->line, s->at, kept);
	s->line[kept] = '\0';
	s->at += len + (s->at[len] == '\n');
	if (s->line[0] == '*')
		snprintf(s->table, sizeof(s->table), "%.15s", s->line + 1);
	return true;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t len = strlen(text), tail = strlen(with);

	return len >= tail && strcmp(text + len - tail, with) == 0;
}

/* ---- what should be ----------------------------------------------------- */

/* tag: " -m comment --comment ark-HASH", or "" while that is computed. */
static void put_raw(const struct chains *c, const char *tag, FILE *out)
{
	(void)c;
	fprintf(out,
		"-A ARK-RAW -d 127.0.0.0/8%s -j DROP\n"
		"-A ARK-RAW -m rpfilter --invert%s -j DROP\n",
		tag, tag);
}

static void put_post(const struct chains *c, const char *tag, FILE *out)
{
	fprintf(out,
		"-A ARK-POST -s %u.%u.0.0/16 ! -o " LINK_PREFIX
		"+%s -j MASQUERADE\n"
		"-A ARK-POST -s 127.0.0.0/8 -o " LINK_PREFIX
		"+%s -j SNAT --to-source " NEXT_HOP "\n",
		c->net >> 24, c->net >> 16 & 255, tag, tag);
}

static void put_dns(const struct chains *c, const char *chain, const char *tag,
		    FILE *out)
{
	if (*c->dns)
		fprintf(out,
			"-A %s -d %s/32 -p udp --dport 53%s -j ACCEPT\n"
			"-A %s -d %s/32 -p tcp --dport 53%s -j ACCEPT\n",
			chain, c->dns, tag, chain, c->dns, tag);
}

static void put_forward(const struct chains *c, const char *tag, FILE *out)
{
	(void)c;
	fprintf(out,
		"-A ARK-FWD -m conntrack --ctstate RELATED,ESTABLISHED%s "
		"-j ACCEPT\n"
		"-A ARK-FWD -i " LINK_PREFIX "+%s -g ARK-FROM\n"
		"-A ARK-FWD -m conntrack --ctstate DNAT%s -j ACCEPT\n"
		"-A ARK-FWD%s -j DROP\n",
		tag, tag, tag, tag);
}

static void put_from(const struct chains *c, const char *tag, FILE *out)
{
	fprintf(out, "-A ARK-FROM -o " LINK_PREFIX "+%s -j DROP\n", tag);
	put_dns(c, "ARK-FROM", tag, out);
	for (size_t i = 0; private_networks[i]; i++)
		fprintf(out, "-A ARK-FROM -d %s%s -j DROP\n",
			private_networks[i], tag);
	fprintf(out, "-A ARK-FROM%s -j ACCEPT\n", tag);
}

static void put_input(const struct chains *c, const char *tag, FILE *out)
{
	fprintf(out,
		"-A ARK-IN -m conntrack --ctstate RELATED,ESTABLISHED%s "
		"-j ACCEPT\n"
		"-A ARK-IN -p icmp --icmp-type echo-request -m limit "
		"--limit 5/second%s -j ACCEPT\n",
		tag, tag);
	put_dns(c, "ARK-IN", tag, out);
	fprintf(out, "-A ARK-IN%s -j DROP\n", tag);
}

static void put_raw6(const struct chains *c, const char *tag, FILE *out)
{
	(void)c;
	fprintf(out, "-A ARK-RAW%s -j DROP\n", tag);
}

/* put NULL: the chain only has to be there. */
struct chain {
	const char *table, *name;
	void (*put)(const struct chains *c, const char *tag, FILE *out);
};

struct jump {
	const char *table, *from, *match, *to;
	bool first;
};

static const struct chain chains4[] = {
	{"raw", "ARK-RAW", put_raw},
	{"nat", PF, NULL},
	{"nat", "ARK-POST", put_post},
	{"filter", "ARK-FROM", put_from},
	{"filter", "ARK-FWD", put_forward},
	{"filter", "ARK-IN", put_input},
	{NULL, NULL, NULL},
};

static const struct jump jumps4[] = {
	{"raw", "PREROUTING", "-i " LINK_PREFIX "+", "ARK-RAW", true},
	{"nat", "PREROUTING", "-m addrtype --dst-type LOCAL", PF, false},
	{"nat", "OUTPUT", "-m addrtype --dst-type LOCAL", PF, false},
	{"nat", "POSTROUTING", "", "ARK-POST", false},
	{"filter", "FORWARD", "-i " LINK_PREFIX "+", "ARK-FWD", true},
	{"filter", "FORWARD", "-o " LINK_PREFIX "+", "ARK-FWD", true},
	{"filter", "INPUT", "-i " LINK_PREFIX "+", "ARK-IN", true},
	{NULL, NULL, NULL, NULL, false},
};

static const struct chain chains6[] = {
	{"raw", "ARK-RAW", put_raw6},
	{NULL, NULL, NULL},
};

static const struct jump jumps6[] = {
	{"raw", "PREROUTING", "-i " LINK_PREFIX "+", "ARK-RAW", true},
	{NULL, NULL, NULL, NULL, false},
};

/* The rules of a chain as text; NULL when there is no memory for it. */
static char *rules_of(const struct chain *chain, const struct chains *c,
		      const char *tag)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	chain->put(c, tag, out);
	fclose(out);
	return text;
}

/* " -m comment --comment ark-HASH" over all rules. */
static void make_tag(const struct chain *list, const struct chains *c,
		     char tag[64])
{
	uint32_t hash = 0;

	for (; list->name; list++) {
		AUTO_FREE char *text = list->put ? rules_of(list, c, "") : NULL;

		hash = hash * 31 + plan_hash(text ? text : list->name);
	}
	snprintf(tag, 64, " -m comment --comment ark-%08x", hash);
}

/* ---- what is ------------------------------------------------------------ */

static bool chain_there(const struct chain *chain, const char *save)
{
	struct scan s = {.at = save};
	char start[32];

	snprintf(start, sizeof(start), ":%s ", chain->name);
	while (next_line(&s))
		if (strcmp(s.table, chain->table) == 0 && begins(s.line, start))
			return true;
	return false;
}

static bool chain_right(const struct chain *chain, const struct chains *c,
			const char *tag, const char *save)
{
	struct scan s = {.at = save};
	AUTO_FREE char *text = chain->put ? rules_of(chain, c, tag) : NULL;
	size_t want = 0, all = 0, good = 0;
	char start[32];

	if (!chain_there(chain, save))
		return false;
	if (!chain->put)
		return true;
	for (const char *at = text; at && *at; at++)
		want += *at == '\n';
	snprintf(start, sizeof(start), "-A %s ", chain->name);
	while (next_line(&s)) {
		if (strcmp(s.table, chain->table) != 0 ||
		    !begins(s.line, start))
			continue;
		all++;
		good += strstr(s.line, tag) != NULL;
	}
	return want > 0 && good == want && all == want;
}

static bool is_jump(const struct jump *j, const struct scan *s)
{
	char start[32], end[32];

	snprintf(start, sizeof(start), "-A %s ", j->from);
	snprintf(end, sizeof(end), " -j %s", j->to);
	return strcmp(s->table, j->table) == 0 && begins(s->line, start) &&
	       ends(s->line, end) && strstr(s->line, j->match) &&
	       strstr(s->line, "--comment ark ");
}

static size_t count_jumps(const struct jump *j, const char *save)
{
	struct scan s = {.at = save};
	size_t n = 0;

	while (next_line(&s))
		n += is_jump(j, &s);
	return n;
}

/* ---- from the one to the other ------------------------------------------ */

static void mend_jump(const struct jump *j, const char *save, FILE *out)
{
	struct scan s = {.at = save};
	size_t n = count_jumps(j, save);

	/* As many as there are, less one, by the line that names them. */
	while (n > 1 && next_line(&s)) {
		if (!is_jump(j, &s))
			continue;
		fprintf(out, "-D %s\n", s.line + strlen("-A "));
		n--;
	}
	if (n == 0)
		fprintf(out, "%s %s%s%s -m comment --comment ark -j %s\n",
			j->first ? "-I" : "-A", j->from, *j->match ? " " : "",
			j->match, j->to);
}

static void mend_table(const char *table, const struct chain *chains,
		       const struct jump *jumps, const struct chains *c,
		       const char *save, FILE *out)
{
	char tag[64];

	make_tag(chains, c, tag);
	fprintf(out, "*%s\n", table);
	for (const struct chain *i = chains; i->name; i++)
		if (strcmp(i->table, table) == 0 &&
		    !chain_right(i, c, tag, save))
			fprintf(out, ":%s - [0:0]\n", i->name);
	for (const struct chain *i = chains; i->name; i++)
		if (strcmp(i->table, table) == 0 && i->put &&
		    !chain_right(i, c, tag, save))
			i->put(c, tag, out);
	for (const struct jump *j = jumps; j->table; j++)
		if (strcmp(j->table, table) == 0)
			mend_jump(j, save, out);
	fprintf(out, "COMMIT\n");
}

static bool all_ok(const struct chain *chains, const struct jump *jumps,
		   const struct chains *c, const char *save, char *why,
		   size_t size)
{
	char tag[64];

	make_tag(chains, c, tag);
	for (; chains->name; chains++) {
		if (chain_right(chains, c, tag, save))
			continue;
		snprintf(why, size,
			 "chain %s of table %s is not as it should "
			 "be",
			 chains->name, chains->table);
		return false;
	}
	for (; jumps->table; jumps++) {
		size_t n = count_jumps(jumps, save);

		if (n == 1)
			continue;
		snprintf(why, size, "%s of table %s jumps to %s %zu times",
			 jumps->from, jumps->table, jumps->to, n);
		return false;
	}
	return true;
}

bool chains_ok(const struct chains *c, const char *save, char *why, size_t size)
{
	return all_ok(chains4, jumps4, c, save, why, size);
}

void chains_mend(const struct chains *c, const char *save, FILE *out)
{
	char why[128];

	if (chains_ok(c, save, why, sizeof(why)))
		return;
	mend_table("raw", chains4, jumps4, c, save, out);
	mend_table("nat", chains4, jumps4, c, save, out);
	mend_table("filter", chains4, jumps4, c, save, out);
}

bool chains6_ok(const char *save)
{
	const struct chains none = {0};
	char why[128];

	return all_ok(chains6, jumps6, &none, save, why, sizeof(why));
}

void chains6_mend(const char *save, FILE *out)
{
	const struct chains none = {0};

	if (!chains6_ok(save))
		mend_table("raw", chains6, jumps6, &none, save, out);
}

bool chains_any(const char *save)
{
	return begins(save, ":ARK-") || strstr(save, "\n:ARK-");
}

/* ---- published ports ---------------------------------------------------- */

/* The comment of a rule of ARK-PF; NULL when it is another line. */
static const char *pf_comment(const struct scan *s)
{
	static const char mark[] = "--comment ";
	const char *at;

	if (strcmp(s->table, "nat") != 0 || !begins(s->line, "-A " PF " "))
		return NULL;
	at = strstr(s->line, mark);
	if (!at)
		return NULL;
	at += strlen(mark);
	return at + (*at == '"');
}

size_t chains_unpublish(const char *save, const char *comment, FILE *out)
{
	struct scan s = {.at = save};
	size_t n = 0;

	while (next_line(&s)) {
		const char *at = pf_comment(&s);

		if (!at || !begins(at, comment))
			continue;
		fprintf(out, "-D %s\n", s.line + strlen("-A "));
		n++;
	}
	return n;
}

void chains_slots(const char *save, const char *mark,
		  void (*each)(int slot, void *data), void *data)
{
	struct scan s = {.at = save};

	while (next_line(&s)) {
		const char *at = pf_comment(&s);
		char *end;
		long slot;

		if (!at || !begins(at, mark))
			continue;
		slot = strtol(at + strlen(mark), &end, 16);
		if (*end == ':' && slot > 0 && slot < 65536)
			each((int)slot, data);
	}
}
