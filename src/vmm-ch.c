/*
 * vmm-ch.c - Cloud Hypervisor, 51.2 and later, over its HTTP API.
 *
 * 1. The VMM is started without a VM.  A child of the keeper creates one and
 *    boots it, or restores one: configuration and state are texts of ours in
 *    the jail (ch-config.c), and every file is one that the VMM has inherited.
 * 2. Its own snapshot would hold all memory, dense.  It writes state.json
 *    before it makes the file for the memory, which must be new: one of that
 *    name stands there already, so it stops at that point and the VM goes on as
 *    if nothing had been.  ram.c saves the memory, also that of clones.
 * 3. A restore reads no memory: the list in its state is empty, and the zone of
 *    its configuration is the snapshot's memory, mapped privately.  That is
 *    what memory_restore_mode CopyOnWrite of later versions does; it would have
 *    to find the memory in a file of its own beside the state.
 * 4. A guest that reboots is booted anew by its VMM, and one that panics may
 *    stand still for ever: outlives_guest.
 * 5. A request without an answer in time may still be carried out.  Nobody
 *    is told then that it failed, only that nothing is known.
 */
#include "ch-api.h"
#include "ch.h"
#include "unixsock.h"
#include "vmm-version.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define COMMAND_MS 10000
#define COUNTERS_MS 1000
#define LOAD_MS 60000 /* boot, save, restore: they read and write files */
#define STATE_MAX (16 << 20)
#define MEMORY_FILE "memory-ranges"

/* ---- the program -------------------------------------------------------- */

