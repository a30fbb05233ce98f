/*
 * vmm-qemu.c - QEMU's microvm machine, 7.2 and later.
 *
 * Traps that cost others days, and what stands against them here:
 * 1. microvm under TCG has no PIT tick: a kernel that cannot calibrate its TSC
 *    on a busy host hangs for ever.  tsc_early_khz= tells it.
 * 2. A balloon in a clone punches holes into the snapshot that its siblings
 *    run on.  There is no balloon, ever.
 * 3. The default for a full host disk is to pause the VM.  werror=report lets
 *    the guest see the error instead.
 * 4. -daemonize, -runas, exec: and scripts die under -sandbox; sockets, tap,
 *    disks, kernel and console come as descriptors (vmm.h).
 */
#include "netns.h"
#include "qmp.h"
#include "unixsock.h"
#include "vmm-version.h"
#include "vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define COMMAND_MS 10000
/* Of translated code, which a guest can fill at will; QEMU would take 1 GiB. */
#define TCG_CODE_MIB 256
#define START_MS 120000 /* of a VMM that was just forked, on a slow host */

/* PTI makes every system call 15 times slower under TCG, and there is nothing
 * that it could protect: TCG itself is no boundary. */
static const char tcg_words[] = "tsc=reliable mitigations=off";

static int qemu_find(enum accel accel, char *path, size_t size)
{
	static const char *const folders[] = {"/usr/local/bin", "/usr/bin"};

	(void)accel;
	/* Not Debian's smaller one for microvm: it has no seccomp. */
	for (size_t f = 0; f < ARRAY_LEN(folders); f++) {
		snprintf(path, size, "%s/qemu-system-x86_64", folders[f]);
		if (access(path, X_OK) == 0)
			return 0;
	}
	return fail(EX_UNAVAILABLE, "no QEMU: apt-get install qemu-system-x86");
}

/* "QEMU emulator version 7.2.22 (Debian ...": the fourth word. */
static bool qemu_version_of(const char *text, char *version, size_t size)
{
	static const char before[] = "QEMU emulator version ";
	size_t len;

	if (strncmp(text, before, sizeof(before) - 1) != 0)
		return false;
	text += sizeof(before) - 1;
	len = strspn(text, "0123456789.");
	if (len == 0 || len >= size)
		return false;
	memcpy(version, text, len);
	version[len] = '\0';
	return true;
}

static int qemu_installed(enum accel accel, char *version, size_t size)
{
	char program[256];
	int r = qemu_find(accel, program, sizeof(program));

	if (r < 0)
		return r;
	return vmm_version(program, qemu_version_of, "qemu-version", version,
			   size);
}

static const char *qemu_cpu(enum accel accel)
{
	return accel == ACCEL_KVM ? "host" : "Nehalem-v1,+rdrand,+rdtscp";
}

static void add_machine(const struct vmm_plan *plan, struct vmm_argv *argv)
{
	argv_add(argv, "-nodefaults");
	argv_add(argv, "-no-user-config");
	argv_add(argv, "-display");
	argv_add(argv, "none");
	argv_add(argv, "-no-reboot");
	argv_add(argv, "-machine");
	/* Without the clock chip, which microvm leaves out under KVM, the
	 * kernel polls a port that nobody answers for two seconds. */
	argv_add(argv, "microvm,acpi=on,pic=off,rtc=on,suppress-vmdesc=on,"
		       "memory-backend=ram");
	argv_add(argv, "-accel");
	if (plan->accel == ACCEL_TCG)
		argv_add(argv, "tcg,tb-size=%d", TCG_CODE_MIB);
	else
		argv_add(argv, "kvm");
	argv_add(argv, "-cpu");
	argv_add(argv, "%s", qemu_cpu(plan->accel));
	argv_add(argv, "-smp");
	argv_add(argv, "%u", plan->cpus);
	argv_add(argv, "-m");
	argv_add(argv, "%lluM", (unsigned long long)(plan->memory >> 20));
	argv_add(argv, "-object");
	/* A clone maps the snapshot's memory privately: what it writes is its
	 * own.  QEMU 7.2 opens the file for writing all the same, which is why
	 * it is a sealed one. */
	argv_add(argv,
		 "memory-backend-file,id=ram,size=%lluM,"
		 "mem-path=/proc/self/fd/%d,share=%s",
		 (unsigned long long)(plan->memory >> 20), FD_RAM,
		 plan->restore ? "off" : "on");
	argv_add(argv, "-global");
	argv_add(argv, "migration.send-configuration=off");
	argv_add(argv, "-global");
	argv_add(argv, "virtio-mmio.force-legacy=false");
}

