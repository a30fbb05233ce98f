/*
 * ark-auth - tenants of the REST endpoint and their tokens.  ark-auth(8) is the
 * manual; auth.h does the work.
 *
 * A token is printed once, on stdout, and by nobody kept.  A new one that could
 * not be written there opens nothing: it is removed.
 */
#include "auth.h"
#include "quota.h"

#include <getopt.h>
#include <jansson.h>

static const char usage[] = "ark-auth add|ls|quota|rm|rotate [OPTION...] "
			    "[TENANT[/LABEL]]";
static const char help[] =
	"Usage: ark-auth add [--scope SCOPE] [--quota KIND=N,...] [-f] "
	"TENANT[/LABEL]\n"
	"       ark-auth ls [--json]\n"
	"       ark-auth quota TENANT [KIND=N,...]\n"
	"       ark-auth rm [-f] TENANT[/LABEL]\n"
	"       ark-auth rotate TENANT[/LABEL]\n"
	"\n"
	"Tenants of the REST endpoint and their tokens, which are printed "
	"once.\n"
	"\n"
	"  -f, --force        although sandboxes or snapshots have its prefix\n"
	"      --json         one JSON object per line (ls)\n"
	"      --quota LIST   of a new tenant: sandboxes, cpus, memory, disk,\n"
	"                     snapshots, execs, rate, burst; none: no limit\n"
	"      --scope SCOPE  read, exec, manage or admin (default manage)\n"
	"  -h, --help         show this and exit\n"
	"      --version      show the version and exit\n";

struct options {
	enum scope scope;
	const char *quota;
	bool force, json;
};

/* "TENANT" or "TENANT/LABEL"; the label is NULL when there is none. */
static char *split(char *word)
{
	char *slash = strchr(word, '/');

	if (slash)
		*slash++ = '\0';
	return slash;
}

/* ---- add, rotate, rm ---------------------------------------------------- */

/* 0, or the code that flush_stdout() has told. */
static int print_token(char token[TOKEN_LEN + 1])
{
	puts(token);
	explicit_bzero(token, TOKEN_LEN + 1);
	return flush_stdout();
}

static int add(const struct options *o, char *word)
{
	char token[TOKEN_LEN + 1];
	const char *label = split(word);
	int r;

	if (!label)
		label = TOKEN_LABEL;
	r = auth_add(word, label, o->scope ? o->scope : SCOPE_MANAGE, o->quota,
		     o->force, token);
	if (r < 0)
		return r;
	r = print_token(token);
	if (r < 0)
		auth_remove(word, label, false);
	return r;
}

static int rotate(char *word)
{
	char token[TOKEN_LEN + 1];
	const char *label = split(word);
	int r = auth_rotate(word, label ? label : TOKEN_LABEL, token);

	return r < 0 ? r : print_token(token);
}

static int rm(const struct options *o, char *word)
{
	const char *label = split(word);

	return auth_remove(word, label, o->force);
}

/* ---- ls ----------------------------------------------------------------- */

static int print_json(const struct token *t)
{
	json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:I}", "tenant",
				   t->tenant, "label", t->label, "id", t->id,
				   "scope", scope_word(t->scope), "created",
				   (json_int_t)t->created);

	if (!object || json_dumpf(object, stdout, JSON_COMPACT) < 0)
		return fail(EX_OSERR, "cannot print '%s'", t->tenant);
	json_decref(object);
	putchar('\n');
	return 0;
}

static int ls(const struct options *o)
{
	AUTO_TABLE struct auth_table table;
	int r = auth_load(&table);

	if (r == 0 && !o->json)
		printf("%-20s  %-20s  %-12s  %-6s  CREATED\n", "TENANT",
		       "LABEL", "ID", "SCOPE");
	for (size_t i = 0; r == 0 && i < table.n; i++) {
		const struct token *t = &table.token[i];
		char when[32];
		struct tm tm;

		if (o->json) {
			r = print_json(t);
			continue;
		}
		gmtime_r(&(time_t){t->created}, &tm);
		strftime(when, sizeof(when), "%Y-%m-%d", &tm);
		printf("%-20s  %-20s  %-12s  %-6s  %s\n", t->tenant, t->label,
		       t->id, scope_word(t->scope), when);
	}
	return r;
}

/* ---- quota -------------------------------------------------------------- */

static void format_limit(enum quota kind, uint64_t n, char out[24])
{
	if (n == QUOTA_NONE)
		snprintf(out, 24, "none");
	else if (kind == QUOTA_MEMORY || kind == QUOTA_DISK)
		format_size(out, 24, n);
	else
		snprintf(out, 24, "%llu", (unsigned long long)n);
}

