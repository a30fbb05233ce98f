/*
 * lineage.c - read what snapshots and sandboxes say of where they came from.
 */
#include "lineage.h"
#include "info.h"
#include "snap.h"

struct reading {
	struct lineage *l;
	bool (*wanted)(const char *name, const void *data);
	const void *data;
};

static bool wants(const struct reading *r, const char *name)
{
	return !r->wanted || r->wanted(name, r->data);
}

static struct relative *add(struct lineage *l, const char *name)
{
	struct relative *more = reallocarray(l->all, l->n + 1, sizeof(*more));

	if (!more) {
		fail_errno(EX_OSERR, "cannot list what came of what");
		return NULL;
	}
	l->all = more;
	more += l->n++;
	memset(more, 0, sizeof(*more));
	snprintf(more->name, sizeof(more->name), "%s", name);
	return more;
}

static int add_snap(const char *name, void *data)
{
	const struct reading *r = data;
	AUTO_SNAP struct snap snap = SNAP_NONE;
	const struct snap_manifest *m = &snap.manifest;
	struct relative *one;

	if (!wants(r, name) || !snap_exists(name) ||
	    snap_open(&snap, name, false) < 0)
		return 0;
	one = add(r->l, name);
	if (!one)
		return -EX_OSERR;
	one->snapshot = true;
	snprintf(one->parent, sizeof(one->parent), "%s", m->parent);
	snprintf(one->created, sizeof(one->created), "%s", m->created);
	snprintf(one->what, sizeof(one->what), "%s",
		 m->memory ? "snapshot" : "snapshot (disk)");
	return 0;
}

static int add_vm(const char *name, void *data)
{
	const struct reading *r = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	long long created = 0;
	struct relative *one;

	if (!wants(r, name) || !sandbox_find(&s, name))
		return 0;
	one = add(r->l, name);
	if (!one)
		return -EX_OSERR;
	if (read_value(s.dir, "snapshot", one->parent, sizeof(one->parent)) < 0)
		one->parent[0] = '\0';
	read_number(s.dir, "created", 0, INT64_MAX, &created);
	format_utc(one->created, created);
	info_state(&s, one->what, sizeof(one->what));
	return 0;
}

int lineage_read(struct lineage *l,
		 bool (*wanted)(const char *name, const void *data),
		 const void *data)
{
	struct reading reading = {l, wanted, data};
	int r = names_each("snap", add_snap, &reading);

	return r < 0 ? r : sandbox_each(add_vm, &reading);
}

void lineage_free(struct lineage *l)
{
	free(l->all);
	*l = (struct lineage)LINEAGE_NONE;
}

bool lineage_child(const struct relative *parent, const struct relative *child)
{
	return parent->snapshot && parent != child &&
	       strcmp(parent->name, child->parent) == 0 &&
	       strcmp(parent->created, child->created) <= 0;
}

size_t lineage_parent(const struct lineage *l, size_t i)
{
	size_t parent = 0;

	while (parent < l->n && !lineage_child(&l->all[parent], &l->all[i]))
		parent++;
	return parent;
}
