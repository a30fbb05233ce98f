/*
 * info.c - gather what is known of a sandbox from its files and /proc.
 */
#include "cgroup.h"
#include "expiry.h"
#include "info.h"
#include "usage.h"
#include "vmm.h"

#include <fcntl.h>

void info_state(const struct sandbox *s, char *out, size_t size)
{
	if (s->state == VM_DEAD)
		snprintf(out, size, "dead(%s)", s->reason);
	else if (s->state == VM_RUNNING && s->starting)
		snprintf(out, size, "starting");
	else
		snprintf(out, size, "%s", state_word(s));
}

void info_isolation(const struct sandbox *s, char *out, size_t size)
{
	char accel[16];

	if (s->run < 0 || !s->vmm.pid ||
	    read_value(s->run, "accel", accel, sizeof(accel)) < 0)
		snprintf(out, size, "-");
	else if (strcmp(accel, "kvm") == 0)
		snprintf(out, size, "kvm");
	else
		snprintf(out, size, "none (%s)", accel);
}

static void add_text(json_t *object, const char *key, int dir, const char *name)
{
	char text[256], clean[300];

	if (dir < 0 || read_value(dir, name, text, sizeof(text)) < 0)
		return;
	printable(clean, sizeof(clean), text);
	json_object_set_new(object, key, json_string(clean));
}

static void add_number(json_t *object, const char *key, int dir,
		       const char *name)
{
	long long number;

	if (read_number(dir, name, 0, INT64_MAX, &number) == 0)
		json_object_set_new(object, key, json_integer(number));
}

static void add_count(json_t *object, const char *key, bool known,
		      uint64_t count)
{
	if (known)
		json_object_set_new(object, key,
				    json_integer((json_int_t)count));
}

static void add_usage(json_t *object, const struct sandbox *s, unsigned what)
{
	struct usage u;

	usage_read(s, what, &u);
	add_count(object, "disk_used", u.known & USAGE_DISK, u.disk);
	add_count(object, "cpu_ms", u.known & USAGE_CPU, u.cpu_ms);
	add_count(object, "up_ms", u.known & USAGE_CPU, u.up_ms);
	add_count(object, "resident", u.known & USAGE_RESIDENT, u.resident);
	add_count(object, "private", u.known & USAGE_PRIVATE, u.private);
	add_count(object, "rx", u.known & USAGE_NET, u.rx);
	add_count(object, "tx", u.known & USAGE_NET, u.tx);
}

/* When, by the clock that others have. */
static void add_expiry(json_t *object, const struct sandbox *s)
{
	struct timespec now;
	uint64_t ms;

	if (!expiry_left(s, &ms))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	ms += (uint64_t)now.tv_nsec / 1000000;
	add_count(object, "expires", true,
		  (uint64_t)now.tv_sec + (ms + 500) / 1000);
}

static void add_run(json_t *object, const struct sandbox *s)
{
	char isolation[32];

	if (!s->slot)
		return;
	json_object_set_new(object, "slot", json_integer(s->slot));
	if (s->vmm.pid)
		json_object_set_new(object, "vmm_pid",
				    json_integer(s->vmm.pid));
	add_expiry(object, s);
	json_object_set_new(object, "keeper", json_boolean(s->keeper_alive));
	add_text(object, "generation", s->run, "generation");
	add_text(object, "accel", s->run, "accel");
	add_text(object, "vmm", s->run, "vmm-version");
	info_isolation(s, isolation, sizeof(isolation));
	json_object_set_new(object, "isolation", json_string(isolation));
	json_object_set_new(object, "limits", cgroup_json(s));
}

json_t *info_json(const struct sandbox *s, unsigned usage)
{
	json_t *object = json_object();

	if (!object)
		return NULL;
	json_object_set_new(object, "name", json_string(s->name));
	json_object_set_new(object, "state", json_string(state_word(s)));
	json_object_set_new(
		object, "ready",
		json_boolean(s->state == VM_RUNNING && !s->starting));
	json_object_set_new(object, "reason",
			    s->reason[0] ? json_string(s->reason)
					 : json_null());
	add_text(object, "id", s->dir, "id");
	add_text(object, "image", s->dir, "image");
	add_number(object, "cpus", s->dir, "cpus");
	add_number(object, "memory", s->dir, "memory");
	add_number(object, "disk", s->dir, "disk-size");
	add_number(object, "created", s->dir, "created");
	add_text(object, "parent", s->dir, "snapshot");
	add_number(object, "ttl", s->dir, "ttl");
	add_usage(object, s, usage);
	json_object_set_new(
		object, "rm",
		json_boolean(faccessat(s->dir, "rm", F_OK, 0) == 0));
	add_run(object, s);
	return object;
}

json_t *info_counters(const struct sandbox *s)
{
	const struct vmm *driver =
		s->vmm.pid && s->state != VM_DEAD ? vmm_of(s) : NULL;
	struct vmm_counters c;

	if (!driver || !driver->counters || driver->counters(s, &c) < 0)
		return NULL;
	return json_pack(
		"{s:I, s:I, s:I, s:I}", "disk_read", (json_int_t)c.disk_read,
		"disk_written", (json_int_t)c.disk_written, "net_received",
		(json_int_t)c.net_received, "net_sent", (json_int_t)c.net_sent);
}