static void add_monitor(struct vmm_argv *argv, const char *id, int fd)
{
	argv_add(argv, "-chardev");
	argv_add(argv, "socket,id=%s,fd=%d,server=on,wait=off", id, fd);
	argv_add(argv, "-mon");
	argv_add(argv, "chardev=%s,mode=control", id);
}

static void add_disk(struct vmm_argv *argv, const char *id, int fd,
		     const char *options)
{
	argv_add(argv, "-add-fd");
	argv_add(argv, "fd=%d,set=%d", fd, fd);
	argv_add(argv, "-drive");
	argv_add(argv, "if=none,id=%s,file=/dev/fdset/%d,format=raw,%s", id, fd,
		 options);
	argv_add(argv, "-device");
	argv_add(argv,
		 "virtio-blk-device,drive=%s,serial=ark-%s,werror=report,"
		 "rerror=report",
		 id, id);
}

#define WRITABLE "auto-read-only=off,discard=unmap,detect-zeroes=unmap,cache="

static void add_devices(const struct vmm_plan *plan, struct vmm_argv *argv)
{
	argv_add(argv, "-add-fd");
	argv_add(argv, "fd=%d,set=%d", FD_CONSOLE, FD_CONSOLE);
	argv_add(argv, "-chardev");
	argv_add(argv, "file,id=console,path=/dev/fdset/%d,append=on",
		 FD_CONSOLE);
	argv_add(argv, "-serial");
	argv_add(argv, "chardev:console");
	add_disk(argv, "base", FD_BASE, "readonly=on");
	add_disk(argv, "disk", FD_DISK,
		 plan->direct ? WRITABLE "none" : WRITABLE "writeback");
	argv_add(argv, "-netdev");
	argv_add(argv, "tap,id=net0,fd=%d", FD_TAP);
	argv_add(argv, "-device");
	argv_add(argv, "virtio-net-device,netdev=net0,mac=%s", GUEST_MAC);
	argv_add(argv, "-object");
	argv_add(argv, "rng-builtin,id=rng0");
	argv_add(argv, "-device");
	argv_add(argv, "virtio-rng-device,rng=rng0");
	argv_add(argv, "-device");
	argv_add(argv, "pvpanic");
}

static void add_kernel(const struct vmm_plan *plan, struct vmm_argv *argv)
{
	argv_add(argv, "-kernel");
	argv_add(argv, "/proc/self/fd/%d", FD_KERNEL);
	argv_add(argv, "-initrd");
	argv_add(argv, "/proc/self/fd/%d", FD_INITRD);
	argv_add(argv, "-append");
	if (plan->accel == ACCEL_TCG && plan->tsc_khz)
		argv_add(argv, "%s %s tsc_early_khz=%u", vmm_kernel_words,
			 tcg_words, plan->tsc_khz);
	else if (plan->accel == ACCEL_TCG)
		argv_add(argv, "%s %s", vmm_kernel_words, tcg_words);
	else
		argv_add(argv, "%s", vmm_kernel_words);
}

/* -S: the VM waits for `cont`, or it would run before it has been loaded into
 * the hands of its keeper. */
static void add_incoming(struct vmm_argv *argv)
{
	argv_add(argv, "-incoming");
	argv_add(argv, "defer");
	argv_add(argv, "-S");
}

static void qemu_argv(const struct vmm_plan *plan, struct vmm_argv *argv)
{
	argv->n = 0;
	argv->used = 0;
	argv_add(argv, "%s", plan->program);
	argv_add(argv, "-name");
	argv_add(argv, "ark-%s", plan->name);
	add_machine(plan, argv);
	add_monitor(argv, "control", FD_CONTROL);
	add_monitor(argv, "events", FD_EVENTS);
	add_devices(plan, argv);
	argv_add(argv, "-sandbox");
	argv_add(argv, "on,obsolete=deny,elevateprivileges=deny,spawn=deny,"
		       "resourcecontrol=deny");
	if (plan->restore)
		add_incoming(argv);
	else
		add_kernel(plan, argv);
}

