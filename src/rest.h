/*
 * rest.h - what the routes share.
 *
 * A route answers, once, and returns the status.  Those that change something
 * run to their end whether the client waits for it or not.
 */
#ifndef REST_H
#define REST_H

#include "cgi.h"
#include "state.h"

/* A name of the client's as it is on the disk; `what` is for messages.  0, or
 * the status that was answered. */
int full_name(const struct call *c, const char *what, const char *name,
	      char out[NAME_MAX_LEN + 1]);

/* The name as the client knows it; NULL when it is somebody else's. */
const char *own_name(const struct call *c, const char *full);

/* One request of this tenant: 0, or the status that was answered. */
int check_rate(const struct call *c);
/* What it is going to take; released at its end.  Likewise. */
int claim(struct call *c, const struct quota_ask *ask);

/* Open the sandbox of the path: 0, or the status that was answered. */
int open_vm(const struct call *c, struct sandbox *s);
/* The same, and it takes commands. */
int open_running(const struct call *c, struct sandbox *s);

/* What the API tells of a sandbox; a new reference. */
json_t *vm_json(const struct call *c, const struct sandbox *s, bool probe);
/* The ports that it has, or wants. */
json_t *ports_json(const struct sandbox *s);
/* {"vms": [...]} of names on the disk, one a line; others are left out. */
json_t *vms_json(const struct call *c, const char *names);

/* Look again and answer with it. */
int answer_vm(const struct call *c, const char *full);
int answer_success(void);

/* Start one that does not run, and answer with it. */
int start_vm(struct call *c, const char *full);
/* Quotas for so many sandboxes out of a snapshot; `full` is the name of the
 * one, or NULL.  0, or the status that was answered. */
int claim_clones(struct call *c, const char *snapshot, uint64_t count,
		 const char *full);

/* May it be published with this scope?  0, or the status answered. */
int check_publish(const struct call *c, const char *spec);

/* rest-vm.c */
int rest_health(struct call *c);
int rest_list(struct call *c);
int rest_create(struct call *c);
int rest_destroy_all(struct call *c);
int rest_get(struct call *c);
int rest_patch(struct call *c);
int rest_destroy(struct call *c);
int rest_start(struct call *c);
int rest_stop(struct call *c);
int rest_kill(struct call *c);
int rest_pause(struct call *c);
int rest_resume(struct call *c);
int rest_wait(struct call *c);
int rest_logs(struct call *c);
int rest_resize(struct call *c);

/* rest-exec.c, rest-execs.c */
int rest_cmd(struct call *c);
int rest_exec(struct call *c);
int rest_execs(struct call *c);
int rest_exec_get(struct call *c);
int rest_exec_kill(struct call *c);
int rest_exec_logs(struct call *c);
int rest_exec_wait(struct call *c);

/* rest-file.c, rest-tree.c */
int rest_files_put(struct call *c);
int rest_files_get(struct call *c);
int rest_file_put(struct call *c);
int rest_file_get(struct call *c);
int rest_tree_put(struct call *c);
int rest_tree_get(struct call *c);

/* rest-snap.c */
int rest_snapshot(struct call *c);
int rest_snaps(struct call *c);
int rest_snap_get(struct call *c);
int rest_snap_remove(struct call *c);
int rest_snap_tree(struct call *c);
int rest_snap_verify(struct call *c);
int rest_fork(struct call *c);
int rest_fork_snapshot(struct call *c);

/* rest-net.c */
int rest_ports(struct call *c);
int rest_publish(struct call *c);
int rest_unpublish(struct call *c);
int rest_policy(struct call *c);
int rest_set_policy(struct call *c);

/* rest-host.c */
int rest_images(struct call *c);
int rest_metrics(struct call *c);

#endif
