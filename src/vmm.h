/*
 * vmm.h - what ark asks of a virtual machine monitor.
 *
 * A driver is a struct of functions; what differs between VMMs stays in its
 * file.  argv is built by a pure function from a plan, tested by tables.
 */
#ifndef ARK_VMM_H
#define ARK_VMM_H

#include "jail.h"
#include "state.h"

enum accel { ACCEL_KVM, ACCEL_TCG };

/* The descriptors that a VMM inherits, under these very numbers.  It opens no
 * path of ours: its uid could not. */
enum vmm_fd {
	FD_KERNEL = 3,
	FD_INITRD,
	FD_RAM,		 /* memfd of the size of the guest's memory */
	FD_TAP,		 /* /dev/null for who needs_tun */
	FD_CONTROL,	 /* listening unix socket */
	FD_EVENTS,	 /* listening unix socket, or a FIFO: events_by_fifo */
	FD_BASE,	 /* read-only */
	FD_DISK,	 /* read-write */
	FD_CONSOLE,	 /* write end of the console FIFO ... */
	FD_CONSOLE_HELD, /* ... and both ends, so that a dead keeper leaves
			    it a full pipe, never a broken one */
	FD_PAST_LAST
};

struct vmm_plan {
	const char *program; /* absolute path */
	const char *name;    /* of the sandbox */
	enum accel accel;
	unsigned cpus;
	uint64_t memory;  /* bytes */
	unsigned tsc_khz; /* 0: not passed */
	bool restore;	  /* wait for a saved state instead of booting */
	bool direct;	  /* the disk past the host's page cache */
};

/* What every guest's kernel is told, by whatever VMM. */
extern const char vmm_kernel_words[];

#define VMM_ARGS_MAX 80
#define VMM_FILES_MAX 2

struct vmm_argv {
	int n;
	const char *word[VMM_ARGS_MAX + 1]; /* NULL at the end */
	size_t used;
	char text[8192]; /* the words themselves */
};

/* Append a word; too many words or too much text is a fault of the program. */
void argv_add(struct vmm_argv *argv, const char *fmt, ...) PRINTF(2, 3);

enum vmm_command { VMM_PAUSE, VMM_RESUME };

/* Bytes since the VM began, as its guest would count them. */
struct vmm_counters {
	uint64_t disk_read, disk_written, net_received, net_sent;
};

enum vmm_event {
	EVENT_NONE,
	EVENT_HELLO, /* the VMM is up; version() knows which it is */
	EVENT_PAUSED,
	EVENT_RESUMED,
	EVENT_POWEROFF, /* the guest ended itself, in one of these ways */
	EVENT_REBOOT,
	EVENT_PANIC,
};

struct vmm {
	const char *name;

	/* What it needs of its jail (jail.h).  Data, so that nobody who starts
	 * a VMM has to know which one it is. */

	/* Directories that it reads, absolute, NULL at the end; those that the
	 * host has are in the jail, under the same names, read-only. */
	const char *const *reads;

	/* It opens tap0 by its name: there is a /dev/net/tun, and the tap
	 * stays and belongs to its uid. */
	bool needs_tun;

	/* It opens its descriptors once more, as /proc/self/fd/N: disk and
	 * console belong to its uid while it runs. */
	bool opens_paths;

	/* FD_EVENTS is the FIFO SLOT/events, opened for reading and writing:
	 * without a keeper it fills, it never breaks. */
	bool events_by_fifo;
	/* By accel: what it needs itself at most, MiB, beside the guest's
	 * memory and what grows with that (cgroup.c). */
	unsigned overhead_mib[ACCEL_TCG + 1];

	/* Its command line says nothing about a VM: load() does. */
	bool boots_by_load;

	/* It does not end with its guest, or would boot another one: whoever
	 * hears of a guest's end has to end it. */
	bool outlives_guest;

	/* The socket through which it connects others to the guest's vsock, as
	 * a path in its jail; NULL: the agent is reached by TCP. */
	const char *vsock;

