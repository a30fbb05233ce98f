/*
 * ark-ps - what sandboxes exist and how they are.  ark-ps(1) is the manual.
 *
 * Files and /proc only, no lock, no question to a VMM or a guest, so that it
 * is cheap enough to be run in a loop; --probe asks each agent as well.
 */
#include "agent.h"
#include "disk.h"
#include "info.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/stat.h>

static const char usage[] = "ark-ps [-aq] [-o COLUMN,...] [--json] "
			    "[--no-header] [--probe]";

#define CELL 320

struct row {
	struct sandbox *s;
	const char *probe; /* "yes", "no", or "-" */
};

/* ---- columns ------------------------------------------------------------ */

static void cell_name(const struct row *row, char *out)
{
	snprintf(out, CELL, "%s", row->s->name);
}

static void cell_state(const struct row *row, char *out)
{
	const struct sandbox *s = row->s;

	if (s->state == VM_DEAD)
		snprintf(out, CELL, "dead(%s)", s->reason);
	else if (s->state == VM_RUNNING && s->starting)
		snprintf(out, CELL, "starting");
	else
		snprintf(out, CELL, "%s", state_word(s));
}

static void cell_image(const struct row *row, char *out)
{
	char text[NAME_MAX_LEN + 2];

	if (read_value(row->s->dir, "image", text, sizeof(text)) < 0)
		snprintf(text, sizeof(text), "-");
	printable(out, CELL, text);
}

static long long number_of(const struct row *row, const char *name)
{
	long long number;

	if (read_number(row->s->dir, name, 0, INT64_MAX, &number) < 0)
		return 0;
	return number;
}

static void cell_cpus(const struct row *row, char *out)
{
	snprintf(out, CELL, "%lld", number_of(row, "cpus"));
}

static void cell_memory(const struct row *row, char *out)
{
	format_size(out, CELL, (uint64_t)number_of(row, "memory"));
}

static void cell_disk(const struct row *row, char *out)
{
	struct stat st = {0};

	if (fstatat(row->s->dir, "disk", &st, AT_SYMLINK_NOFOLLOW) < 0)
		snprintf(out, CELL, "-");
	else
		format_size(out, CELL, allocated_bytes(st.st_blocks));
}

static void cell_age(const struct row *row, char *out)
{
	long long age = (long long)time(NULL) - number_of(row, "created");

	format_age(out, CELL, age > 0 ? (uint64_t)age : 0);
}

static void cell_isolation(const struct row *row, char *out)
{
	info_isolation(row->s, out, CELL);
}

static void cell_pid(const struct row *row, char *out)
{
	if (row->s->vmm.pid && row->s->state != VM_DEAD)
		snprintf(out, CELL, "%d", (int)row->s->vmm.pid);
	else
		snprintf(out, CELL, "-");
}

static void cell_slot(const struct row *row, char *out)
{
	if (row->s->slot)
		snprintf(out, CELL, "%d", row->s->slot);
	else
		snprintf(out, CELL, "-");
}

static void cell_answers(const struct row *row, char *out)
{
	snprintf(out, CELL, "%s", row->probe);
}

static const struct column {
	const char *name;
	void (*cell)(const struct row *row, char *out);
} columns[] = {
	{"name", cell_name},	   {"state", cell_state},
	{"image", cell_image},	   {"cpus", cell_cpus},
	{"memory", cell_memory},   {"disk", cell_disk},
	{"age", cell_age},	   {"isolation", cell_isolation},
	{"pid", cell_pid},	   {"slot", cell_slot},
	{"answers", cell_answers},
};

/* ---- the listing -------------------------------------------------------- */

#define COLUMNS_MAX 16

struct listing {
	bool json, quiet, header, probe;
	const struct column *column[COLUMNS_MAX];
	size_t width[COLUMNS_MAX];
	size_t columns;
	char **cells; /* rows * columns, owned */
	size_t rows;
};

