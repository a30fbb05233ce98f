/*
 * snap.c - open, restore, list and remove snapshots.
 *
 * Memory is mapped, not copied: all live clones of a snapshot run on one memfd,
 * filled once and sealed, so that no VMM can write what its siblings read.  The
 * next restore finds it in the hands of a keeper of a live clone.  A VMM is
 * never asked for it: it could hand out another one.
 */
#include "snap.h"
#include "launch.h"
#include "life.h"
#include "ram.h"
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

bool snap_exists(const char *name)
{
	AUTO_CLOSE int snaps = root_open("snap");

	return snaps >= 0 && name_ok(name) &&
	       faccessat(snaps, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- memory ------------------------------------------------------------- */

/* Is it sealed against every change, and as long as it should be? */
static bool is_sealed(int fd, uint64_t size)
{
	const int all = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == size &&
	       (fcntl(fd, F_GET_SEALS) & all) == all;
}

/* The memory of the clone in this slot, from its keeper; -1 when it is of
 * another snapshot or gone. */
static int memory_of(int slot, const struct snap_manifest *m)
{
	char id[64], path[64];
	struct proc keeper;
	long long number;
	AUTO_CLOSE int fd = -1;

	if (read_value(slot, "snapshot-id", id, sizeof(id)) < 0 ||
	    strcmp(id, m->id) != 0 ||
	    read_number(slot, "ram-fd", 3, INT32_MAX, &number) < 0 ||
	    proc_read(slot, "keeper", &keeper) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)keeper.pid,
		 (int)number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	/* Opened first, looked at second: now it is that keeper's. */
	if (fd < 0 || !proc_alive(&keeper) || !is_sealed(fd, m->memory_size))
		return -1;
	return steal_fd(&fd);
}

static int find_memory(const struct snap_manifest *m)
{
	AUTO_CLOSE int run = run_open(false);
	DIR *stream = run < 0 ? NULL : fdopendir(dup(run));
	const struct dirent *entry;
	int found = -1;

	while (stream && found < 0 && (entry = readdir(stream))) {
		AUTO_CLOSE int slot = -1;

		if (strlen(entry->d_name) != 4)
			continue;
		slot = open_dir(run, entry->d_name);
		if (slot >= 0)
			found = memory_of(slot, m);
	}
	if (stream)
		closedir(stream);
	return found;
}

static int load_memory(struct snap *snap)
{
	const struct snap_manifest *m = &snap->manifest;

	snap->ram = find_memory(m);
	if (snap->ram < 0)
		snap->ram = ram_load(snap->dir, "ram", m->memory_size);
	if (snap->ram < 0)
		return fail_errno(EX_IOERR,
				  "cannot load the memory of snapshot '%s'",
				  m->name);
	return 0;
}

/* ---- open --------------------------------------------------------------- */

/* Memory goes on in the VMM that it is of, whatever a start would get; a disk
 * alone is a start. */
static int choose(const struct snap_manifest *m, struct start *how)
{
	int r = vm_choose(how);

	if (r < 0 || !m->memory)
		return r;
	how->driver = vmm_named(m->vmm);
	return how->driver ? 0
			   : fail(EX_UNAVAILABLE,
				  "snapshot '%s' is of a VMM that is not "
				  "known here: '%s'",
				  m->name, m->vmm);
}

static int check_host(const struct snap_manifest *m)
{
	char version[32];
	struct start how;
	struct snap_host host = {0};
	int r = choose(m, &how);

	if (r < 0 || !m->memory)
		return r;
	r = how.driver->installed(how.accel, version, sizeof(version));
	if (r < 0)
		return r;
	host.vmm = how.driver->name;
	host.version = version;
	host.accel = accel_word(how.accel);
	host.cpu = how.driver->cpu(how.accel);
	host.tsc_khz = m->tsc_khz ? host_tsc_khz() : 0;
	return snapfile_compatible(m, &host);
}

int snap_open(struct snap *snap, const char *name, bool load)
{
	AUTO_CLOSE int snaps = -1;
	int r = check_name("snapshot", name);

	*snap = (struct snap)SNAP_NONE;
	if (r < 0)
		return r;
	snaps = root_open("snap");
	if (snaps < 0)
		return snaps;
	snap->dir = open_dir(snaps, name);
	if (snap->dir < 0 && errno == ENOENT)
		return fail(EX_NOINPUT, "no such snapshot '%s'", name);
	if (snap->dir < 0)
		return fail_errno(EX_OSERR, "cannot open snapshot '%s'", name);
	r = snapfile_read(snap->dir, name, &snap->manifest);
	if (r < 0 || !load)
		return r;
	if ((r = snapfile_check(snap->dir, &snap->manifest)) < 0 ||
	    (r = check_host(&snap->manifest)) < 0)
		return r;
	return snap->manifest.memory ? load_memory(snap) : 0;
}

void snap_close(struct snap *snap)
{
	const int fds[] = {snap->dir, snap->ram};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* ---- restore ------------------------------------------------------------ */

/* The source's ports again, on free ports of the host: the source, or another
 * clone, may have its own still. */
static int read_ports(const struct snap *snap, struct sandbox_spec *spec,
		      struct port *ports)
{
	int n = ports_read(snap->dir, "publish", ports, PORTS_MAX);

	if (n < 0)
		return fail_errno(EX_DATAERR,
				  "cannot read the ports of snapshot '%s'",
				  snap->manifest.name);
	for (int i = 0; i < n; i++)
		ports[i].host = 0;
	spec->ports = ports;
	spec->n_ports = (size_t)n;
	return 0;
}

static int make_sandbox(const struct snap *snap, const char *name, bool made_up)
{
	const struct snap_manifest *m = &snap->manifest;
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	struct sandbox_spec spec = {
		.image = m->image,
		.memory = m->memory_size,
		.disk_size = m->disk_size,
		.cpus = m->cpus,
		.snapshot = m->name,
		.made_up = made_up,
	};
	char policy[16];
	long long rate, ttl;
	int r;

	if (!ports)
		return fail_errno(EX_OSERR, "no memory");
	r = read_ports(snap, &spec, ports);
	if (r < 0)
		return r;
	if (read_value(snap->dir, "policy", policy, sizeof(policy)) >= 0)
		spec.policy = policy;
	if (read_number(snap->dir, "net-rate", 1, INT64_MAX, &rate) == 0)
		spec.net_rate = (uint64_t)rate;
	if (read_number(snap->dir, "io-rate", 1, INT64_MAX, &rate) == 0)
		spec.io_rate = (uint64_t)rate;
	if (read_number(snap->dir, "ttl", 1, INT32_MAX, &ttl) == 0)
		spec.ttl = (uint64_t)ttl;
	return sandbox_create_from(name, &spec, snap->dir);
}

/* Opened anew for every clone: a descriptor that they shared would be read by
 * each from where the other has stopped. */
static int open_state(const struct snap *snap, int *state)
{
	*state = openat(snap->dir, "state", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*state >= 0)
		return 0;
	return fail_errno(EX_IOERR, "cannot open snapshot '%s'",
			  snap->manifest.name);
}

/* rename decides who gets a name; whoever does not tries the next one. */
static int make_somewhere(const struct snap *snap, char name[NAME_MAX_LEN + 1],
			  const char *base, unsigned from)
{
	unsigned number = from;
	int r;

	if (*name)
		return make_sandbox(snap, name, false);
	do {
		r = free_name("vm", base, number, name, &number);
		if (r == 0)
			r = make_sandbox(snap, name, true);
		number++;
	} while (r == -EX_CANTCREAT);
	if (r < 0)
		name[0] = '\0';
	return r;
}

int snap_restore(const struct snap *snap, char name[NAME_MAX_LEN + 1],
		 const char *base, unsigned from)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_CLOSE int state = -1;
	struct start how;
	int r = make_somewhere(snap, name, base, from);

	if (r == 0)
		r = sandbox_open(&s, name);
	if (r < 0)
		return r;
	r = choose(&snap->manifest, &how);
	if (r == 0 && snap->manifest.memory)
		r = open_state(snap, &state);
	how.state = state;
	how.ram = snap->ram;
	if (snap->ram >= 0)
		how.snapshot_id = snap->manifest.id;
	if (r == 0)
		r = vm_begin(&s, &how);
	if (r < 0)
		vm_remove(&s, true);
	return r;
}

/* ---- names -------------------------------------------------------------- */

int free_name(const char *folder, const char *base, unsigned from,
	      char out[NAME_MAX_LEN + 1], unsigned *number)
{
	AUTO_CLOSE int dir = root_open(folder);

	if (dir < 0)
		return dir;
	for (*number = from; *number < from + 100000; (*number)++) {
		int len =
			snprintf(out, NAME_MAX_LEN + 1, "%s-%u", base, *number);

		if (len > NAME_MAX_LEN)
			return fail(EX_USAGE,
				    "name '%s' is too long to be "
				    "numbered",
				    base);
		if (faccessat(dir, out, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
	}
	return fail(EX_CANTCREAT, "no free name '%s-N'", base);
}

int snap_remove(const char *name)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int snaps = -1;
	AUTO_CLOSE int stage = -1;
	int r = check_name("snapshot", name);

	if (r < 0)
		return r;
	snaps = root_open("snap");
	if (snaps < 0)
		return snaps;
	if (!snap_exists(name))
		return fail(EX_NOINPUT, "no such snapshot '%s'", name);
	stage = stage_make(snaps, name, temp);
	if (stage < 0 || renameat(snaps, name, stage, name) < 0 ||
	    remove_tree(snaps, temp) < 0)
		r = fail_errno(EX_OSERR, "cannot remove snapshot '%s'", name);
	return r;
}