	/* Absolute path of the program for `accel`: 0, or -EX_UNAVAILABLE,
	 * told. */
	int (*find)(enum accel accel, char *path, size_t size);

	/* Its version ("7.2.22"), remembered in ARK_RUN for as long as the
	 * program is the same.  0, or -EX_UNAVAILABLE, told. */
	int (*installed)(enum accel accel, char *version, size_t size);

	/* What the guest sees as its processor. */
	const char *(*cpu)(enum accel accel);

	/* Pure. */
	void (*argv)(const struct vmm_plan *plan, struct vmm_argv *argv);

	/* One command on the control socket of the slot; the sandbox is
	 * locked.  0, or the negative exit code, told. */
	int (*command)(const struct sandbox *s, enum vmm_command command);

	/* What has gone through its devices, asked for without the lock and not
	 * waited for long; NULL where only who has the lock may ask.  The
	 * VMM's word.  0, or -1. */
	int (*counters)(const struct sandbox *s, struct vmm_counters *c);

	/* Write the state of the devices of a paused VM to a new file; memory
	 * and disks are not in it.  Same terms as command(). */
	int (*save)(const struct sandbox *s, int file);

	/* Into a VMM that was started with plan.restore: load that state (of
	 * which a driver with files() has its own copy) and let the VM run;
	 * without plan.restore, for a driver that boots_by_load, boot.  For a
	 * keeper's child: nothing is told, the reason is in `why`; 0 or -1. */
	int (*load)(const struct sandbox *s, const struct vmm_plan *plan,
		    int file, char *why, size_t size);

	/* What a restore needs in its jail's /run/restore before the VMM is
	 * started; NULL: nothing.  How many, with data for free(3); or the
	 * negative exit code, told. */
	int (*files)(const struct vmm_plan *plan, int file,
		     struct jail_file files[VMM_FILES_MAX]);

	/* The event connection: open it (a descriptor for poll), and make
	 * events of what arrived: one at a time until EVENT_NONE; *closed says
	 * that nothing will come any more.  `watcher` is the driver's own. */
	void *(*watch)(int run, int *fd);
	enum vmm_event (*event)(void *watcher, bool *closed);
	void (*pause)(void *watcher, bool pause); /* an event tells when */
	const char *(*version)(void *watcher);	  /* of EVENT_HELLO: "7.2.22" */
	void (*unwatch)(void *watcher);
};

extern const struct vmm vmm_ch, vmm_qemu;

/* The driver that a start gets, by ARK_VMM=auto|ch|qemu and the accelerator;
 * or NULL and -EX_UNAVAILABLE, told. */
const struct vmm *vmm_choose(enum accel accel, int *r);

/* The one of that name ("qemu"), or NULL. */
const struct vmm *vmm_named(const char *name);

/* The one that a running sandbox was started with, by SLOT/driver; NULL and
 * errno. */
const struct vmm *vmm_of(const struct sandbox *s);

/* The same for commands; NULL is told as -EX_OSERR in *r. */
const struct vmm *vmm_recorded(const struct sandbox *s, int *r);

/* Its settings, out of its files: 0, or -1 and errno. */
int vmm_plan_read(const struct sandbox *s, struct vmm_plan *plan);

/* KVM when /dev/kvm opens and the processor shows vmx or svm: some hosts offer
 * a /dev/kvm that cannot run a stock kernel.  ARK_ACCEL=kvm|tcg decides
 * instead; anything else in it is -EX_USAGE, told. */
int accel_choose(enum accel *accel);
const char *accel_word(enum accel accel);

/* Does this text of /proc/cpuinfo show vmx or svm among its flags?  Public for
 * the tests. */
bool cpuinfo_has_virt(const char *text);

/* Rate of the host's time stamp counter, measured in 10 ms; 0 when unknown. */
unsigned tsc_khz(void);

#endif
