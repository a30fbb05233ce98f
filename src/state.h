/*
 * state.h - the files that ark's programs meet in; ark-state(5) is the manual.
 *
 *	ARK_ROOT/image/NAME	sealed images
 *	ARK_ROOT/kernel/RELEASE	unpacked kernels that images are linked from
 *	ARK_ROOT/vm/NAME	one sandbox: value files, disk, links,
 *console.log
 *	ARK_RUN/NNNN		a slot: what a running sandbox holds in the
 *kernel
 *
 * Locks: whoever changes a sandbox holds flock on its directory; readers never
 * lock.  A slot is held by flock on its directory, by its creator and then by
 * the keeper for as long as the VM lives.
 */
#ifndef ARK_STATE_H
#define ARK_STATE_H

#include "ark.h"
#include "publish.h"

/* Slots are 1..SLOT_MAX; everything else is arithmetic on the number. */
#define SLOT_MAX 65534
#define SLOT_NAME_LEN 8 /* "00ab" and its NUL, with room */

/* Open ARK_ROOT (made 0700 when missing) or a folder in it ("vm", "image",
 * "kernel"; made as well).  A descriptor that the caller owns, or the negative
 * exit code, told. */
int root_open(const char *folder);

/* Open ARK_RUN.  `writing`: made when missing, and when it is left over from
 * another boot everything in it is removed first (no kernel object survives a
 * boot).  Not writing: -1 and ENOENT, quietly, when it is missing or stale. */
int run_open(bool writing);

/* The path of ARK_RUN without links, at least PATH_MAX bytes: what names of
 * kernel objects are marked with.  0, or -1 and errno. */
int run_canonical(int run, char *path);

enum vm_state {
	VM_CREATED, /* never started */
	VM_RUNNING,
	VM_PAUSED,
	VM_STOPPED, /* on request */
	VM_DEAD,    /* not on request: `reason` says why */
};

struct sandbox {
	char name[NAME_MAX_LEN + 1];
	int dir;  /* ARK_ROOT/vm/NAME */
	int slot; /* 0 when it holds none */
	int run;  /* ARK_RUN/NNNN, or -1 */
	enum vm_state state;
	bool starting;	   /* running, but no exec has worked yet */
	bool keeper_alive; /* somebody waits for the VMM */
	struct proc vmm;   /* pid 0 when there is none */
	char reason[256];  /* of VM_DEAD, printable */
};

#define SANDBOX_NONE                                                           \
	{                                                                      \
		.dir = -1, .run = -1                                           \
	}
#define AUTO_SANDBOX __attribute__((cleanup(sandbox_close)))

/* Open by name and look at files and processes (sandbox_probe).  0, or
 * -EX_USAGE for a bad name, -EX_NOINPUT for an unknown one, told. */
int sandbox_open(struct sandbox *s, const char *name);
void sandbox_close(struct sandbox *s);

/* The same for who has read its name in a list: false, and no message, when it
 * has gone since.  What cannot be opened is told, and false. */
bool sandbox_find(struct sandbox *s, const char *name);

/* Is there one of this (good) name? */
bool sandbox_exists(const char *name);

/* Find out again what it is doing; no lock, no message, no question to
 * anybody: files and /proc only. */
void sandbox_probe(struct sandbox *s);

/* flock for a change, waiting up to 10 s: 0 and probed again, or -EX_TEMPFAIL
 * (somebody is at it) or -EX_NOINPUT (removed meanwhile), told. */
int sandbox_lock(struct sandbox *s);

/* "created" ... "dead"; for dead the reason is in s->reason. */
const char *state_word(const struct sandbox *s);

/* Call `each` with every name in a folder of ARK_ROOT ("vm": the sandboxes),
 * sorted.  Stops at a non-zero result and returns it; -EX_OSERR, told, when the
 * folder cannot be read. */
int names_each(const char *folder, int (*each)(const char *name, void *data),
	       void *data);
int sandbox_each(int (*each)(const char *name, void *data), void *data);

/* What a sandbox is made from; zero or NULL: the value of ark.conf. */
struct sandbox_spec {
	const char *image;
	uint64_t memory;    /* bytes */
	uint64_t disk_size; /* bytes */
	unsigned cpus;
	bool made_up;	      /* the name: when it is taken, no message */
	bool rm;	      /* remove it when its VM ends */
	const char *snapshot; /* that it is restored from, or NULL */
	const char *policy;   /* "open" or "none" */
	uint64_t net_rate;    /* bits per second each way; 0: no limit */
	uint64_t io_rate;     /* bytes per second each way; 0: no limit */
	uint64_t ttl;	      /* seconds that a VM of it may run; 0: any */
	struct port *ports;   /* to publish; owned by the caller */
	size_t n_ports;
};

/* Make vm/NAME whole (values, links to the image's kernel, initrd and base,
 * writable disk) under a temporary name, then rename: there is no half
 * sandbox.  0, or -EX_CANTCREAT when the name is taken, -EX_NOINPUT without
 * such an image, -EX_IOERR when the disk is full ..., told. */
int sandbox_create(const char *name, const struct sandbox_spec *given);

/* The same out of an open directory that has kernel, initrd, base and disk: a
 * snapshot.  The spec is complete, nothing comes from ark.conf. */
int sandbox_create_from(const char *name, const struct sandbox_spec *spec,
			int source);

/* Remove a sandbox that holds no slot any more; the caller has it locked. */
int sandbox_remove(struct sandbox *s);

/* A free name such as "keen-otter-42"; at least NAME_MAX_LEN + 1 bytes. */
void generate_name(char *out, size_t size);

/* 36 characters and a NUL of a random UUID. */
void new_uuid(char out[37]);

/* ---- conf.c: ark.conf(5), "key = value" --------------------------------- */

struct conf {
	uint64_t memory;
	uint64_t disk_size;
	unsigned cpus;
	unsigned uid_base;  /* + slot = uid of a VMM */
	uint32_t net;	    /* a /16; + slot = outer address (host order) */
	const char *policy; /* "open" or "none" */
	char image[NAME_MAX_LEN + 1];
	/* Percent of the host's that may be promised to what runs. */
	unsigned memory_overcommit, cpu_overcommit;
	bool no_auth; /* of the REST endpoint, on the loopback only */
};

/* Values of /etc/ark/ark.conf ($ARK_CONF), else the defaults.  A line that is
 * not understood is -EX_CONFIG, told with its number. */
int conf_load(struct conf *c);

#endif
