/*
 * snap-tree.c - draw what came of what: snapshots and sandboxes, each below the
 * snapshot that it was taken or restored from.
 */
#include "snap.h"

#include <fcntl.h>

/* Lines of one parent, indented below it; a parent that is gone is a root. */
struct branch {
	const char *parent;
	int depth;
};

static int draw(const char *name, void *data);

static int draw_vm(const char *name, void *data)
{
	const struct branch *b = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char from[NAME_MAX_LEN + 2];

	if (!sandbox_exists(name) || sandbox_open(&s, name) < 0)
		return 0;
	if (read_value(s.dir, "snapshot", from, sizeof(from)) < 0)
		from[0] = '\0';
	if (strcmp(from, b->parent) == 0)
		printf("%*s%s (sandbox, %s)\n", b->depth * 2, "", name,
		       state_word(&s));
	return 0;
}

static int draw(const char *name, void *data)
{
	const struct branch *b = data;
	struct branch below = {.parent = name, .depth = b->depth + 1};
	AUTO_SNAP struct snap snap = SNAP_NONE;
	const char *parent;

	if (b->depth > 64 || snap_open(&snap, name, false) < 0)
		return 0;
	parent = snap_exists(snap.manifest.parent) ? snap.manifest.parent : "";
	if (strcmp(parent, b->parent) != 0)
		return 0;
	printf("%*s%s\n", b->depth * 2, "", name);
	names_each("snap", draw, &below);
	return sandbox_each(draw_vm, &below);
}

int snap_tree(void)
{
	struct branch root = {.parent = "", .depth = 0};

	return names_each("snap", draw, &root);
}
