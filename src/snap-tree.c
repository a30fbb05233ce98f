/*
 * snap-tree.c - draw what came of what: snapshots and sandboxes, each below the
 * snapshot that it was taken or restored from.
 *
 * What is known of a parent is its name, which another snapshot may have got
 * since: that one is younger than the child, and none of its.
 */
#include "info.h"
#include "snap.h"

struct node {
	char name[NAME_MAX_LEN + 1];
	char parent[NAME_MAX_LEN + 2]; /* a snapshot, or "" */
	char created[UTC_SIZE];
	bool snapshot;
	bool drawn;
	int depth;
	char what[300];
};

struct tree {
	struct node *node; /* owned */
	size_t nodes;
	size_t *line; /* owned: the nodes in the order of the lines */
	size_t lines;
	int width;
};

/* ---- what there is ------------------------------------------------------ */

static struct node *add(struct tree *t, const char *name)
{
	struct node *more = reallocarray(t->node, t->nodes + 1, sizeof(*more));

	if (!more)
		return NULL;
	t->node = more;
	more += t->nodes++;
	memset(more, 0, sizeof(*more));
	snprintf(more->name, sizeof(more->name), "%s", name);
	return more;
}

static int add_snap(const char *name, void *data)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	const struct snap_manifest *m = &snap.manifest;
	struct node *n;

	if (!snap_exists(name) || snap_open(&snap, name, false) < 0)
		return 0;
	n = add(data, name);
	if (!n)
		return fail_errno(EX_OSERR, "cannot draw");
	n->snapshot = true;
	snprintf(n->parent, sizeof(n->parent), "%s", m->parent);
	snprintf(n->created, sizeof(n->created), "%s", m->created);
	snprintf(n->what, sizeof(n->what), "%s",
		 m->memory ? "snapshot" : "snapshot (disk)");
	return 0;
}

static int add_vm(const char *name, void *data)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	long long created = 0;
	struct node *n;

	if (!sandbox_find(&s, name))
		return 0;
	n = add(data, name);
	if (!n)
		return fail_errno(EX_OSERR, "cannot draw");
	if (read_value(s.dir, "snapshot", n->parent, sizeof(n->parent)) < 0)
		n->parent[0] = '\0';
	read_number(s.dir, "created", 0, INT64_MAX, &created);
	format_utc(n->created, created);
	info_state(&s, n->what, sizeof(n->what));
	return 0;
}

/* ---- in which order ----------------------------------------------------- */

/* Snapshots first; of those that a fork has made, the tenth behind the second.
 */
static int by_kind_and_name(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->snapshot != y->snapshot)
		return x->snapshot ? -1 : 1;
	return strverscmp(x->name, y->name);
}

static bool is_child(const struct node *parent, const struct node *n)
{
	return parent->snapshot && parent != n &&
	       strcmp(parent->name, n->parent) == 0 &&
	       strcmp(parent->created, n->created) <= 0;
}

/* A node and all below it; one of a loop, as files of an odd clock can make it,
 * is drawn once. */
static void draw(struct tree *t, size_t i, int depth)
{
	struct node *n = &t->node[i];
	int width = depth * 2 + (int)strlen(n->name);

	if (n->drawn)
		return;
	n->drawn = true;
	n->depth = depth;
	t->line[t->lines++] = i;
	if (width > t->width)
		t->width = width;
	for (size_t k = 0; n->snapshot && k < t->nodes; k++)
		if (is_child(n, &t->node[k]))
			draw(t, k, depth + 1);
}

static bool is_root(const struct tree *t, size_t i)
{
	for (size_t k = 0; k < t->nodes; k++)
		if (is_child(&t->node[k], &t->node[i]))
			return false;
	return true;
}

static void print(const struct tree *t)
{
	for (size_t i = 0; i < t->lines; i++) {
		const struct node *n = &t->node[t->line[i]];
		int indent = n->depth * 2;

		printf("%*s%-*s  %s\n", indent, "", t->width - indent, n->name,
		       n->what);
	}
}

int snap_tree(void)
{
	struct tree t = {0};
	int r = names_each("snap", add_snap, &t);

	if (r == 0)
		r = sandbox_each(add_vm, &t);
	if (r == 0 && t.nodes > 0) {
		t.line = calloc(t.nodes, sizeof(*t.line));
		if (!t.line)
			r = fail_errno(EX_OSERR, "cannot draw");
	}
	if (t.line) {
		qsort(t.node, t.nodes, sizeof(*t.node), by_kind_and_name);
		for (size_t i = 0; i < t.nodes; i++)
			if (is_root(&t, i))
				draw(&t, i, 0);
		for (size_t i = 0; i < t.nodes; i++)
			draw(&t, i, 0);
		print(&t);
	}
	free(t.line);
	free(t.node);
	return r;
}