static int qemu_command(const struct sandbox *s, enum vmm_command command)
{
	static const char *const words[] = {
		[VMM_PAUSE] = "stop",
		[VMM_RESUME] = "cont",
	};
	AUTO_FREE struct qmp *q = malloc(sizeof(*q));
	int r;

	if (!q || qmp_open(q, s->run, "qmp.sock", COMMAND_MS) < 0)
		return fail_errno(EX_UNAVAILABLE,
				  "VMM of sandbox '%s' does not answer",
				  s->name);
	r = qmp_execute(q, words[command], NULL, NULL, COMMAND_MS);
	if (r < 0 && errno == EREMOTEIO)
		r = fail(EX_UNAVAILABLE, "VMM of sandbox '%s' refused %s: %s",
			 s->name, words[command], q->buf);
	else if (r < 0)
		r = fail_errno(EX_UNAVAILABLE,
			       "state of sandbox '%s' is not known: %s",
			       s->name, words[command]);
	qmp_close(q);
	return r;
}

/* ---- snapshots ---------------------------------------------------------- */

#define STATE_SET 100 /* an fdset of its own beside those of vmm_fd */

/* xen-save-devices-state saves the devices and nothing else, whatever the
 * memory is made of, and leaves VM and disks as they are; `live` is false
 * because true would take the disks away from a VM that goes on. */
static int save_state(struct qmp *q, int file)
{
	int r;

	/* One that was killed in the middle may have left its file there, and
	 * QEMU would take that one. */
	qmp_execute(q, "remove-fd", json_pack("{s:i}", "fdset-id", STATE_SET),
		    NULL, COMMAND_MS);
	if (qmp_execute_fd(q, "add-fd",
			   json_pack("{s:i}", "fdset-id", STATE_SET), file,
			   COMMAND_MS) < 0)
		return -1;
	r = qmp_execute(q, "xen-save-devices-state",
			json_pack("{s:s, s:b}", "filename",
				  "/dev/fdset/" STRING(STATE_SET), "live", 0),
			NULL, COMMAND_MS);
	/* Its own words for a failure are in q->buf: keep them. */
	if (r == 0)
		r = qmp_execute(q, "remove-fd",
				json_pack("{s:i}", "fdset-id", STATE_SET), NULL,
				COMMAND_MS);
	return r;
}

static int qemu_save(const struct sandbox *s, int file)
{
	AUTO_FREE struct qmp *q = malloc(sizeof(*q));
	int r;

	if (!q || qmp_open(q, s->run, "qmp.sock", COMMAND_MS) < 0)
		return fail_errno(EX_UNAVAILABLE,
				  "VMM of sandbox '%s' does not answer",
				  s->name);
	r = save_state(q, file);
	if (r < 0 && errno == EREMOTEIO)
		r = fail(EX_UNAVAILABLE,
			 "VMM of sandbox '%s' cannot save its state: %s",
			 s->name, q->buf);
	else if (r < 0)
		r = fail_errno(EX_UNAVAILABLE,
			       "VMM of sandbox '%s' did not save its state",
			       s->name);
	qmp_close(q);
	return r;
}

/* Has the loading ended?  1 yes, 0 not yet, -1 and errno. */
static int loaded(struct qmp *q)
{
	json_t *status = NULL;
	const char *word;
	int r;

	if (qmp_execute(q, "query-status", NULL, &status, START_MS) < 0)
		return -1;
	word = json_string_value(json_object_get(status, "status"));
	r = word && strcmp(word, "inmigrate") != 0;
	json_decref(status);
	return r;
}

/* QEMU says no word when the loading has ended, and exits when it failed. */
static int await_load(struct qmp *q)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t end = now_ms() + START_MS;
	int r;

	while ((r = loaded(q)) == 0) {
		if (now_ms() >= end) {
			errno = ETIMEDOUT;
			return -1;
		}
		nanosleep(&pause, NULL);
	}
	return r < 0 ? -1 : 0;
}

static int qemu_load(const struct sandbox *s, const struct vmm_plan *plan,
		     int file, char *why, size_t size)
{
	AUTO_FREE struct qmp *q = malloc(sizeof(*q));
	int r = -1;

	(void)plan;
	if (q && qmp_open(q, s->run, "qmp.sock", START_MS) == 0) {
		r = qmp_execute_fd(q, "getfd",
				   json_pack("{s:s}", "fdname", "state"), file,
				   START_MS);
		if (r == 0)
			r = qmp_execute(q, "migrate-incoming",
					json_pack("{s:s}", "uri", "fd:state"),
					NULL, START_MS);
		if (r == 0)
			r = await_load(q);
		if (r == 0)
			r = qmp_execute(q, "cont", NULL, NULL, START_MS);
		if (r < 0 && errno == EREMOTEIO)
			snprintf(why, size, "%.300s", q->buf);
		else if (r < 0)
			snprintf(why, size, "%s", strerror(errno));
		qmp_close(q);
	} else {
		snprintf(why, size, "VMM does not answer: %s", strerror(errno));
	}
	return r;
}

