/*
 * nethost.c - run iptables, and believe it only after reading back.
 *
 * 1. nft and legacy are two firewalls that do not see each other.  The one
 *    that was used first in this boot is recorded, and another one is refused
 *    while chains of ours are loaded in the first: rules that nobody finds
 *    again, and ports open twice, would be what is left.
 * 2. Not `iptables-restore` from PATH is run but the program that `iptables`
 *    is, by its real name with a word: three links that an administrator set
 *    at different times may lead to different back ends.
 */
#include "nethost.h"
#include "netfacts.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define LOCK_MS 60000

/* ---- the back end ------------------------------------------------------- */

/* "nft" or "legacy", or NULL. */
static const char *back_end(const char *program)
{
	static const char *const words[] = {"nft", "legacy"};
	const char *base = strrchr(program, '/');
	char name[64];

	for (size_t i = 0; base && i < ARRAY_LEN(words); i++) {
		snprintf(name, sizeof(name), "xtables-%s-multi", words[i]);
		if (strcmp(base + 1, name) == 0)
			return words[i];
	}
	return NULL;
}

/* What `command` of PATH really is. */
static bool find_program(const char *command, char real[PATH_MAX])
{
	const char *at = getenv("PATH");

	while (at && *at) {
		size_t len = strcspn(at, ":");
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, command);
		if (*at == '/' && access(path, X_OK) == 0 &&
		    realpath(path, real))
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

static int save_with(const char *program, const char *table, char **save,
		     const char *command)
{
	const char *const argv[] = {program, command, table ? "-t" : NULL,
				    table, NULL};
	struct run r = {.argv = argv, .output = save};
	int code = run_text(&r);

	if (code == 0)
		return 0;
	free(*save);
	*save = NULL;
	if (code < 0)
		return fail_errno(EX_OSERR, "cannot run %s", command);
	return fail(EX_UNAVAILABLE, "cannot read the firewall: %s", r.errors);
}

/* Are chains of ours loaded in the recorded back end?  When its program is
 * gone nobody can tell, and that counts as yes. */
static bool loaded_in(const char *recorded)
{
	AUTO_FREE char *save = NULL;
	char name[64], program[PATH_MAX];

	snprintf(name, sizeof(name), "xtables-%s-multi", recorded);
	if (!find_program(name, program))
		return true;
	return save_with(program, NULL, &save, "iptables-save") < 0 ||
	       chains_any(save);
}

static int choose_back_end(struct nethost *h)
{
	char recorded[16];
	const char *word;

	if (!find_program("iptables", h->program))
		return fail(EX_UNAVAILABLE, "no iptables: apt-get install "
					    "iptables");
	word = back_end(h->program);
	if (!word)
		return fail(EX_UNAVAILABLE,
			    "iptables is '%s', neither xtables-nft-multi nor "
			    "xtables-legacy-multi",
			    h->program);
	if (read_value(h->run, "iptables", recorded, sizeof(recorded)) > 0) {
		if (strcmp(recorded, word) == 0)
			return 0;
		if (loaded_in(recorded))
			return fail(EX_UNAVAILABLE,
				    "iptables is %s now, but ark's rules are "
				    "in %s",
				    word, recorded);
	}
	if (write_value(h->run, "iptables", "%s", word) < 0)
		return fail_errno(EX_IOERR, "cannot record the back end of "
					    "iptables");
	return 0;
}

/* ---- open, lock --------------------------------------------------------- */

int nethost_open(struct nethost *h)
{
	struct conf conf;
	int r = conf_load(&conf);

	if (r < 0)
		return r;
	h->run = run_open(true);
	if (h->run < 0)
		return h->run;
	if (run_canonical(h->run, h->run_path) < 0)
		return fail_errno(EX_OSERR, "cannot find the path of ARK_RUN");
	h->lock = openat(h->run, "net.lock",
			 O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (h->lock < 0)
		return fail_errno(EX_OSERR, "cannot open '%s/net.lock'",
				  h->run_path);
	h->want.net = conf.net;
	find_resolver(h->want.dns);
	return choose_back_end(h);
}

void nethost_close(struct nethost *h)
{
	if (h->run >= 0)
		close(h->run);
	if (h->lock >= 0)
		close(h->lock);
	h->run = h->lock = -1;
}

int nethost_lock(struct nethost *h, int op)
{
	if (lock_file(h->lock, op, LOCK_MS) < 0)
		return fail(EX_TEMPFAIL,
			    "the network is being changed by another command");
	return 0;
}

void nethost_unlock(struct nethost *h)
{
	flock(h->lock, LOCK_UN);
}

/* ---- rules -------------------------------------------------------------- */

int nethost_save(struct nethost *h, const char *table, char **save)
{
	return save_with(h->program, table, save, "iptables-save");
}

/* One restore; of `argv` only the first words are given, up to NULL. */
static int restore(const char *const argv[], int netns, const char *lock,
		   const char *text, const char *where)
{
	char variable[PATH_MAX + 32];
	struct run r = {.argv = argv, .text = text, .netns = netns};
	int code;

	if (lock) {
		snprintf(variable, sizeof(variable), "XTABLES_LOCKFILE=%s",
			 lock);
		r.environment = variable;
	}
	code = run_text(&r);
	if (code == 0)
		return 0;
	if (code < 0)
		return fail_errno(EX_OSERR, "cannot run iptables-restore");
	return fail(EX_UNAVAILABLE, "cannot load rules %s: %s", where,
		    r.errors);
}

int nethost_restore(struct nethost *h, const char *text)
{
	const char *const argv[] = {h->program, "iptables-restore", "-w",
				    "--noflush", NULL};

	return *text ? restore(argv, 0, NULL, text, "on the host") : 0;
}

int nethost_restore_in(struct nethost *h, int netns, const char *lock,
		       const char *text)
{
	const char *const argv[] = {h->program, "iptables-restore", "-w", NULL};

	return restore(argv, netns, lock, text, "in the sandbox' namespace");
}

/* ---- the chains --------------------------------------------------------- */

static int mend4(struct nethost *h, bool *mended)
{
	AUTO_FREE char *save = NULL;
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *again = NULL;
	char why[128];
	int r = nethost_save(h, NULL, &save);

	if (r < 0 || chains_ok(&h->want, save, why, sizeof(why)))
		return r;
	r = check_net_free(h->want.net);
	if (r < 0)
		return r;
	AS_TEXT(text, chains_mend(&h->want, save, out));
	*mended = true;
	r = nethost_restore(h, text);
	if (r == 0)
		r = nethost_save(h, NULL, &again);
	if (r < 0 || chains_ok(&h->want, again, why, sizeof(why)))
		return r;
	return fail(EX_UNAVAILABLE,
		    "the firewall does not keep ark's rules: "
		    "%s",
		    why);
}

/* A link of ours has IPv6 disabled, and a kernel without it needs nothing. */
static int mend6(struct nethost *h)
{
	const char *const argv[] = {h->program, "ip6tables-restore", "-w",
				    "--noflush", NULL};
	AUTO_FREE char *save = NULL;
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *again = NULL;
	int r;

	if (access("/proc/net/if_inet6", F_OK) < 0)
		return 0;
	r = save_with(h->program, "raw", &save, "ip6tables-save");
	if (r < 0 || chains6_ok(save))
		return r;
	AS_TEXT(text, chains6_mend(save, out));
	r = restore(argv, 0, NULL, text, "on the host (IPv6)");
	if (r == 0)
		r = save_with(h->program, "raw", &again, "ip6tables-save");
	if (r < 0 || chains6_ok(again))
		return r;
	return fail(EX_UNAVAILABLE,
		    "the firewall does not keep ark's rule against IPv6");
}

int nethost_ensure(struct nethost *h, bool all, bool *mended)
{
	int r;

	*mended = false;
	r = mend4(h, mended);
	if (r == 0 && (all || *mended))
		r = mend6(h);
	return r;
}

int nethost_check(struct nethost *h)
{
	AUTO_FREE char *save = NULL;
	AUTO_FREE char *save6 = NULL;
	char why[128];
	int r = nethost_save(h, NULL, &save);

	if (r < 0)
		return r;
	if (!chains_ok(&h->want, save, why, sizeof(why)))
		return fail(EX_UNAVAILABLE, "%s", why);
	if (access("/proc/net/if_inet6", F_OK) < 0)
		return 0;
	r = save_with(h->program, "raw", &save6, "ip6tables-save");
	if (r == 0 && !chains6_ok(save6))
		return fail(EX_UNAVAILABLE,
			    "the rule against IPv6 is not as it should be");
	return r;
}

/* ---- published ports ---------------------------------------------------- */

static size_t put_ports(const char *save, const struct plan *p,
			const struct port *ports, size_t n, FILE *out)
{
	size_t changes;

	fprintf(out, "*nat\n");
	changes = chains_unpublish(save, p->mark, out);
	for (size_t i = 0; i < n; i++)
		plan_port(p, &ports[i], out);
	fprintf(out, "COMMIT\n");
	return changes + n;
}

int nethost_publish(struct nethost *h, const struct plan *p,
		    const struct port *ports, size_t n)
{
	AUTO_FREE char *save = NULL;
	AUTO_FREE char *text = NULL;
	size_t changes;
	int r = nethost_save(h, "nat", &save);

	if (r < 0)
		return r;
	AS_TEXT(text, changes = put_ports(save, p, ports, n, out));
	return changes ? nethost_restore(h, text) : 0;
}