/* Does the agent answer, within 2 s? */
static const char *probe(const struct sandbox *s)
{
	if (s->state != VM_RUNNING || s->starting)
		return "-";
	return agent_answers(s, 2000) ? "yes" : "no";
}

static int print_json(const struct row *row)
{
	json_t *object = info_json(row->s);

	if (object && *row->probe != '-')
		json_object_set_new(object, "answers",
				    json_boolean(*row->probe == 'y'));
	if (!object || json_dumpf(object, stdout, JSON_COMPACT) < 0)
		return fail(EX_OSERR, "cannot print '%s'", row->s->name);
	json_decref(object);
	putchar('\n');
	return 0;
}

/* Terminal columns of UTF-8 text, near enough for an aligned table. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static int keep_cells(struct listing *l, const struct row *row)
{
	char **more = reallocarray(l->cells, (l->rows + 1) * l->columns,
				   sizeof(char *));

	if (!more)
		return fail_errno(EX_OSERR, "cannot list");
	l->cells = more;
	for (size_t i = 0; i < l->columns; i++) {
		char text[CELL];
		size_t width;

		l->column[i]->cell(row, text);
		width = width_of(text);
		if (width > l->width[i])
			l->width[i] = width;
		l->cells[l->rows * l->columns + i] = strdup(text);
	}
	l->rows++;
	return 0;
}

static int list_one(const char *name, void *data)
{
	struct listing *l = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct row row = {.s = &s, .probe = "-"};

	if (l->quiet) {
		puts(name);
		return 0;
	}
	/* Removed since the folder was read: not there, no message. */
	if (!sandbox_exists(name))
		return 0;
	if (sandbox_open(&s, name) < 0)
		return 0;
	if (l->probe)
		row.probe = probe(&s);
	return l->json ? print_json(&row) : keep_cells(l, &row);
}

static void print_line(const struct listing *l, char *const *cells)
{
	for (size_t i = 0; i < l->columns; i++) {
		const char *text = cells[i] ? cells[i] : "?";
		size_t pad = l->width[i] - width_of(text) + 2;

		fputs(text, stdout);
		if (i + 1 < l->columns)
			printf("%*s", (int)pad, "");
	}
	putchar('\n');
}

static void print_table(const struct listing *l)
{
	char *heads[COLUMNS_MAX];

	if (l->header) {
		for (size_t i = 0; i < l->columns; i++) {
			heads[i] = strdup(l->column[i]->name);
			for (char *c = heads[i]; c && *c; c++)
				*c = (char)(*c & ~0x20);
		}
		print_line(l, heads);
		for (size_t i = 0; i < l->columns; i++)
			free(heads[i]);
	}
	for (size_t row = 0; row < l->rows; row++)
		print_line(l, l->cells + row * l->columns);
}

static void free_cells(struct listing *l)
{
	for (size_t i = 0; i < l->rows * l->columns; i++)
		free(l->cells[i]);
	free(l->cells);
}

/* ---- options ------------------------------------------------------------ */

static void add_column(struct listing *l, const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		if (strlen(columns[i].name) != len ||
		    memcmp(columns[i].name, name, len) != 0)
			continue;
		if (l->columns == COLUMNS_MAX)
			die(EX_USAGE, "more than %d columns", COLUMNS_MAX);
		l->width[l->columns] = len;
		l->column[l->columns++] = &columns[i];
		return;
	}
	die(EX_USAGE, "no column '%.*s' (try --help)", (int)len, name);
}

static void choose_columns(struct listing *l, const char *text)
{
	l->columns = 0;
	while (true) {
		size_t len = strcspn(text, ",");

		add_column(l, text, len);
		if (!text[len])
			return;
		text += len + 1;
	}
}

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
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		printf(" %s", columns[i].name);
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
			choose_columns(l, optarg);
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
	choose_columns(&l, "name,state,image,cpus,memory,disk,age,isolation");
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
		add_column(&l, "answers", strlen("answers"));
	r = sandbox_each(list_one, &l);
	if (r == 0 && !l.json && !l.quiet)
		print_table(&l);
	free_cells(&l);
	return finish(r);
}
