/*
 * test-columns - tables of sandboxes: how numbers are written, where they
 * stand, what comes first.
 */
#include "tap.h"

#include "columns.h"

#include <sys/stat.h>

static int dir;
static char *text; /* of the last table that was printed */
static size_t length;

static void test_permille(void)
{
	static const struct {
		uint64_t permille;
		const char *text;
	} rows[] = {
		{0, "0.0"},	 {1, "0.1"},	    {999, "99.9"},
		{1000, "100.0"}, {31999, "3199.9"},
	};
	char out[32];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		format_permille(out, sizeof(out), rows[i].permille);
		is_str(out, rows[i].text, rows[i].text);
	}
}

/* One that is nowhere but in a file or two. */
static void add(struct table *t, const char *name, const char *memory,
		const struct usage *usage, uint64_t permille)
{
	struct sandbox s = SANDBOX_NONE;
	struct row row = {
		.s = &s, .usage = *usage, .permille = permille, .answers = "-"};

	snprintf(s.name, sizeof(s.name), "%s", name);
	mkdirat(dir, name, 0700);
	s.dir = open_dir(dir, name);
	if (memory)
		write_value(s.dir, "memory", "%s", memory);
	s.state = VM_DEAD;
	snprintf(s.reason, sizeof(s.reason), "gone");
	is_num(table_add(t, &row), 0, name);
	close(s.dir);
}

static const char *print(const struct table *t, bool header)
{
	FILE *out;

	free(text);
	out = open_memstream(&text, &length);
	table_print(t, out, header);
	fclose(out);
	return text;
}

static void sort_by(struct table *t, const char *first, const char *second)
{
	t->sort[0] = column_named(first, strlen(first));
	t->sort[1] = column_named(second, strlen(second));
}

static void test_table(void)
{
	static const struct usage none = {0}, busy = {.known = USAGE_CPU};
	struct table t = {0};

	table_choose(&t, "name,cpu,memory,state");
	is_num(table_usage(&t), USAGE_CPU, "what is to be read");
	sort_by(&t, "cpu", "private");
	is_num(table_usage(&t), USAGE_CPU | USAGE_PRIVATE, "and for sorting");
	sort_by(&t, "cpu", "name");
	is_str(print(&t, true), "NAME  CPU  MEMORY  STATE\n", "an empty one");
	add(&t, "a", "1073741824", &none, 0);
	add(&t, "ccc", NULL, &busy, 9);
	add(&t, "b", "1", &busy, 1000);
	add(&t, "bbbbb", "2", &busy, 9);
	is_str(print(&t, false),
	       "a          -  1G  dead(gone)\n"
	       "ccc      0.9   -  dead(gone)\n"
	       "b      100.0  1B  dead(gone)\n"
	       "bbbbb    0.9  2B  dead(gone)\n",
	       "as they came, numbers at the right");
	table_sort(&t);
	is_str(print(&t, true),
	       "NAME     CPU  MEMORY  STATE\n"
	       "b      100.0      1B  dead(gone)\n"
	       "bbbbb    0.9      2B  dead(gone)\n"
	       "ccc      0.9       -  dead(gone)\n"
	       "a          -      1G  dead(gone)\n",
	       "the largest first, then by name, none at the end");
	table_clear(&t);
	is_str(print(&t, true), "NAME  CPU  MEMORY  STATE\n", "forgotten");
}

int main(void)
{
	dir = tap_dir();
	test_permille();
	test_table();
	free(text);
	return done();
}
