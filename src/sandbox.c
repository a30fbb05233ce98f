/*
 * sandbox.c - make and remove sandboxes.
 *
 * 1. Everything is put together on a stage (stage.h) and renamed when it is
 *    complete: no reader ever sees half a sandbox.
 * 2. kernel, initrd and base are hard links to the image's files: the image may
 *    be removed or rebuilt, and this sandbox still starts as it did.
 * 3. Removal renames first, so that the name is free and the sandbox gone even
 *    when removing the files takes long or is interrupted.
 */
#include "disk.h"
#include "image.h"
#include "stage.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#define MEMORY_MIN (64ULL << 20)
#define MEMORY_MAX (1ULL << 40)
#define DISK_MIN (16ULL << 20)
#define DISK_MAX (64ULL << 40)
#define CPUS_MAX 255

/* Names that are words of `ark exec` cannot be told from sandboxes there. */
static bool reserved(const char *name)
{
	static const char *const words[] = {"ls", "logs", "attach", "kill",
					    "wait"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(name, words[i]) == 0)
			return true;
	return false;
}

/* Fill in the defaults and check the limits. */
static int complete_spec(struct sandbox_spec *spec, struct conf *conf)
{
	int r = conf_load(conf);

	if (r < 0)
		return r;
	if (!spec->image)
		spec->image = conf->image;
	if (!spec->memory)
		spec->memory = conf->memory;
	if (!spec->disk_size)
		spec->disk_size = conf->disk_size;
	if (!spec->cpus)
		spec->cpus = conf->cpus;
	if (spec->memory < MEMORY_MIN || spec->memory > MEMORY_MAX)
		return fail(EX_USAGE, "memory must be between 64M and 1T");
	if (spec->disk_size < DISK_MIN || spec->disk_size > DISK_MAX)
		return fail(EX_USAGE, "disk must be between 16M and 64T");
	if (spec->cpus > CPUS_MAX)
		return fail(EX_USAGE, "at most %d vCPUs", CPUS_MAX);
	/* Pages and sectors: what a VMM and a disk can be made of. */
	spec->memory &= ~((2ULL << 20) - 1);
	spec->disk_size &= ~4095ULL;
	return 0;
}

/* One value into the directory that is being put together: no temporary file,
 * no fsync, see sync_all(). */
static int put(int dir, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int put(int dir, const char *name, const char *fmt, ...)
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	va_list args;
	int n;

	if (fd < 0)
		return -1;
	va_start(args, fmt);
	n = vdprintf(fd, fmt, args);
	va_end(args);
	return n < 0 || write_full(fd, "\n", 1) < 0 ? -1 : 0;
}

static int write_spec(int dir, const struct sandbox_spec *spec)
{
	char id[37];

	new_uuid(id);
	if (put(dir, "id", "%s", id) < 0 ||
	    put(dir, "image", "%s", spec->image) < 0 ||
	    put(dir, "memory", "%llu", (unsigned long long)spec->memory) < 0 ||
	    put(dir, "disk-size", "%llu", (unsigned long long)spec->disk_size) <
		    0 ||
	    put(dir, "cpus", "%u", spec->cpus) < 0 ||
	    put(dir, "created", "%lld", (long long)time(NULL)) < 0)
		return -1;
	if (spec->policy && put(dir, "policy", "%s", spec->policy) < 0)
		return -1;
	if (spec->net_rate && put(dir, "net-rate", "%llu",
				  (unsigned long long)spec->net_rate) < 0)
		return -1;
	if (spec->io_rate &&
	    put(dir, "io-rate", "%llu", (unsigned long long)spec->io_rate) < 0)
		return -1;
	if (spec->ttl &&
	    put(dir, "ttl", "%llu", (unsigned long long)spec->ttl) < 0)
		return -1;
	if (spec->n_ports &&
	    ports_write(dir, "publish", spec->ports, spec->n_ports) < 0)
		return -1;
	if (spec->snapshot && put(dir, "snapshot", "%s", spec->snapshot) < 0)
		return -1;
	return spec->rm ? put(dir, "rm", "1") : 0;
}

/* All files onto the disk before the name appears.  First the write-back of
 * all is started, then each is waited for: the journal is committed once, not
 * once per file (4 ms each). */
static int sync_all(int dir)
{
	static const char *const names[] = {"id",   "image",   "memory",
					    "cpus", "created", "disk-size",
					    "disk"};
	int fd[ARRAY_LEN(names)];
	int result = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fd[i] = openat(dir, names[i], O_RDONLY | O_CLOEXEC);
		sync_file_range(fd[i], 0, 0, SYNC_FILE_RANGE_WRITE);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (fd[i] < 0 || fsync(fd[i]) < 0)
			result = -1;
		if (fd[i] >= 0)
			close(fd[i]);
	}
	return result;
}

