/*
 * columns.c - the columns of listings, and tables of them.
 *
 * A column is text, or a number with the way that it is written: numbers stand
 * at the right, are sorted as numbers, and are "-" where there is none.  Text
 * that others have had their hands in goes through printable().
 */
#include "columns.h"
#include "expiry.h"
#include "info.h"

#define CELL 320

/* ---- text --------------------------------------------------------------- */

static void text_name(const struct row *row, char *out)
{
	snprintf(out, CELL, "%s", row->s->name);
}

static void text_state(const struct row *row, char *out)
{
	info_state(row->s, out, CELL);
}

static void text_file(const struct row *row, const char *name, char *out)
{
	char text[NAME_MAX_LEN + 2];

	if (read_value(row->s->dir, name, text, sizeof(text)) < 0)
		snprintf(text, sizeof(text), "-");
	printable(out, CELL, text);
}

static void text_image(const struct row *row, char *out)
{
	text_file(row, "image", out);
}

static void text_parent(const struct row *row, char *out)
{
	text_file(row, "snapshot", out);
}

static void text_isolation(const struct row *row, char *out)
{
	info_isolation(row->s, out, CELL);
}

static void text_answers(const struct row *row, char *out)
{
	snprintf(out, CELL, "%s", row->answers);
}

/* ---- numbers ------------------------------------------------------------ */

static bool number_file(const struct row *row, const char *name, uint64_t *out)
{
	long long number;

	if (read_number(row->s->dir, name, 0, INT64_MAX, &number) < 0)
		return false;
	*out = (uint64_t)number;
	return true;
}

static bool number_cpus(const struct row *row, uint64_t *out)
{
	return number_file(row, "cpus", out);
}

static bool number_memory(const struct row *row, uint64_t *out)
{
	return number_file(row, "memory", out);
}

static bool number_age(const struct row *row, uint64_t *out)
{
	uint64_t created, now = (uint64_t)time(NULL);

	if (!number_file(row, "created", &created))
		return false;
	*out = now > created ? now - created : 0;
	return true;
}

static bool number_pid(const struct row *row, uint64_t *out)
{
	*out = (uint64_t)row->s->vmm.pid;
	return *out && row->s->state != VM_DEAD;
}

static bool number_slot(const struct row *row, uint64_t *out)
{
	*out = (uint64_t)row->s->slot;
	return *out;
}

/* Rounded up: it is over when nothing is left. */
static bool number_expires(const struct row *row, uint64_t *out)
{
	uint64_t ms;

	if (!expiry_left(row->s, &ms))
		return false;
	*out = (ms + 999) / 1000;
	return true;
}

static bool used(const struct row *row, unsigned what, uint64_t value,
		 uint64_t *out)
{
	*out = value;
	return row->usage.known & what;
}

static bool number_cpu(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_CPU, row->permille, out);
}

static bool number_disk(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_DISK, row->usage.disk, out);
}

static bool number_resident(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_RESIDENT, row->usage.resident, out);
}

static bool number_private(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_PRIVATE, row->usage.private, out);
}

static bool number_rx(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_NET, row->usage.rx, out);
}

static bool number_tx(const struct row *row, uint64_t *out)
{
	return used(row, USAGE_NET, row->usage.tx, out);
}

static void format_plain(char *out, size_t size, uint64_t number)
{
	snprintf(out, size, "%llu", (unsigned long long)number);
}

void format_permille(char *out, size_t size, uint64_t permille)
{
	snprintf(out, size, "%llu.%llu", (unsigned long long)permille / 10,
		 (unsigned long long)permille % 10);
}

/* ---- all of them -------------------------------------------------------- */

struct column {
	const char *name;
	/* One of the two. */
	void (*text)(const struct row *row, char *out);
	bool (*number)(const struct row *row, uint64_t *out);
	void (*format)(char *out, size_t size, uint64_t number);
	unsigned usage;
};

static const struct column columns[] = {
	{"name", text_name, NULL, NULL, 0},
	{"state", text_state, NULL, NULL, 0},
	{"image", text_image, NULL, NULL, 0},
	{"cpus", NULL, number_cpus, format_plain, 0},
	{"memory", NULL, number_memory, format_size, 0},
	{"cpu", NULL, number_cpu, format_permille, USAGE_CPU},
	{"disk", NULL, number_disk, format_size, USAGE_DISK},
	{"age", NULL, number_age, format_age, 0},
	{"expires", NULL, number_expires, format_age, 0},
	{"isolation", text_isolation, NULL, NULL, 0},
	{"parent", text_parent, NULL, NULL, 0},
	{"resident", NULL, number_resident, format_size, USAGE_RESIDENT},
	{"private", NULL, number_private, format_size, USAGE_PRIVATE},
	{"rx", NULL, number_rx, format_size, USAGE_NET},
	{"tx", NULL, number_tx, format_size, USAGE_NET},
	{"pid", NULL, number_pid, format_plain, 0},
	{"slot", NULL, number_slot, format_plain, 0},
	{"answers", text_answers, NULL, NULL, 0},
};

const struct column *column_named(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		if (strlen(columns[i].name) == len &&
		    memcmp(columns[i].name, name, len) == 0)
			return &columns[i];
	die(EX_USAGE, "no column '%.*s' (try --help)", (int)len, name);
}

