/*
 * ark-ps - what sandboxes exist and how they are.  ark-ps(1) is the manual.
 *
 * Files and /proc only, no lock, no question to a VMM or a guest, so that it
 * is cheap enough to be run in a loop; --probe asks each agent as well.
 */
#include "agent.h"
#include "columns.h"
#include "info.h"

#include <getopt.h>

static const char usage[] = "ark-ps [-aq] [-o COLUMN,...] [--json] "
			    "[--no-header] [--probe]";

struct listing {
	bool json, quiet, header, probe;
	struct table table;
};

/* Does the agent answer, within 2 s? */
static const char *probe(const struct sandbox *s)
{
	if (s->state != VM_RUNNING || s->starting)
		return "-";
	return agent_answers(s, 2000) ? "yes" : "no";
}

/* All that is cheap, and what was asked for besides. */
static int print_json(const struct listing *l, const struct row *row)
{
	json_t *object =
		info_json(row->s, USAGE_CHEAP | table_usage(&l->table));

	if (object && *row->answers != '-')
		json_object_set_new(object, "answers",
				    json_boolean(*row->answers == 'y'));
	if (!object || json_dumpf(object, stdout, JSON_COMPACT) < 0)
		return fail(EX_OSERR, "cannot print '%s'", row->s->name);
	json_decref(object);
	putchar('\n');
	return 0;
}

static int list_one(const char *name, void *data)
{
	struct listing *l = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct row row;

	if (l->quiet) {
		puts(name);
		return 0;
	}
	if (!sandbox_find(&s, name))
		return 0;
	row_read(&row, &s, l->json ? 0 : table_usage(&l->table));
	if (l->probe)
		row.answers = probe(&s);
	return l->json ? print_json(l, &row) : table_add(&l->table, &row);
}

/* ---- options ------------------------------------------------------------ */

static void print_help(void)
{
	printf("Usage: %s\n\n"
	       "List the sandboxes.\n\n"
	       "  -a, --all            accepted; all are shown anyhow\n"
	       "      --json           one JSON object per line\n"
	       "      --no-header      leave the header line out\n"
	       "  -o, --columns LIST   columns to show, or json\n"
	       "      --probe          ask each agent whether it answers\n"
	       "  -q, --quiet          names only\n"
	       "  -h, --help           show this and exit\n"
	       "      --version        show the version and exit\n\n"
	       "Columns:",
	       usage);
	columns_list(stdout);
	putchar('\n');
}

enum { OPT_JSON = 256, OPT_NO_HEADER, OPT_PROBE, OPT_VERSION };

static const struct option long_options[] = {
	{"all", no_argument, NULL, 'a'},
	{"columns", required_argument, NULL, 'o'},
	{"json", no_argument, NULL, OPT_JSON},
	{"no-header", no_argument, NULL, OPT_NO_HEADER},
	{"probe", no_argument, NULL, OPT_PROBE},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void set_option(struct listing *l, int option)
{
	switch (option) {
	case 'a':
		break;
	case 'o':
		if (strcmp(optarg, "json") == 0)
			l->json = true;
		else
			table_choose(&l->table, optarg);
		break;
	case 'q':
		l->quiet = true;
		break;
	case OPT_JSON:
		l->json = true;
		break;
	case OPT_NO_HEADER:
		l->header = false;
		break;
	case OPT_PROBE:
		l->probe = true;
		break;
	case OPT_VERSION:
		printf("ark-ps %s\n", ARK_VERSION);
		exit(finish(0));
	case 'h':
		print_help();
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

int main(int argc, char **argv)
{
	struct listing l = {.header = true};
	int option, r;

	progname = "ark-ps";
	table_choose(&l.table, "name,state,image,cpus,memory,cpu,disk,age,"
			       "expires,isolation");
	opterr = 0;
	while ((option = getopt_long(argc, argv, "ahqo:", long_options,
				     NULL)) != -1) {
		if (option == '?')
			die_option(argv);
		set_option(&l, option);
	}
	if (optind < argc)
		die(EX_USAGE, "unexpected '%s' (try --help)", argv[optind]);
	if (l.probe && !l.json)
		table_append(&l.table, "answers");
	r = sandbox_each(list_one, &l);
	if (r == 0 && !l.json && !l.quiet)
		table_print(&l.table, stdout, l.header);
	table_clear(&l.table);
	return finish(r);
}
