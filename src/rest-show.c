/*
 * rest-show.c - what the API tells of a sandbox, out of files and /proc.
 */
#include "agent.h"
#include "info.h"
#include "plan.h"
#include "rest.h"
#include "usage.h"

#include <ctype.h>

#define PROBE_MS 2000

int open_vm(const struct call *c, struct sandbox *s)
{
	if (!sandbox_exists(c->full) || sandbox_open(s, c->full) < 0)
		return answer_error(404, NULL, "no such sandbox '%s'", c->name);
	return 0;
}

int open_running(const struct call *c, struct sandbox *s)
{
	int r = open_vm(c, s);

	if (r)
		return r;
	if (s->state == VM_RUNNING && !s->starting)
		return 0;
	return answer_error(409, "not_running", "'%s' does not run: it is %s",
			    c->name, s->starting ? "starting" : state_word(s));
}

/* ---- its parts ----------------------------------------------------------- */

static json_t *port_json(const struct port *p)
{
	char guest[8], host[8] = "";

	snprintf(guest, sizeof(guest), "%u", p->guest);
	if (p->host)
		snprintf(host, sizeof(host), "%u", p->host);
	return json_pack("{s:s,s:s,s:s,s:s,s:s}", "guestPort", guest,
			 "hostPort", host, "description", p->what, "address",
			 p->address, "protocol", p->udp ? "udp" : "tcp");
}

json_t *ports_json(const struct sandbox *s)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	json_t *list = json_array();
	int n = 0;

	if (ports)
		n = s->slot ? ports_read(s->run, "ports", ports, PORTS_MAX)
			    : ports_read(s->dir, "publish", ports, PORTS_MAX);
	for (int i = 0; i < n; i++)
		json_array_append_new(list, port_json(&ports[i]));
	return list;
}

static void value(const struct sandbox *s, const char *name, char *out,
		  size_t size)
{
	if (read_value(s->dir, name, out, size) < 0)
		*out = '\0';
}

/* What `ark inspect` has in seconds since 1970. */
static void add_time(json_t *to, const json_t *from, const char *key)
{
	const json_t *seconds = json_object_get(from, key);
	char text[UTC_SIZE];

	if (!seconds)
		return;
	format_utc(text, json_integer_value(seconds));
	if (*text)
		json_object_set_new(to, key, json_string(text));
}

static void add_network(json_t *object, const struct sandbox *s)
{
	char outer[20] = "", link[16] = "";

	if (s->slot && read_value(s->run, "net", outer, 16) > 0) {
		snprintf(outer + strlen(outer), 4, "/16");
		plan_link(s->slot, link);
	}
	json_object_set_new(object, "ip", json_string(outer));
	json_object_set_new(object, "tapDeviceName", json_string(link));
	json_object_set_new(object, "portForwards", ports_json(s));
}

static const char *arrakis_status(const struct sandbox *s)
{
	switch (s->state) {
	case VM_CREATED:
		return "CREATED";
	case VM_RUNNING:
		return "RUNNING";
	case VM_PAUSED:
		return "PAUSED";
	case VM_STOPPED:
	case VM_DEAD:
		break;
	}
	return "STOPPED";
}

/* Take a key of `ark inspect` over, under the name that the API has for it. */
static void move(json_t *to, json_t *from, const char *key, const char *name)
{
	json_t *each = json_object_get(from, key);

	if (each)
		json_object_set(to, name, each);
}

/* A tenant's word for what it was restored from; other names are nobody's. */
static json_t *origin_json(const struct call *c, const struct sandbox *s)
{
	char snapshot[NAME_MAX_LEN + 2];
	const char *own;

	value(s, "snapshot", snapshot, sizeof(snapshot));
	own = *snapshot ? own_name(c, snapshot) : NULL;
	return own ? json_string(own) : json_null();
}

json_t *vm_json(const struct call *c, const struct sandbox *s, bool probe)
{
	static const char *const same[] = {
		"reason", "ready", "id",	 "image",    "cpus",
		"memory", "disk",  "generation", "accel",    "rm",
		"ttl",	  "vmm",   "state",	 "isolation"};
	json_t *info = info_json(s, USAGE_DISK);
	json_t *object = json_object();
	char policy[8];
	bool runs = s->state == VM_RUNNING;

	json_object_set_new(object, "vmName",
			    json_string(own_name(c, s->name)));
	json_object_set_new(object, "status", json_string(arrakis_status(s)));
	add_network(object, s);
	for (size_t i = 0; i < ARRAY_LEN(same); i++)
		move(object, info, same[i], same[i]);
	move(object, info, "disk_used", "diskUsed");
	add_time(object, info, "created");
	add_time(object, info, "expires");
	json_decref(info);
	if (runs && s->starting)
		json_object_set_new(object, "state", json_string("starting"));
	value(s, "policy", policy, sizeof(policy));
	if (*policy)
		json_object_set_new(object, "policy", json_string(policy));
	json_object_set_new(object, "snapshotId", origin_json(c, s));
	if (probe && runs && !s->starting)
		json_object_set_new(object, "answers",
				    json_boolean(agent_answers(s, PROBE_MS)));
	return object;
}

/* ---- answers ------------------------------------------------------------- */

int answer_vm(const struct call *c, const char *full)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	if (!sandbox_exists(full) || sandbox_open(&s, full) < 0)
		return answer_error(404, NULL, "the sandbox has gone");
	return answer_json(200, vm_json(c, &s, false));
}

int answer_success(void)
{
	return answer_json(200, json_pack("{s:b}", "success", 1));
}

json_t *vms_json(const struct call *c, const char *names)
{
	json_t *list = json_array();

	while (*names) {
		AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
		size_t len = strcspn(names, "\n");
		char name[NAME_MAX_LEN + 1];

		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		names += len + (names[len] == '\n');
		if (name_ok(name) && own_name(c, name) &&
		    sandbox_find(&s, name))
			json_array_append_new(list, vm_json(c, &s, false));
	}
	return json_pack("{s:o}", "vms", list);
}
