/*
 * image-import.c - seal a directory as an image.
 *
 * 1. Files are copied by default.  A link would leave the giver a name through
 *    which what is sealed could be changed; only a build of ours, which made
 *    the files for this, asks for links.
 * 2. Digests are taken from the image's own files after copying, never from
 *    the source, which may have changed in between.
 * 3. Everything is on the disk before the rename: after a power cut there is
 *    a whole image of that name, or none (or still the one before).
 */
#include "image.h"
#include "disk.h"
#include "publish.h"
#include "stage.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#define DISK_SIZE (8ULL << 30)

/* What a file must look like at one place to be what it is called. */
static const struct part {
	const char *name;
	const char *what;
	off_t at;
	const char *magic;
	bool sparse; /* how its digest is taken */
} parts[] = {
	{"kernel", "an ELF kernel", 0, "\177ELF", false},
	{"initrd", "an uncompressed cpio archive", 0, "070701", false},
	{"base", "an ext4 file system", 0x438, "\x53\xef", false},
	{"disk", "an ext4 file system", 0x438, "\x53\xef", true},
};

static int check_magic(int dir, const struct part *part, const char *from)
{
	AUTO_CLOSE int fd =
		openat(dir, part->name,
		       O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t len = strlen(part->magic);
	char have[8];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_errno(errno == ENOENT ? EX_NOINPUT : EX_DATAERR,
				  "cannot open '%s/%s'", from, part->name);
	if (!S_ISREG(st.st_mode) ||
	    pread(fd, have, len, part->at) != (ssize_t)len ||
	    memcmp(have, part->magic, len) != 0)
		return fail(EX_DATAERR, "'%s/%s' is not %s", from, part->name,
			    part->what);
	/* A disk has whole sectors; the VMM would round the size down. */
	if (part->at && st.st_size % 512)
		return fail(EX_DATAERR, "'%s/%s' has half a sector", from,
			    part->name);
	return 0;
}

/* Bring one file in. */
static int take(int source, int dir, const struct part *part, const char *from,
		unsigned flags)
{
	bool make = strcmp(part->name, "disk") == 0 &&
		    faccessat(source, "disk", F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	int r;

	if (make)
		return disk_make(dir, part->name, DISK_SIZE);
	r = check_magic(source, part, from);
	if (r < 0)
		return r;
	if (flags & IMPORT_LINK &&
	    linkat(source, part->name, dir, part->name, 0) == 0)
		return 0;
	return disk_copy(source, part->name, dir, part->name, 0444);
}

/* Record one file in the manifest, read-only and on the disk. */
static int seal(int dir, const struct part *part, json_t *digests,
		json_t *sizes)
{
	AUTO_CLOSE int fd =
		openat(dir, part->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char digest[DIGEST_MAX];
	struct stat st;

	if (fd < 0 || fchmod(fd, 0444) < 0 || fstat(fd, &st) < 0 ||
	    image_digest(dir, part->name, part->sparse, digest) < 0 ||
	    fsync(fd) < 0)
		return fail_errno(EX_IOERR, "cannot seal %s", part->name);
	json_object_set_new(digests, part->name, json_string(digest));
	json_object_set_new(sizes, part->name,
			    json_integer((json_int_t)st.st_size));
	return 0;
}

/* A fact that the source may state in a file, as "key" of the manifest. */
static int add_fact(json_t *manifest, int source, const char *key,
		    const char *missing)
{
	char value[256];
	json_t *string;

	if (read_value(source, key, value, sizeof(value)) < 0) {
		if (errno != ENOENT)
			return fail_errno(EX_DATAERR, "cannot read '%s'", key);
		snprintf(value, sizeof(value), "%s", missing);
	}
	string = json_string(value);
	if (!string)
		return fail(EX_DATAERR, "'%s' is not UTF-8 text", key);
	json_object_set_new(manifest, key, string);
	return 0;
}

static int add_port(json_t *list, const char *line)
{
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	const char *why = "out of memory";
	size_t n = ports ? port_parse(line, ports, PORTS_MAX, &why) : 0;

	if (n > 0 && ports[0].host != 0)
		why = "a port of the host is not an image's to choose";
	else if (n > 0) {
		json_array_append_new(list, json_string(line));
		return 0;
	}
	return fail(EX_DATAERR, "bad port '%s': %s", line, why);
}

/* Ports that are worth publishing, which the source may state in a file, a
 * line for each: "5901=gui" as in ark-net(1). */
static int add_ports(json_t *manifest, int source)
{
	char text[4096], *line = text;
	json_t *list;
	int r = 0;

	if (read_file(source, "ports", text, sizeof(text)) < 0) {
		if (errno == ENOENT)
			return 0;
		return fail_errno(EX_DATAERR, "cannot read 'ports'");
	}
	list = json_array();
	while (r == 0 && *line) {
		char *end = line + strcspn(line, "\n");
		bool more = *end != '\0';

		*end = '\0';
		if (*line)
			r = add_port(list, line);
		line = end + more;
	}
	json_object_set_new(manifest, "ports", list);
	return r;
}

static int write_manifest(int dir, const json_t *manifest)
{
	AUTO_FREE char *text = json_dumps(manifest, JSON_COMPACT);

	if (!text || write_value(dir, "manifest.json", "%s", text) < 0 ||
	    fchmodat(dir, "manifest.json", 0444, 0) < 0 ||
	    fchmod(dir, 0555) < 0 || fsync(dir) < 0)
		return fail_errno(EX_IOERR, "cannot write manifest.json");
	return 0;
}

static json_t *begin_manifest(const char *name)
{
	char id[37], created[UTC_SIZE];

	new_uuid(id);
	format_utc(created, time(NULL));
	return json_pack("{ss ss ss ss s{} s{}}", "name", name, "id", id,
			 "created", created, "base_fs", "ext4", "sha256",
			 "size");
}

static int fill(int source, int dir, json_t *manifest, const char *from,
		unsigned flags)
{
	json_t *digests = json_object_get(manifest, "sha256");
	json_t *sizes = json_object_get(manifest, "size");
	int r = add_fact(manifest, source, "recipe", "import");

	if (r == 0)
		r = add_fact(manifest, source, "kernel_release", "unknown");
	if (r == 0)
		r = add_ports(manifest, source);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(parts); i++) {
		r = take(source, dir, &parts[i], from, flags);
		if (r == 0)
			r = seal(dir, &parts[i], digests, sizes);
	}
	if (r < 0)
		return r;
	json_object_set(manifest, "disk_size", json_object_get(sizes, "disk"));
	return write_manifest(dir, manifest);
}

/* Give the finished directory its name.  With IMPORT_REPLACE the old image
 * changes places with it, and goes under the temporary name. */
static int publish(int images, const char *temp, const char *name,
		   unsigned flags)
{
	int r = renameat2(images, temp, images, name, RENAME_NOREPLACE);

	if (r < 0 && errno == EEXIST && flags & IMPORT_REPLACE)
		r = renameat2(images, temp, images, name, RENAME_EXCHANGE);
	if (r < 0 && errno == EEXIST)
		return fail(EX_CANTCREAT, "image '%s' exists (-f replaces it)",
			    name);
	if (r < 0 || fsync(images) < 0)
		return fail_errno(EX_IOERR, "cannot name image '%s'", name);
	return 0;
}

/* Under the temporary name; removed by the caller unless it got the real one.
 */
static int build(int images, int dir, const char *temp, const char *from,
		 const char *name, unsigned flags)
{
	AUTO_CLOSE int source = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	json_t *manifest;
	int r;

	if (source < 0)
		return fail_errno(errno == ENOENT ? EX_NOINPUT : EX_DATAERR,
				  "cannot open '%s'", from);
	manifest = begin_manifest(name);
	if (!manifest)
		return fail(EX_SOFTWARE, "out of memory");
	r = fill(source, dir, manifest, from, flags);
	json_decref(manifest);
	return r < 0 ? r : publish(images, temp, name, flags);
}

int image_import(const char *from, const char *name, unsigned flags)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int images = -1;
	AUTO_CLOSE int dir = -1;
	int r = flags & IMPORT_REPLACE ? check_name("image", name)
				       : image_check_free(name);

	if (r < 0)
		return r;
	images = root_open("image");
	if (images < 0)
		return images;
	dir = stage_make(images, name, temp);
	if (dir < 0)
		return fail_errno(EX_IOERR, "cannot make image '%s'", name);
	r = build(images, dir, temp, from, name, flags);
	/* What has this name now is the failure, the replaced image or none. */
	if (remove_tree(images, temp) < 0 && r == 0)
		r = fail_errno(EX_OSERR, "cannot remove image/%s", temp);
	return r;
}