static bool find_program(char *path, size_t size)
{
	static const char *const folders[] = {"/usr/local/bin", "/usr/bin"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, size, "%s/cloud-hypervisor", folders[i]);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int read_version(const char *program, char *version, size_t size)
{
	return vmm_version(program, ch_version_of, "ch-version", version, size);
}

bool ch_usable(enum accel accel)
{
	char program[64], version[32];

	return accel == ACCEL_KVM && find_program(program, sizeof(program)) &&
	       read_version(program, version, sizeof(version)) == 0 &&
	       !ch_version_refused(version);
}

/* The program, and its version, which has to be one that is used. */
static int look(enum accel accel, char *path, size_t size, char version[32])
{
	const char *refused;
	int r;

	if (accel != ACCEL_KVM)
		return fail(EX_UNAVAILABLE,
			    "Cloud Hypervisor needs KVM, which this host does "
			    "not have: ARK_VMM=qemu");
	if (!find_program(path, size))
		return fail(EX_UNAVAILABLE,
			    "no cloud-hypervisor in /usr/local/bin or "
			    "/usr/bin: see ark doctor");
	r = read_version(path, version, 32);
	if (r < 0)
		return r;
	refused = ch_version_refused(version);
	return refused ? fail(EX_UNAVAILABLE, "Cloud Hypervisor %s %s", version,
			      refused)
		       : 0;
}

static int ch_find(enum accel accel, char *path, size_t size)
{
	char version[32];

	return look(accel, path, size, version);
}

static int ch_installed(enum accel accel, char *version, size_t size)
{
	char program[64], text[32];
	int r = look(accel, program, sizeof(program), text);

	if (r == 0)
		snprintf(version, size, "%s", text);
	return r;
}

static const char *ch_cpu(enum accel accel)
{
	(void)accel;
	return "host";
}

static void ch_argv(const struct vmm_plan *plan, struct vmm_argv *argv)
{
	argv->n = 0;
	argv->used = 0;
	argv_add(argv, "%s", plan->program);
	argv_add(argv, "--api-socket");
	argv_add(argv, "fd=%d", FD_CONTROL);
	argv_add(argv, "--event-monitor");
	argv_add(argv, "fd=%d", FD_EVENTS);
	argv_add(argv, "--seccomp");
	argv_add(argv, "true");
}

/* ---- pause, resume ------------------------------------------------------ */

static bool is_in_state(struct ch_api *api, const char *state)
{
	char text[32];

	if (ch_api_get(api, "vm.info", COMMAND_MS) < 0)
		return false;
	ch_api_text(api, "state", text, sizeof(text));
	return strcmp(text, state) == 0;
}

/* Refused is also what it is already.  A pause that has failed half-way is
 * finished by the second one. */
static int change(struct ch_api *api, const char *what, const char *state)
{
	char first[sizeof(api->why)];

	if (ch_api_put(api, what, NULL, COMMAND_MS) == 0)
		return 0;
	if (errno != EREMOTEIO)
		return -1;
	memcpy(first, api->why, sizeof(first));
	if (is_in_state(api, state) ||
	    ch_api_put(api, what, NULL, COMMAND_MS) == 0)
		return 0;
	memcpy(api->why, first, sizeof(first));
	return -1;
}

static int ch_command(const struct sandbox *s, enum vmm_command command)
{
	CH_AUTO_API struct ch_api *api = ch_api_open(s->run);
	int r;

	if (!api)
		return fail_errno(EX_UNAVAILABLE,
				  "VMM of sandbox '%s' does not answer",
				  s->name);
	r = command == VMM_PAUSE ? change(api, "vm.pause", "Paused")
				 : change(api, "vm.resume", "Running");
	return r < 0 ? fail(EX_UNAVAILABLE, "VMM of sandbox '%s': %s", s->name,
			    api->why)
		     : 0;
}

static int ch_count(const struct sandbox *s, struct vmm_counters *c)
{
	CH_AUTO_API struct ch_api *api = ch_api_open(s->run);

	if (!api || ch_api_get(api, "vm.counters", COUNTERS_MS) < 0)
		return -1;
	return ch_counters(api->reply.body, api->reply.len, c) ? 0 : -1;
}

/* ---- start -------------------------------------------------------------- */

/* What answers is what the program said that it is; noted for the snapshots
 * that are taken of it. */
static int greet(struct ch_api *api, int run)
{
	char text[64], version[32];
	const char *refused;

	if (ch_api_get(api, "vmm.ping", LOAD_MS) < 0)
		return -1;
	ch_api_text(api, "version", text, sizeof(text));
	if (!ch_version_of(text, version, sizeof(version))) {
		snprintf(api->why, sizeof(api->why), "it tells no version");
		return -1;
	}
	refused = ch_version_refused(version);
	if (refused) {
		snprintf(api->why, sizeof(api->why), "version %s %s", version,
			 refused);
		return -1;
	}
	if (write_value(run, "vmm-version", "ch %s", version) < 0) {
		snprintf(api->why, sizeof(api->why), "cannot note it: %s",
			 strerror(errno));
		return -1;
	}
	return 0;
}

static int boot(struct ch_api *api, const struct vmm_plan *plan)
{
	AUTO_FREE char *config = ch_config(plan);

	if (!config) {
		snprintf(api->why, sizeof(api->why), "no memory");
		return -1;
	}
	if (ch_api_put(api, "vm.create", config, LOAD_MS) < 0)
		return -1;
	return ch_api_put(api, "vm.boot", NULL, LOAD_MS);
}

/* Not with "resume": 51 does not know that word, and passes over it. */
static int restore(struct ch_api *api)
{
	static const char from[] = "{\"source_url\":\"file://" CH_RESTORE "\"}";

	if (ch_api_put(api, "vm.restore", from, LOAD_MS) < 0)
		return -1;
	return ch_api_put(api, "vm.resume", NULL, LOAD_MS);
}

static int ch_load(const struct sandbox *s, const struct vmm_plan *plan,
		   int file, char *why, size_t size)
{
	CH_AUTO_API struct ch_api *api = ch_api_open(s->run);
	int r;

	(void)file;
	if (!api) {
		snprintf(why, size, "VMM does not answer: %s", strerror(errno));
		return -1;
	}
	r = greet(api, s->run);
	if (r == 0)
		r = plan->restore ? restore(api) : boot(api, plan);
	if (r < 0)
		snprintf(why, size, "%s", api->why);
	return r;
}

/* ---- state -------------------------------------------------------------- */

/* All of a file that others may have made; NULL and errno. */
static char *read_state(int file, size_t *len)
{
	struct stat st;
	AUTO_FREE char *text = NULL;
	char *taken;

	if (file < 0 || fstat(file, &st) < 0)
		return NULL;
	errno = EFBIG;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > STATE_MAX)
		return NULL;
	*len = (size_t)st.st_size;
	text = malloc(*len);
	if (!text || pread(file, text, *len, 0) != st.st_size)
		return NULL;
	taken = text;
	text = NULL;
	return taken;
}

static int ch_files(const struct vmm_plan *plan, int file,
		    struct jail_file files[VMM_FILES_MAX])
{
	size_t len = 0;
	char *config = ch_config(plan), *state = read_state(file, &len);

	if (config && state) {
		files[0] = (struct jail_file){"config.json", config,
					      strlen(config)};
		files[1] = (struct jail_file){"state.json", state, len};
		return 2;
	}
	free(config);
	free(state);
	return fail_errno(EX_IOERR, "cannot read the state of a snapshot");
}

static void clear(int save)
{
	unlinkat(save, "config.json", 0);
	unlinkat(save, "state.json", 0);
	unlinkat(save, MEMORY_FILE, 0);
}

/* Let the VMM write its state and stop there.  A file of ours in the way does
 * that; a VMM that removes it fills its own few MiB.  So it is no failure when
 * this is refused: what counts is the state. */