struct watcher {
	struct qmp q;
	char version[32];
};

/* The keeper does not wait for QEMU's greeting: what it writes now is read
 * when QEMU has come up. */
static void *qemu_watch(int run, int *fd)
{
	static const char hello[] = "{\"execute\":\"qmp_capabilities\"}\n";
	struct watcher *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->q.fd = unix_connect(run, "event.sock", SOCK_STREAM);
	if (w->q.fd < 0 || write_full(w->q.fd, hello, sizeof(hello) - 1) < 0 ||
	    fcntl(w->q.fd, F_SETFL, O_NONBLOCK) < 0) {
		qmp_close(&w->q);
		free(w);
		return NULL;
	}
	*fd = w->q.fd;
	return w;
}

static void qemu_unwatch(void *watcher)
{
	struct watcher *w = watcher;

	if (w)
		qmp_close(&w->q);
	free(w);
}

/* The answer is one of the lines that qemu_event() skips. */
static void qemu_pause(void *watcher, bool pause)
{
	static const char stop[] = "{\"execute\":\"stop\"}\n";
	static const char cont[] = "{\"execute\":\"cont\"}\n";
	struct watcher *w = watcher;
	const char *text = pause ? stop : cont;

	(void)!send(w->q.fd, text, strlen(text), MSG_NOSIGNAL);
}

static const char *watched_version(void *watcher)
{
	return ((struct watcher *)watcher)->version;
}

static enum vmm_event greeting(struct watcher *w, json_t *object)
{
	int major, minor, micro;

	if (json_unpack(object, "{s:{s:{s:{s:i, s:i, s:i}}}}", "QMP", "version",
			"qemu", "major", &major, "minor", &minor, "micro",
			&micro) < 0)
		return EVENT_NONE;
	snprintf(w->version, sizeof(w->version), "%d.%d.%d", major, minor,
		 micro);
	return EVENT_HELLO;
}

static enum vmm_event event_of(struct watcher *w, json_t *object)
{
	const char *name = json_string_value(json_object_get(object, "event"));
	const char *reason = json_string_value(
		json_object_get(json_object_get(object, "data"), "reason"));

	if (!name)
		return greeting(w, object);
	if (strcmp(name, "STOP") == 0)
		return EVENT_PAUSED;
	if (strcmp(name, "RESUME") == 0)
		return EVENT_RESUMED;
	if (strcmp(name, "GUEST_PANICKED") == 0)
		return EVENT_PANIC;
	if (strcmp(name, "SHUTDOWN") != 0 || !reason)
		return EVENT_NONE;
	if (strcmp(reason, "guest-shutdown") == 0)
		return EVENT_POWEROFF;
	if (strcmp(reason, "guest-reset") == 0)
		return EVENT_REBOOT;
	if (strcmp(reason, "guest-panic") == 0)
		return EVENT_PANIC;
	return EVENT_NONE;
}

static enum vmm_event qemu_event(void *watcher, bool *closed)
{
	struct watcher *w = watcher;

	for (;;) {
		int bad;
		json_t *object = qmp_next(&w->q, &bad);
		enum vmm_event event = EVENT_NONE;
		ssize_t n;

		if (object) {
			event = event_of(w, object);
			json_decref(object);
			if (event != EVENT_NONE)
				return event;
			continue;
		}
		n = bad ? 0 : qmp_fill(&w->q);
		if (n > 0)
			continue;
		*closed = n == 0 || errno != EAGAIN;
		return EVENT_NONE;
	}
}

/* Firmware; the links of the first one lead into the others. */
static const char *const qemu_reads[] = {
	"/usr/share/qemu",
	"/usr/share/seabios",
	"/usr/local/share/qemu",
	NULL,
};

const struct vmm vmm_qemu = {
	.name = "qemu",
	.reads = qemu_reads,
	/* 54 were seen with KVM, 32 of them files of the host. */
	.overhead_mib = {[ACCEL_KVM] = 128, [ACCEL_TCG] = 128 + TCG_CODE_MIB},
	.find = qemu_find,
	.installed = qemu_installed,
	.cpu = qemu_cpu,
	.argv = qemu_argv,
	.command = qemu_command,
	.save = qemu_save,
	.load = qemu_load,
	.watch = qemu_watch,
	.event = qemu_event,
	.pause = qemu_pause,
	.version = watched_version,
	.unwatch = qemu_unwatch,
};
