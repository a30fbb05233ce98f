/*
 * rest-snap.c - snapshots, and sandboxes out of them.
 */
#include "lineage.h"
#include "metrics.h"
#include "rest.h"
#include "snap.h"

/* ---- what is known of them ----------------------------------------------- */

/* A tenant's own word for a name, or null. */
static json_t *own_or_null(const struct call *c, const char *full)
{
	const char *own = *full ? own_name(c, full) : NULL;

	return own ? json_string(own) : json_null();
}

static json_t *snap_json(const struct call *c, const struct snap_manifest *m)
{
	const char *source = own_name(c, m->source);
	json_t *object = json_pack(
		"{s:s,s:s,s:s,s:o,s:s,s:s,s:b,s:i,s:I,s:I}", "snapshotId",
		own_name(c, m->name), "id", m->id, "vmName",
		source ? source : "", "parent", own_or_null(c, m->parent),
		"image", m->image, "created", m->created, "hasMemory",
		m->memory, "cpus", (int)m->cpus, "memory",
		(json_int_t)m->memory_size, "disk", (json_int_t)m->disk_size);

	if (object && m->memory) {
		json_object_set_new(object, "vmm", json_string(m->vmm));
		json_object_set_new(object, "vmmVersion",
				    json_string(m->version));
		json_object_set_new(object, "accel", json_string(m->accel));
	}
	return object;
}

struct listing {
	const struct call *c;
	json_t *list;
};

static int list_one(const char *name, void *data)
{
	const struct listing *l = data;
	AUTO_SNAP struct snap snap = SNAP_NONE;

	/* A broken one must not hide the others; it has been told. */
	if (own_name(l->c, name) && snap_open(&snap, name, false) == 0)
		json_array_append_new(l->list, snap_json(l->c, &snap.manifest));
	return 0;
}

int rest_snaps(struct call *c)
{
	struct listing l = {c, json_array()};
	int r = names_each("snap", list_one, &l);

	if (r < 0) {
		json_decref(l.list);
		return answer_failure(c, -r, last_message());
	}
	return answer_json(200, json_pack("{s:o}", "snapshots", l.list));
}

static int check_there(const struct call *c)
{
	return snap_exists(c->full)
		       ? 0
		       : answer_error(404, NULL, "no such snapshot '%s'",
				      c->name);
}

int rest_snap_get(struct call *c)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	int r = check_there(c);

	if (r)
		return r;
	r = snap_open(&snap, c->full, false);
	if (r < 0)
		return answer_failure(c, -r, last_message());
	return answer_json(200, snap_json(c, &snap.manifest));
}

/* ---- the tree ------------------------------------------------------------ */

static bool is_own(const char *name, const void *data)
{
	return own_name(data, name) != NULL;
}

static json_t *tree_node(const struct call *c, const struct relative *one)
{
	return json_pack("{s:s,s:s,s:[]}", "kind",
			 one->snapshot ? "snapshot" : "vm", "name",
			 own_name(c, one->name), "children");
}

/* A loop, which files that were meddled with could make, would have no root
 * and is left out. */
int rest_snap_tree(struct call *c)
{
	AUTO_LINEAGE struct lineage l = LINEAGE_NONE;
	json_t *nodes = json_array(), *roots = json_array(), *node;
	int r = lineage_read(&l, is_own, c);
	size_t i;

	for (i = 0; i < l.n; i++)
		json_array_append_new(nodes, tree_node(c, &l.all[i]));
	json_array_foreach(nodes, i, node)
	{
		json_t *parent = json_array_get(nodes, lineage_parent(&l, i));

		json_array_append(parent ? json_object_get(parent, "children")
					 : roots,
				  node);
	}
	json_decref(nodes);
	if (r < 0) {
		json_decref(roots);
		return answer_failure(c, -r, last_message());
	}
	return answer_json(200, json_pack("{s:o}", "tree", roots));
}

/* ---- take, remove, verify ------------------------------------------------ */

/* SANDBOX-1, -2 ...: in the tenant's words as well as in the host's. */
static int choose_name(const struct call *c, char full[NAME_MAX_LEN + 1])
{
	const char *given = call_text(c, F_SNAPSHOT);
	unsigned number;
	int r;

	if (given && *given)
		return full_name(c, "snapshot", given, full);
	r = free_name("snap", c->full, 1, full, &number);
	return r < 0 ? answer_failure(c, -r, last_message()) : 0;
}