static int ask_for_state(struct ch_api *api, int save)
{
	static const char to[] = "{\"destination_url\":\"file://" CH_SAVE "\"}";
	AUTO_CLOSE int in_the_way = openat(
		save, MEMORY_FILE,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400);

	if (in_the_way < 0) {
		snprintf(api->why, sizeof(api->why), "its %s: %s", MEMORY_FILE,
			 strerror(errno));
		return -1;
	}
	if (ch_api_put(api, "vm.snapshot", to, LOAD_MS) == 0 ||
	    errno == EREMOTEIO)
		return 0;
	return -1;
}

/* The state as it will be restored, into `file`.  Where there is none, the
 * VMM's own words say why. */
static int take_state(struct ch_api *api, int save, int file)
{
	AUTO_CLOSE int state =
		openat(save, "state.json",
		       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	size_t len = 0;
	AUTO_FREE char *text = read_state(state, &len);
	const char *wrong = text ? ch_seal_state(text, &len) : strerror(errno);

	if (!wrong && write_full(file, text, len) < 0)
		wrong = strerror(errno);
	if (!wrong)
		return 0;
	if (text || !api->why[0])
		snprintf(api->why, sizeof(api->why), "its state: %s", wrong);
	return -1;
}

static void warn_of_version(const struct sandbox *s)
{
	char text[64], version[32];
	const char *lacks = NULL;

	if (read_value(s->run, "vmm-version", text, sizeof(text)) > 3 &&
	    ch_version_of(text + strlen("ch "), version, sizeof(version)))
		lacks = ch_version_lacks(version);
	if (lacks)
		warn_line("Cloud Hypervisor %s %s", version, lacks);
}

static int ch_save(const struct sandbox *s, int file)
{
	CH_AUTO_API struct ch_api *api = ch_api_open(s->run);
	AUTO_CLOSE int save = jail_open(&s->vmm, &CH_SAVE[1],
					O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (!api || save < 0)
		return fail_errno(EX_UNAVAILABLE,
				  "VMM of sandbox '%s' does not answer",
				  s->name);
	warn_of_version(s);
	clear(save);
	r = ask_for_state(api, save);
	if (r == 0)
		r = take_state(api, save, file);
	clear(save);
	return r < 0 ? fail(EX_UNAVAILABLE,
			    "VMM of sandbox '%s' cannot save its state: %s",
			    s->name, api->why)
		     : 0;
}

/* ---- events ------------------------------------------------------------- */

struct watcher {
	int fifo;
	int api; /* pauses and resumes; their answers are events */
	struct ch_events events;
};

static void ch_unwatch(void *watcher)
{
	struct watcher *w = watcher;

	if (!w)
		return;
	if (w->fifo >= 0)
		close(w->fifo);
	if (w->api >= 0)
		close(w->api);
	free(w);
}

static void *ch_watch(int run, int *fd)
{
	struct watcher *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fifo = openat(run, "events", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	w->api = unix_connect(run, CH_API_SOCKET, SOCK_STREAM);
	if (w->fifo < 0 || w->api < 0) {
		ch_unwatch(w);
		return NULL;
	}
	*fd = w->fifo;
	return w;
}

static enum vmm_event ch_event(void *watcher, bool *closed)
{
	struct watcher *w = watcher;
	char data[1024];

	for (;;) {
		enum vmm_event event = ch_events_next(&w->events);
		size_t room = CH_EVENT_MAX - w->events.len;
		ssize_t n;

		if (event != EVENT_NONE)
			return event;
		n = read(w->fifo, data,
			 room < sizeof(data) ? room : sizeof(data));
		if (n > 0) {
			ch_events_feed(&w->events, data, (size_t)n);
			continue;
		}
		*closed = n == 0 || errno != EAGAIN;
		return EVENT_NONE;
	}
}

/* Nobody waits for the answer of the last one; it is taken away before the next
 * is asked for. */
static void ch_pause(void *watcher, bool pause)
{
	struct watcher *w = watcher;
	AUTO_FREE char *text = http_format(
		"PUT", pause ? "/api/v1/vm.pause" : "/api/v1/vm.resume", NULL);
	char old[4096];

	while (recv(w->api, old, sizeof(old), MSG_DONTWAIT) > 0)
		;
	if (text)
		(void)!send(w->api, text, strlen(text),
			    MSG_NOSIGNAL | MSG_DONTWAIT);
}

static const char *const ch_reads[] = {NULL};

const struct vmm vmm_ch = {
	.name = "ch",
	.overhead_mib = {[ACCEL_KVM] = 128},
	.reads = ch_reads,
	.needs_tun = true,
	.opens_paths = true,
	.events_by_fifo = true,
	.boots_by_load = true,
	.outlives_guest = true,
	.vsock = &CH_VSOCK[1],
	.find = ch_find,
	.installed = ch_installed,
	.cpu = ch_cpu,
	.argv = ch_argv,
	.command = ch_command,
	.counters = ch_count,
	.save = ch_save,
	.load = ch_load,
	.files = ch_files,
	.watch = ch_watch,
	.event = ch_event,
	.pause = ch_pause,
	.unwatch = ch_unwatch,
};