void columns_list(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(columns); i++)
		fprintf(out, " %s", columns[i].name);
}

void row_read(struct row *row, const struct sandbox *s, unsigned usage)
{
	*row = (struct row){.s = s, .answers = "-"};
	if (usage)
		usage_read(s, usage, &row->usage);
	row->permille = usage_permille(row->usage.cpu_ms, row->usage.up_ms);
}

/* The text of a cell; its number, or 0, and one more for those that have one:
 * what has none is sorted behind. */
static uint64_t cell(const struct column *column, const struct row *row,
		     char *out)
{
	uint64_t number;

	if (column->text) {
		column->text(row, out);
		return 0;
	}
	if (!column->number(row, &number)) {
		snprintf(out, CELL, "-");
		return 0;
	}
	column->format(out, CELL, number);
	return number + 1;
}

/* ---- tables ------------------------------------------------------------- */

struct table_row {
	char *cell[COLUMNS_MAX]; /* owned */
	/* Of what it is sorted by. */
	char *text[SORTS_MAX]; /* owned */
	uint64_t number[SORTS_MAX];
	size_t order;
};

void table_append(struct table *t, const char *name)
{
	if (t->columns == COLUMNS_MAX)
		die(EX_USAGE, "more than %d columns", COLUMNS_MAX);
	t->column[t->columns++] = column_named(name, strcspn(name, ","));
}

void table_choose(struct table *t, const char *list)
{
	t->columns = 0;
	while (true) {
		table_append(t, list);
		list += strcspn(list, ",");
		if (!*list)
			return;
		list++;
	}
}

unsigned table_usage(const struct table *t)
{
	unsigned usage = 0;

	for (size_t i = 0; i < t->columns; i++)
		usage |= t->column[i]->usage;
	for (size_t i = 0; i < SORTS_MAX && t->sort[i]; i++)
		usage |= t->sort[i]->usage;
	return usage;
}

/* Terminal columns of UTF-8 text, near enough for an aligned table. */
static size_t width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

int table_add(struct table *t, const struct row *row)
{
	struct table_row *more =
		reallocarray(t->row, t->rows + 1, sizeof(*more));
	struct table_row *new;
	char text[CELL];

	if (!more)
		return fail_errno(EX_OSERR, "cannot list");
	t->row = more;
	new = &more[t->rows];
	memset(new, 0, sizeof(*new));
	new->order = t->rows++;
	for (size_t i = 0; i < t->columns; i++) {
		size_t width;

		cell(t->column[i], row, text);
		width = width_of(text);
		if (width > t->width[i])
			t->width[i] = width;
		new->cell[i] = strdup(text);
	}
	for (size_t i = 0; i < SORTS_MAX && t->sort[i]; i++) {
		new->number[i] = cell(t->sort[i], row, text);
		if (t->sort[i]->text)
			new->text[i] = strdup(text);
	}
	return 0;
}

static int by_sort(const void *a, const void *b)
{
	const struct table_row *x = a, *y = b;

	for (size_t i = 0; i < SORTS_MAX; i++) {
		int r = x->text[i] && y->text[i]
				? strcmp(x->text[i], y->text[i])
				: 0;

		if (r)
			return r;
		if (x->number[i] != y->number[i])
			return x->number[i] > y->number[i] ? -1 : 1;
	}
	return x->order < y->order ? -1 : 1;
}

void table_sort(struct table *t)
{
	if (t->rows > 0)
		qsort(t->row, t->rows, sizeof(*t->row), by_sort);
}

static void print_line(const struct table *t, FILE *out, char *const *cells)
{
	for (size_t i = 0; i < t->columns; i++) {
		const char *text = cells[i] ? cells[i] : "?";
		int gap = (int)(t->width[i] - width_of(text));
		int before = t->column[i]->number ? gap : 0;
		int behind = i + 1 < t->columns ? gap - before + 2 : 0;

		fprintf(out, "%*s%s%*s", before, "", text, behind, "");
	}
	putc('\n', out);
}

static void print_heads(const struct table *t, FILE *out)
{
	char *heads[COLUMNS_MAX] = {NULL};

	for (size_t i = 0; i < t->columns; i++) {
		heads[i] = strdup(t->column[i]->name);
		for (char *c = heads[i]; c && *c; c++)
			*c = (char)(*c & ~0x20);
	}
	print_line(t, out, heads);
	for (size_t i = 0; i < t->columns; i++)
		free(heads[i]);
}

void table_print(const struct table *t, FILE *out, bool header)
{
	struct table wide = *t;

	for (size_t i = 0; header && i < t->columns; i++)
		if (strlen(t->column[i]->name) > wide.width[i])
			wide.width[i] = strlen(t->column[i]->name);
	if (header)
		print_heads(&wide, out);
	for (size_t i = 0; i < t->rows; i++)
		print_line(&wide, out, t->row[i].cell);
}

void table_clear(struct table *t)
{
	for (size_t row = 0; row < t->rows; row++) {
		for (size_t i = 0; i < COLUMNS_MAX; i++)
			free(t->row[row].cell[i]);
		for (size_t i = 0; i < SORTS_MAX; i++)
			free(t->row[row].text[i]);
	}
	free(t->row);
	t->row = NULL;
	t->rows = 0;
	memset(t->width, 0, sizeof(t->width));
}