/* `source` is an image or a snapshot: both have these files. */
static int fill(int dir, int source, const char *name,
		const struct sandbox_spec *spec)
{
	static const char *const linked[] = {"kernel", "initrd", "base"};
	int r;

	for (size_t i = 0; i < ARRAY_LEN(linked); i++)
		if (linkat(source, linked[i], dir, linked[i], 0) < 0)
			return fail_errno(EX_OSERR,
					  "cannot link %s for sandbox '%s'",
					  linked[i], name);
	if (write_spec(dir, spec) < 0)
		return fail_errno(EX_IOERR, "cannot write sandbox '%s'", name);
	r = disk_clone(source, dir, spec->disk_size);
	if (r == 0 && sync_all(dir) < 0)
		return fail_errno(EX_IOERR, "cannot write sandbox '%s'", name);
	return r;
}

static int taken(const char *name, const struct sandbox_spec *spec)
{
	if (spec->made_up)
		return -EX_CANTCREAT;
	return fail(EX_CANTCREAT, "sandbox '%s' exists", name);
}

static int check_new_name(const char *name, const struct sandbox_spec *spec)
{
	AUTO_CLOSE int vms = -1;
	int r = check_name("sandbox", name);

	if (r < 0)
		return r;
	if (reserved(name))
		return fail(EX_USAGE,
			    "bad sandbox name '%s': a word of ark-exec", name);
	vms = root_open("vm");
	if (vms < 0)
		return vms;
	if (faccessat(vms, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return taken(name, spec);
	return 0;
}

int sandbox_create_from(const char *name, const struct sandbox_spec *spec,
			int source)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int vms = -1;
	AUTO_CLOSE int dir = -1;
	int r = check_new_name(name, spec);

	if (r < 0)
		return r;
	vms = root_open("vm");
	if (vms < 0)
		return vms;
	dir = stage_make(vms, name, temp);
	if (dir < 0)
		return fail_errno(EX_IOERR, "cannot make sandbox '%s'", name);
	r = fill(dir, source, name, spec);
	if (r == 0 && renameat2(vms, temp, vms, name, RENAME_NOREPLACE) < 0)
		r = errno == EEXIST
			    ? taken(name, spec)
			    : fail_errno(EX_IOERR, "cannot make sandbox '%s'",
					 name);
	if (r < 0)
		remove_tree(vms, temp);
	return r;
}

int sandbox_create(const char *name, const struct sandbox_spec *given)
{
	struct sandbox_spec spec = *given;
	struct conf conf;
	AUTO_CLOSE int image = -1;
	int r = check_new_name(name, given);

	if (r == 0)
		r = complete_spec(&spec, &conf);
	if (r < 0)
		return r;
	image = image_open(spec.image);
	return image < 0 ? image : sandbox_create_from(name, &spec, image);
}

int sandbox_remove(struct sandbox *s)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int vms = root_open("vm");

	if (vms < 0)
		return vms;
	stage_name(s->name, temp);
	if (renameat(vms, s->name, vms, temp) < 0)
		return fail_errno(EX_OSERR, "cannot remove sandbox '%s'",
				  s->name);
	if (remove_tree(vms, temp) < 0)
		return fail_errno(EX_OSERR, "cannot remove all of sandbox '%s'",
				  s->name);
	return 0;
}

void generate_name(char *out, size_t size)
{
	static const char *const first[] = {
		"amber", "bold",  "brave", "calm",  "clear", "crisp",  "deep",
		"dry",	 "early", "fair",  "fleet", "fresh", "glad",   "keen",
		"kind",	 "light", "lucid", "merry", "neat",  "nimble", "plain",
		"proud", "quick", "quiet", "rapid", "ready", "sharp",  "smart",
		"sound", "still", "swift", "warm",
	};
	static const char *const second[] = {
		"ant",	 "badger", "bear",  "bison", "crane",  "crow",	"deer",
		"dove",	 "eagle",  "egret", "elk",   "falcon", "finch", "fox",
		"goose", "gull",   "hare",  "hawk",  "heron",  "ibex",	"jay",
		"lark",	 "lynx",   "mole",  "moth",  "newt",   "otter", "owl",
		"raven", "seal",   "swan",  "wren",
	};
	uint32_t r;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = (uint32_t)now_ms() ^ (uint32_t)getpid();
	snprintf(out, size, "%s-%s-%u", first[r % ARRAY_LEN(first)],
		 second[(r >> 8) % ARRAY_LEN(second)], (r >> 16) % 10000);
}
