/*
 * rest.c - the routes.  share/openapi.yaml is the contract.
 */
#include "rest.h"
#include "metrics.h"

#define V1 ROUTE_V1
#define CHANGES ROUTE_CHANGES

const struct route routes[] = {
	/* What Arrakis has. */
	{"GET", "/health", "health", SCOPE_NONE, 0, rest_health, {0}, {0}},
	{"GET", "/vms", "list", SCOPE_READ, 0, rest_list, {F_PROBE}, {0}},
	{"POST",
	 "/vms",
	 "start",
	 SCOPE_MANAGE,
	 CHANGES,
	 rest_create,
	 {F_VM_NAME, F_SNAPSHOT, F_KERNEL, F_ROOTFS, F_INITRAMFS, F_ENTRY,
	  F_IMAGE, F_MEMORY, F_CPUS, F_DISK, F_RATE, F_POLICY, F_PORTS,
	  F_REMOVE, F_START},
	 {F_VM_NAME}},
	{"DELETE",
	 "/vms",
	 "destroy-all",
	 SCOPE_MANAGE,
	 CHANGES,
	 rest_destroy_all,
	 {0},
	 {0}},
	{"GET", "/vms/{name}", "get", SCOPE_READ, 0, rest_get, {F_PROBE}, {0}},
	{"PATCH",
	 "/vms/{name}",
	 "update",
	 SCOPE_MANAGE,
	 CHANGES,
	 rest_patch,
	 {F_STATUS},
	 {F_STATUS}},
	{"DELETE",
	 "/vms/{name}",
	 "destroy",
	 SCOPE_MANAGE,
	 CHANGES,
	 rest_destroy,
	 {0},
	 {0}},
	{"POST",
	 "/vms/{name}/snapshots",
	 "snapshot",
	 SCOPE_MANAGE,
	 CHANGES,
	 rest_snapshot,
	 {F_SNAPSHOT},
	 {0}},
	{"POST",
	 "/vms/{name}/cmd",
	 "cmd",
	 SCOPE_EXEC,
	 CHANGES,
	 rest_cmd,
	 {F_CMD, F_BLOCKING, F_TIMEOUT},
	 {F_CMD}},
	{"POST",
	 "/vms/{name}/files",
	 "put-files",
	 SCOPE_EXEC,
	 CHANGES | ROUTE_BIG,
	 rest_files_put,
	 {F_FILES},
	 {F_FILES}},
	{"GET",
	 "/vms/{name}/files",
	 "get-files",
	 SCOPE_EXEC,
	 0,
	 rest_files_get,
	 {F_PATHS},
	 {F_PATHS}},

	/* The life of a sandbox. */
	{"POST",
	 "/vms/{name}/start",
	 "start",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_start,
	 {0},
	 {0}},
	{"POST",
	 "/vms/{name}/stop",
	 "stop",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_stop,
	 {F_GRACE},
	 {0}},
	{"POST",
	 "/vms/{name}/kill",
	 "kill",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_kill,
	 {0},
	 {0}},
	{"POST",
	 "/vms/{name}/pause",
	 "pause",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_pause,
	 {0},
	 {0}},
	{"POST",
	 "/vms/{name}/resume",
	 "resume",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_resume,
	 {0},
	 {0}},
	{"GET",
	 "/vms/{name}/wait",
	 "wait",
	 SCOPE_READ,
	 V1,
	 rest_wait,
	 {F_WAIT},
	 {0}},
	{"GET",
	 "/vms/{name}/logs",
	 "logs",
	 SCOPE_READ,
	 V1,
	 rest_logs,
	 {F_FOLLOW},
	 {0}},
	{"PUT",
	 "/vms/{name}/disk",
	 "resize",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_resize,
	 {F_SIZE},
	 {F_SIZE}},

	/* Commands. */
	{"POST",
	 "/vms/{name}/exec",
	 "exec",
	 SCOPE_EXEC,
	 V1 | CHANGES,
	 rest_exec,
	 {F_ARGV, F_CMD, F_ENV, F_CWD, F_USER, F_TIMEOUT, F_STDIN, F_STDIN64,
	  F_STREAM, F_DETACH},
	 {0}},
	{"GET", "/vms/{name}/execs", "execs", SCOPE_READ, V1, rest_execs, {0},
	 {0}},
	{"GET",
	 "/vms/{name}/execs/{id}",
	 "exec-get",
	 SCOPE_READ,
	 V1,
	 rest_exec_get,
	 {0},
	 {0}},
	{"DELETE",
	 "/vms/{name}/execs/{id}",
	 "exec-kill",
	 SCOPE_EXEC,
	 V1 | CHANGES,
	 rest_exec_kill,
	 {F_SIGNAL},
	 {0}},
	{"GET",
	 "/vms/{name}/execs/{id}/logs",
	 "exec-logs",
	 SCOPE_EXEC,
	 V1,
	 rest_exec_logs,
	 {F_FOLLOW},
	 {0}},
	{"GET",
	 "/vms/{name}/execs/{id}/wait",
	 "exec-wait",
	 SCOPE_EXEC,
	 V1,
	 rest_exec_wait,
	 {F_WAIT},
	 {0}},

	/* Files. */
	{"GET",
	 "/vms/{name}/file",
	 "get-file",
	 SCOPE_EXEC,
	 V1,
	 rest_file_get,
	 {F_PATH},
	 {F_PATH}},
	{"PUT",
	 "/vms/{name}/file",
	 "put-file",
	 SCOPE_EXEC,
	 V1 | CHANGES | ROUTE_STREAM,
	 rest_file_put,
	 {F_PATH, F_MODE},
	 {F_PATH}},
	{"GET",
	 "/vms/{name}/tree",
	 "get-tree",
	 SCOPE_EXEC,
	 V1,
	 rest_tree_get,
	 {F_PATH},
	 {F_PATH}},
	{"PUT",
	 "/vms/{name}/tree",
	 "put-tree",
	 SCOPE_EXEC,
	 V1 | CHANGES | ROUTE_STREAM,
	 rest_tree_put,
	 {F_PATH},
	 {F_PATH}},

	/* Snapshots. */
	{"GET", "/snapshots", "snaps", SCOPE_READ, V1, rest_snaps, {0}, {0}},
	{"GET",
	 "/snapshots/tree",
	 "snap-tree",
	 SCOPE_READ,
	 V1,
	 rest_snap_tree,
	 {0},
	 {0}},
	{"GET",
	 "/snapshots/{name}",
	 "snap-get",
	 SCOPE_READ,
	 V1,
	 rest_snap_get,
	 {0},
	 {0}},
	{"DELETE",
	 "/snapshots/{name}",
	 "snap-remove",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_snap_remove,
	 {0},
	 {0}},
	{"POST",
	 "/snapshots/{name}/verify",
	 "snap-verify",
	 SCOPE_MANAGE,
	 V1,
	 rest_snap_verify,
	 {0},
	 {0}},
	{"POST",
	 "/snapshots/{name}/fork",
	 "fork",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_fork_snapshot,
	 {F_COUNT, F_PREFIX, F_PARTIAL},
	 {0}},
	{"POST",
	 "/vms/{name}/fork",
	 "fork",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_fork,
	 {F_COUNT, F_PREFIX, F_PARTIAL},
	 {0}},

	/* Network. */
	{"GET", "/vms/{name}/ports", "ports", SCOPE_READ, V1, rest_ports, {0},
	 {0}},
	{"POST",
	 "/vms/{name}/ports",
	 "publish",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_publish,
	 {F_GUEST_PORT, F_HOST_PORT, F_ADDRESS, F_PROTOCOL, F_DESCRIPTION},
	 {F_GUEST_PORT}},
	{"DELETE",
	 "/vms/{name}/ports/{id}",
	 "unpublish",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_unpublish,
	 {F_PROTOCOL},
	 {0}},
	{"GET", "/vms/{name}/policy", "policy", SCOPE_READ, V1, rest_policy,
	 {0}, {0}},
	{"PUT",
	 "/vms/{name}/policy",
	 "set-policy",
	 SCOPE_MANAGE,
	 V1 | CHANGES,
	 rest_set_policy,
	 {F_POLICY},
	 {F_POLICY}},

	/* The host. */
	{"GET", "/images", "images", SCOPE_READ, V1, rest_images, {0}, {0}},
	{"GET", "/metrics", "metrics", SCOPE_ADMIN, 0, rest_metrics, {0}, {0}},
};