static int show_quota(const char *tenant)
{
	struct quota_limits limits;
	uint64_t used[QUOTA_KINDS] = {0};
	int r = quota_limits(tenant, &limits);

	if (r == 0)
		r = quota_used(tenant, used);
	if (r < 0)
		return r;
	printf("%-10s  %-8s  USED\n", "QUOTA", "LIMIT");
	for (int i = 0; i < QUOTA_KINDS; i++) {
		enum quota kind = (enum quota)i;
		char limit[24], now[24] = "-";

		format_limit(kind, limits.limit[kind], limit);
		if (kind < QUOTA_CLAIMED)
			format_limit(kind, used[kind], now);
		printf("%-10s  %-8s  %s\n", quota_word(kind), limit, now);
	}
	return 0;
}

static int quota(const char *tenant, const char *text)
{
	AUTO_CLOSE int dir = tenant_ok(tenant) ? auth_lock(tenant) : -1;
	struct quota_limits limits;
	const char *why;
	int r;

	if (!tenant_ok(tenant))
		return fail(EX_USAGE, "bad tenant '%.40s'", tenant);
	if (dir < 0 || !text)
		return dir < 0 ? dir : show_quota(tenant);
	r = quota_limits(tenant, &limits);
	if (r < 0)
		return r;
	why = quota_parse(text, &limits);
	return why ? fail(EX_USAGE, "bad quota: %s", why)
		   : quota_write(dir, &limits);
}

/* ---- options ------------------------------------------------------------ */

enum { OPT_JSON = 256, OPT_QUOTA, OPT_SCOPE, OPT_VERSION };

static void set_option(struct options *o, int option)
{
	switch (option) {
	case 'f':
		o->force = true;
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_QUOTA:
		o->quota = optarg;
		break;
	case OPT_SCOPE:
		o->scope = scope_parse(optarg);
		if (o->scope == SCOPE_NONE)
			die(EX_USAGE,
			    "bad scope '%.40s': read, exec, manage or admin",
			    optarg);
		break;
	case OPT_VERSION:
		puts("ark-auth " ARK_VERSION);
		exit(finish(0));
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

static const struct option long_options[] = {
	{"force", no_argument, NULL, 'f'},
	{"json", no_argument, NULL, OPT_JSON},
	{"quota", required_argument, NULL, OPT_QUOTA},
	{"scope", required_argument, NULL, OPT_SCOPE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static const struct verb {
	const char *word;
	int min, max;	     /* of its words */
	const char *options; /* of f, j, q, s */
} verbs[] = {
	{"add", 1, 1, "fqs"}, {"ls", 0, 0, "j"},    {"quota", 1, 2, ""},
	{"rm", 1, 1, "f"},    {"rotate", 1, 1, ""},
};

static void check_options(const struct options *o, const struct verb *v)
{
	const struct {
		char letter;
		bool given;
		const char *name;
	} all[] = {
		{'f', o->force, "--force"},
		{'j', o->json, "--json"},
		{'q', o->quota != NULL, "--quota"},
		{'s', o->scope != SCOPE_NONE, "--scope"},
	};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].given && !strchr(v->options, all[i].letter))
			die(EX_USAGE, "%s is no option of %s", all[i].name,
			    v->word);
}

static int run(const struct options *o, const char *verb, char **words)
{
	switch (verb[0]) {
	case 'a':
		return add(o, words[0]);
	case 'l':
		return ls(o);
	case 'q':
		return quota(words[0], words[1]);
	default:
		return verb[1] == 'm' ? rm(o, words[0]) : rotate(words[0]);
	}
}

int main(int argc, char **argv)
{
	struct options o = {0};
	int option;

	progname = "ark-auth";
	opterr = 0;
	while ((option = getopt_long(argc, argv, "fh", long_options, NULL)) !=
	       -1) {
		if (option == '?')
			die_option(argv);
		set_option(&o, option);
	}
	if (optind == argc)
		die_usage(usage);
	argc -= optind + 1;
	argv += optind + 1;
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[-1], verbs[i].word) != 0)
			continue;
		if (argc < verbs[i].min || argc > verbs[i].max)
			die_usage(usage);
		check_options(&o, &verbs[i]);
		return finish(run(&o, verbs[i].word, argv));
	}
	die(EX_USAGE, "no command '%s' (try --help)", argv[-1]);
}
