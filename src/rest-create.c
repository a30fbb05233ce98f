/*
 * rest-create.c - POST /vms: make a sandbox and start it, start one that is
 * there, or restore a snapshot, as Arrakis' clients ask for all three.
 */
#include "image.h"
#include "metrics.h"
#include "rest.h"
#include "snap.h"

#include <arpa/inet.h>
#include <fcntl.h>

/* ---- ports --------------------------------------------------------------- */

int check_publish(const struct call *c, const char *spec)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	const char *why = "no memory";
	size_t n = ports ? port_parse(spec, ports, PORTS_MAX, &why) : 0;

	if (n == 0)
		return answer_error(400, NULL, "bad port '%s': %s", spec, why);
	for (size_t i = 0; i < n && c->token->scope < SCOPE_ADMIN; i++)
		if (strcmp(ports[i].address, "127.0.0.1") != 0 ||
		    (ports[i].host > 0 && ports[i].host < 1024))
			return answer_error(403, NULL, "needs the scope admin");
	return 0;
}

/* What the image declares, when the request says nothing. */
static void add_declared(struct command *cmd, const char *image, json_t **keep)
{
	AUTO_CLOSE int dir = image_open(image);
	const json_t *ports;

	*keep = dir < 0 ? NULL : image_manifest(dir, image);
	ports = json_object_get(*keep, "ports");
	for (size_t i = 0; i < json_array_size(ports); i++) {
		command_option(cmd, "-p",
			       json_string_value(json_array_get(ports, i)));
	}
}

static int add_asked(const struct call *c, struct command *cmd)
{
	const struct record *port;

	for (size_t i = 0; (port = call_record(c, F_PORTS, i)); i++) {
		int r;

		if (!*port->data)
			continue;
		r = check_publish(c, port->data);
		if (r)
			return r;
		command_option(cmd, "-p", port->data);
	}
	return 0;
}

/* ---- a new one ----------------------------------------------------------- */

struct wish {
	const char *image;
	struct conf conf;
};

/* Check it, with the defaults of ark.conf, against the quotas. */
static int claim_new(struct call *c, struct wish *w, const char *full)
{
	struct quota_ask ask = {.sandbox = full};
	const char *memory = call_text(c, F_MEMORY);
	const char *disk = call_text(c, F_DISK), *why;
	uint64_t cpus;
	int r = conf_load(&w->conf);

	if (r < 0)
		return answer_failure(c, -r, last_message());
	w->image = call_text(c, F_IMAGE);
	if (!w->image)
		w->image = w->conf.image;
	cpus = w->conf.cpus;
	call_number(c, F_CPUS, &cpus);
	ask.amount[QUOTA_SANDBOXES] = 1;
	ask.amount[QUOTA_CPUS] = cpus;
	ask.amount[QUOTA_MEMORY] = w->conf.memory;
	ask.amount[QUOTA_DISK] = w->conf.disk_size;
	if (memory)
		parse_size(memory, &ask.amount[QUOTA_MEMORY], &why);
	if (disk)
		parse_size(disk, &ask.amount[QUOTA_DISK], &why);
	return claim(c, &ask);
}

static bool image_exists(const char *name)
{
	AUTO_CLOSE int images = root_open("image");

	return name_ok(name) && images >= 0 &&
	       faccessat(images, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int make_new(struct call *c, const char *full)
{
	AUTO_COMMAND struct command cmd = {0};
	struct wish w = {0};
	char cpus[DIGITS_SIZE], ttl[DIGITS_SIZE];
	bool start = call_truth(c, F_START, true);
	json_t *manifest = NULL;
	uint64_t began = now_us();
	int r = claim_new(c, &w, full);

	if (r)
		return r;
	if (!image_exists(w.image))
		return answer_error(404, NULL, "no such image '%s'", w.image);
	command_add(&cmd, start ? "ark-run" : "ark-vm");
	if (!start)
		command_add(&cmd, "create");
	command_option(&cmd, "-m", call_text(c, F_MEMORY));
	command_option(&cmd, "-c", call_digits(c, F_CPUS, cpus));
	command_option(&cmd, "--disk", call_text(c, F_DISK));
	command_option(&cmd, "--net-rate", call_text(c, F_RATE));
	command_option(&cmd, "--policy", call_text(c, F_POLICY));
	command_option(&cmd, "--ttl", call_digits(c, F_TTL, ttl));
	if (call_truth(c, F_REMOVE, false))
		command_add(&cmd, "--rm");
	if (call_record(c, F_PORTS, 0))
		r = add_asked(c, &cmd);
	else
		add_declared(&cmd, w.image, &manifest);
	command_option(&cmd, start ? "--name" : "--image",
		       start ? full : w.image);
	command_add(&cmd, start ? w.image : full);
	if (r == 0) {
		r = command_run(&cmd);
		if (r == 0 && start)
			metrics_time(TIME_START, now_us() - began);
		r = r ? answer_failure(c, r, cmd.why) : answer_vm(c, full);
	}
	json_decref(manifest);
	return r;
}

/* ---- restore ------------------------------------------------------------- */

int claim_clones(struct call *c, const char *snapshot, uint64_t count,
		 const char *full)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	const struct snap_manifest *m = &snap.manifest;
	struct quota_ask ask = {.sandbox = full};
	int r = snap_open(&snap, snapshot, false);

	if (r < 0)
		return answer_failure(c, -r, last_message());
	ask.amount[QUOTA_SANDBOXES] = count;
	ask.amount[QUOTA_CPUS] = count * m->cpus;
	ask.amount[QUOTA_MEMORY] = count * m->memory_size;
	ask.amount[QUOTA_DISK] = count * m->disk_size;
	return claim(c, &ask);
}

static int restore(struct call *c, const char *snapshot, const char *full)
{
	AUTO_COMMAND struct command cmd = {0};
	char from[NAME_MAX_LEN + 1];
	uint64_t began = now_us();
	int r = full_name(c, "snapshot", snapshot, from);

	if (r)
		return r;
	if (!snap_exists(from))
		return answer_error(404, NULL, "no such snapshot '%s'",
				    snapshot);
	r = claim_clones(c, from, 1, full);
	if (r)
		return r;
	command_add(&cmd, "ark-snap");
	command_add(&cmd, "restore");
	command_add(&cmd, from);
	command_add(&cmd, full);
	r = command_run(&cmd);
	if (r)
		return answer_failure(c, r, cmd.why);
	metrics_time(TIME_RESTORE, now_us() - began);
	return answer_vm(c, full);
}

/* ---- all three ----------------------------------------------------------- */

static int start_old(struct call *c, const char *full)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	if (sandbox_open(&s, full) < 0)
		return answer_error(409, "busy", "it is just being removed");
	if (s.state == VM_RUNNING || s.state == VM_PAUSED)
		return answer_error(409, NULL, "'%s' runs already", c->name);
	return start_vm(c, full);
}

int rest_create(struct call *c)
{
	const char *snapshot = call_text(c, F_SNAPSHOT);
	char full[NAME_MAX_LEN + 1];
	int r;

	c->name = call_text(c, F_VM_NAME);
	r = full_name(c, "sandbox", c->name, full);
	if (r)
		return r;
	memcpy(c->full, full, sizeof(full));
	if (snapshot && *snapshot)
		return sandbox_exists(full)
			       ? answer_error(409, NULL, "'%s' exists already",
					      c->name)
			       : restore(c, snapshot, full);
	return sandbox_exists(full) ? start_old(c, full) : make_new(c, full);
}