const size_t routes_count = ARRAY_LEN(routes);

/* ---- names --------------------------------------------------------------- */

int full_name(const struct call *c, const char *what, const char *name,
	      char out[NAME_MAX_LEN + 1])
{
	if (tenant_name(c->token->tenant, what, name, out) < 0)
		return answer_error(400, NULL, "%s", last_message());
	return 0;
}

const char *own_name(const struct call *c, const char *full)
{
	return tenant_strip(c->token->tenant, full);
}

/* ---- quotas -------------------------------------------------------------- */

static int answer_quota(const struct quota_refusal *why)
{
	char text[200];

	metrics_count(COUNT_QUOTA);
	quota_text(why, text, sizeof(text));
	answer_header("Retry-After: %u", why->retry_after);
	return answer_json(
		429, json_pack("{s:{s:s,s:s,s:{s:s,s:I,s:I}}}", "error", "code",
			       why->kind >= QUOTA_RATE ? "rate" : "quota",
			       "message", text, "quota", "name",
			       quota_word(why->kind), "limit",
			       (json_int_t)why->limit, "used",
			       (json_int_t)why->used));
}

int check_rate(const struct call *c)
{
	struct quota_refusal why;
	int r = quota_rate(c->token->tenant, &why);

	if (r == 1)
		return answer_quota(&why);
	return r < 0 ? answer_failure(c, -r, last_message()) : 0;
}

int claim(struct call *c, const struct quota_ask *ask)
{
	struct quota_refusal why;
	int r = quota_claim(c->token->tenant, ask, &c->claim, &why);

	if (r == 1)
		return answer_quota(&why);
	return r < 0 ? answer_failure(c, -r, last_message()) : 0;
}
