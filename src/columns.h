/*
 * columns.h - what is shown of sandboxes, one a line: the columns of ark-ps(1)
 * and ark-top(1), and the table that they stand in.
 */
#ifndef ARK_COLUMNS_H
#define ARK_COLUMNS_H

#include "usage.h"

/* A sandbox, and what was found out about it. */
struct row {
	const struct sandbox *s;
	struct usage usage;
	uint64_t permille;   /* of one processor; known as usage.cpu_ms is */
	const char *answers; /* "yes", "no", or "-" when it was not asked */
};

/* Read of it what the columns need: `usage` is that of a table. */
void row_read(struct row *row, const struct sandbox *s, unsigned usage);

struct column;

/* By its name of `len` bytes; a name that is none ends the process with 64 and
 * a line. */
const struct column *column_named(const char *name, size_t len);

/* " name state ..." of all that there are. */
void columns_list(FILE *out);

#define COLUMNS_MAX 32
#define SORTS_MAX 3

struct table_row;

/* All zero: an empty one; table_clear() frees what it holds. */
struct table {
	const struct column *column[COLUMNS_MAX];
	size_t columns;
	/* Largest number first, or by the alphabet; what stands further back
	 * decides between equals.  NULL: as the rows came. */
	const struct column *sort[SORTS_MAX];
	size_t width[COLUMNS_MAX];
	struct table_row *row; /* owned */
	size_t rows;
};

/* Show these, "name,state": nothing or too many ends the process as above. */
void table_choose(struct table *t, const char *list);
void table_append(struct table *t, const char *name);

/* What usage_read() has to read for what is shown and sorted by. */
unsigned table_usage(const struct table *t);

/* Keep what is to be shown of it.  0, or -EX_OSERR, told. */
int table_add(struct table *t, const struct row *row);

void table_sort(struct table *t);

void table_print(const struct table *t, FILE *out, bool header);

/* Forget the rows. */
void table_clear(struct table *t);

/* ---- pure, for the tests ------------------------------------------------ */

/* "12.3" percent of 123 permille. */
void format_permille(char *out, size_t size, uint64_t permille);

#endif