/* Take one of c->full: 0, or what was answered. */
static int take(struct call *c, const char *full)
{
	AUTO_COMMAND struct command cmd = {0};
	struct quota_ask ask = {.snapshot = full};
	int r = quota_ask_snapshot(&ask, c->full);

	if (r < 0)
		return answer_failure(c, -r, last_message());
	r = claim(c, &ask);
	if (r)
		return r;
	command_add(&cmd, "ark-snap");
	command_add(&cmd, "take");
	command_add(&cmd, c->full);
	command_add(&cmd, full);
	r = command_run(&cmd);
	return r ? answer_failure(c, r, cmd.why) : 0;
}

int rest_snapshot(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char full[NAME_MAX_LEN + 1];
	uint64_t began = now_us();
	int r = open_vm(c, &s);

	if (r == 0)
		r = choose_name(c, full);
	if (r)
		return r;
	if (snap_exists(full))
		return answer_error(409, NULL, "snapshot '%s' exists already",
				    own_name(c, full));
	r = take(c, full);
	if (r)
		return r;
	metrics_time(TIME_SNAPSHOT, now_us() - began);
	return answer_json(200,
			   json_pack("{s:s}", "snapshotId", own_name(c, full)));
}

static int run_verb(struct call *c, struct command *cmd, const char *verb)
{
	command_add(cmd, "ark-snap");
	command_add(cmd, verb);
	command_add(cmd, c->full);
	return command_run(cmd);
}

int rest_snap_remove(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	int r = check_there(c);

	if (r)
		return r;
	r = run_verb(c, &cmd, "rm");
	return r ? answer_failure(c, r, cmd.why) : answer_success();
}

int rest_snap_verify(struct call *c)
{
	AUTO_COMMAND struct command cmd = {0};
	json_t *problems;
	int r = check_there(c);

	if (r)
		return r;
	r = run_verb(c, &cmd, "verify");
	if (r && r != EX_DATAERR)
		return answer_failure(c, r, cmd.why);
	problems = r ? json_pack("[s]", cmd.why) : json_array();
	return answer_json(200, json_pack("{s:b,s:o}", "ok", r == 0, "problems",
					  problems));
}

/* ---- fork ---------------------------------------------------------------- */

static int fork_it(struct call *c, const char *snapshot, const char *base)
{
	AUTO_COMMAND struct command cmd = {0};
	const char *given = call_text(c, F_PREFIX);
	bool partial = call_truth(c, F_PARTIAL, false);
	char prefix[NAME_MAX_LEN + 1], number[24];
	uint64_t count = 1, began = now_us();
	int r = given ? full_name(c, "sandbox", given, prefix) : 0;

	if (!given)
		snprintf(prefix, sizeof(prefix), "%s", base);
	call_number(c, F_COUNT, &count);
	if (r == 0)
		r = claim_clones(c, snapshot, count, NULL);
	if (r)
		return r;
	snprintf(number, sizeof(number), "%u", (unsigned)count);
	command_add(&cmd, "ark-snap");
	command_add(&cmd, "fork");
	command_option(&cmd, "-c", number);
	command_option(&cmd, "--name", prefix);
	if (partial)
		command_add(&cmd, "--partial");
	command_add(&cmd, snapshot);
	r = command_run(&cmd);
	metrics_time(TIME_FORK, now_us() - began);
	if (r && !(partial && cmd.output && *cmd.output))
		return answer_failure(c, r, cmd.why);
	return answer_json(200, vms_json(c, cmd.output));
}

int rest_fork_snapshot(struct call *c)
{
	int r = check_there(c);

	return r ? r : fork_it(c, c->full, c->full);
}

/* The snapshot is taken by a command of its own: a snapshot and a sandbox may
 * have the same name, and then `ark fork` means the snapshot. */
int rest_fork(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char full[NAME_MAX_LEN + 1];
	int r = open_vm(c, &s);

	if (r == 0)
		r = choose_name(c, full);
	if (r == 0)
		r = take(c, full);
	if (r)
		return r;
	quota_release(&c->claim);
	return fork_it(c, full, full);
}
