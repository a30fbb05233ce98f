/*
 * snap-tree.c - draw what came of what: snapshots and sandboxes, each below the
 * snapshot that it was taken or restored from.
 */
#include "lineage.h"
#include "snap.h"

struct line {
	size_t which; /* of the lineage */
	int depth;
};

struct tree {
	const struct lineage *l;
	bool *drawn;	   /* of each, owned */
	struct line *line; /* owned */
	size_t lines;
	int width;
};

/* Snapshots first; of those that a fork has made, the tenth behind the second.
 */
static int by_kind_and_name(const void *a, const void *b)
{
	const struct relative *x = a, *y = b;

	if (x->snapshot != y->snapshot)
		return x->snapshot ? -1 : 1;
	return strverscmp(x->name, y->name);
}

/* One and all below it; one of a loop is drawn once. */
static void draw(struct tree *t, size_t i, int depth)
{
	const struct relative *one = &t->l->all[i];
	int width = depth * 2 + (int)strlen(one->name);

	if (t->drawn[i])
		return;
	t->drawn[i] = true;
	t->line[t->lines++] = (struct line){i, depth};
	if (width > t->width)
		t->width = width;
	for (size_t k = 0; one->snapshot && k < t->l->n; k++)
		if (lineage_child(one, &t->l->all[k]))
			draw(t, k, depth + 1);
}

static void print(const struct tree *t)
{
	for (size_t i = 0; i < t->lines; i++) {
		const struct relative *one = &t->l->all[t->line[i].which];
		int indent = t->line[i].depth * 2;

		printf("%*s%-*s  %s\n", indent, "", t->width - indent,
		       one->name, one->what);
	}
}

int snap_tree(void)
{
	AUTO_LINEAGE struct lineage l = LINEAGE_NONE;
	struct tree t = {.l = &l};
	int r = lineage_read(&l, NULL, NULL);

	if (r < 0 || l.n == 0)
		return r;
	t.drawn = calloc(l.n, sizeof(*t.drawn));
	t.line = calloc(l.n, sizeof(*t.line));
	if (!t.drawn || !t.line) {
		r = fail_errno(EX_OSERR, "cannot draw");
	} else {
		qsort(l.all, l.n, sizeof(*l.all), by_kind_and_name);
		for (size_t i = 0; i < l.n; i++)
			if (lineage_parent(&l, i) == l.n)
				draw(&t, i, 0);
		/* Loops, which have no first. */
		for (size_t i = 0; i < l.n; i++)
			draw(&t, i, 0);
		print(&t);
	}
	free(t.drawn);
	free(t.line);
	return r;
}
