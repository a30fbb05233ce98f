/*
 * snapfile.c - what a snapshot says of itself.
 *
 * 1. A manifest is read whole or not at all: every key must be there, none
 *    besides, each in its range.  What is written goes through the same eyes
 *    first, so that no snapshot is made that cannot be restored.
 * 2. Restored memory that meets another base, kernel or processor does not
 *    fail, it goes wrong later, in the guest.  So a restore looks at all of
 *    them before; by size and time, because a digest takes seconds, and the
 *    files are ours alone.  Who doubts that has snapfile_verify().
 */
#include "snapfile.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stddef.h>
#include <sys/stat.h>

#define MANIFEST "manifest.json"
#define MANIFEST_MAX 65536

static const struct {
	const char *name;
	const char *what; /* to people */
	bool sparse;	  /* how its digest is taken */
} parts[SNAP_FILES] = {
	[SNAP_KERNEL] = {"kernel", "kernel", false},
	[SNAP_INITRD] = {"initrd", "initrd", false},
	[SNAP_BASE] = {"base", "base image", false},
	[SNAP_DISK] = {"disk", "disk", true},
	[SNAP_RAM] = {"ram", "memory", true},
	[SNAP_STATE] = {"state", "device state", false},
};

const char *snapfile_part(enum snap_part part)
{
	return parts[part].name;
}

static int part_count(const struct snap_manifest *m)
{
	return m->memory ? SNAP_FILES : SNAP_RAM;
}

/* ---- fields ------------------------------------------------------------- */

static bool is_hex(const char *text, size_t len)
{
	return strspn(text, "0123456789abcdef") >= len;
}

static bool is_uuid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == 'x' ? !text[i] || !is_hex(text + i, 1)
				   : text[i] != form[i])
			return false;
	return true;
}

static bool is_time(const char *text)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";

	for (size_t i = 0; i < sizeof(form); i++)
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9'
				   : text[i] != form[i])
			return false;
	return true;
}

static bool is_name_or_empty(const char *text)
{
	return !*text || name_ok(text);
}

static bool is_plain(const char *text)
{
	while (*text >= ' ' && *text <= '~')
		text++;
	return !*text;
}

static bool is_accel(const char *text)
{
	return !*text || strcmp(text, "kvm") == 0 || strcmp(text, "tcg") == 0;
}

static bool is_digest(const char *text)
{
	if (!*text)
		return true;
	if (strncmp(text, "blocks:", 7) == 0)
		text += 7;
	return strlen(text) == 64 && is_hex(text, 64);
}

#define TEXT(key)                                                              \
#key, offsetof(struct snap_manifest, key),                             \
		sizeof(((struct snap_manifest *)NULL)->key)

static const struct text_field {
	const char *key;
	size_t at, size;
	bool (*good)(const char *text);
} texts[] = {
	{TEXT(id), is_uuid},
	{TEXT(name), name_ok},
	{TEXT(parent), is_name_or_empty},
	{TEXT(source), name_ok},
	{TEXT(image), name_ok},
	{TEXT(created), is_time},
	{TEXT(vmm), is_plain},
	{TEXT(version), is_plain},
	{TEXT(accel), is_accel},
	{TEXT(cpu), is_plain},
};

static const char *get_text(const struct snap_manifest *m,
			    const struct text_field *f)
{
	return (const char *)m + f->at;
}

/* Numbers as they are in JSON; a struct of their own keeps the rest of the
 * code free of their widths. */
enum { TSC_KHZ, CPUS, MEMORY_SIZE, DISK_SIZE, NUMBERS };

static const struct {
	const char *key;
	json_int_t min, max;
	json_int_t unit;
} numbers[NUMBERS] = {
	[TSC_KHZ] = {"tsc_khz", 0, UINT32_MAX, 1},
	[CPUS] = {"cpus", 1, 255, 1},
	[MEMORY_SIZE] = {"memory_size", 1 << 20, INT64_MAX, 4096},
	[DISK_SIZE] = {"disk_size", 512, INT64_MAX, 512},
};

static json_int_t get_number(const struct snap_manifest *m, int number)
{
	const json_int_t all[NUMBERS] = {
		[TSC_KHZ] = m->tsc_khz,
		[CPUS] = m->cpus,
		[MEMORY_SIZE] = (json_int_t)m->memory_size,
		[DISK_SIZE] = (json_int_t)m->disk_size,
	};

	return all[number];
}

static bool is_number(int number, json_int_t n)
{
	return n >= numbers[number].min && n <= numbers[number].max &&
	       n % numbers[number].unit == 0;
}

/* ---- what fits together ------------------------------------------------- */

/* NULL, or the key of what is wrong, whoever filled the struct in. */
static const char *wrong_key(const struct snap_manifest *m)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *text = get_text(m, &texts[i]);

		if (strnlen(text, texts[i].size) == texts[i].size ||
		    !texts[i].good(text))
			return texts[i].key;
	}
	for (int i = 0; i < NUMBERS; i++)
		if (!is_number(i, get_number(m, i)))
			return numbers[i].key;
	for (int i = 0; i < part_count(m); i++) {
		const struct snap_file *f = &m->file[i];

		if (f->size > INT64_MAX ||
		    strnlen(f->digest, DIGEST_MAX) == DIGEST_MAX ||
		    !is_digest(f->digest))
			return parts[i].name;
	}
	if (m->file[SNAP_DISK].size != m->disk_size)
		return "disk";
	if (!m->memory)
		return NULL;
	if (m->file[SNAP_RAM].size != m->memory_size)
		return "ram";
	return !*m->vmm	      ? "vmm"
	       : !*m->version ? "version"
	       : !*m->accel   ? "accel"
	       : !*m->cpu     ? "cpu"
			      : NULL;
}

/* ---- read --------------------------------------------------------------- */

static bool parse_text(const json_t *root, const struct text_field *f,
		       struct snap_manifest *m)
{
	const char *text = json_string_value(json_object_get(root, f->key));

	if (!text || strlen(text) >= f->size)
		return false;
	memcpy((char *)m + f->at, text, strlen(text) + 1);
	return true;
}

static bool parse_number(const json_t *root, int number, json_int_t *out)
{
	const json_t *value = json_object_get(root, numbers[number].key);

	*out = json_integer_value(value);
	return json_is_integer(value) && is_number(number, *out);
}

static bool parse_file(const json_t *file, struct snap_file *out)
{
	const json_t *size = json_object_get(file, "size");
	const json_t *mtime = json_object_get(file, "mtime_ns");
	const char *digest = json_string_value(json_object_get(file, "digest"));

	if (!json_is_integer(size) || json_integer_value(size) < 0 ||
	    !json_is_integer(mtime) || !digest ||
	    strlen(digest) >= DIGEST_MAX || json_object_size(file) != 3)
		return false;
	out->size = (uint64_t)json_integer_value(size);
	out->mtime_ns = json_integer_value(mtime);
	memcpy(out->digest, digest, strlen(digest) + 1);
	return true;
}

/* NULL, or the key of what is not there or not of its kind. */
static const char *parse_object(const json_t *root, struct snap_manifest *m)
{
	const json_t *memory = json_object_get(root, "memory");
	const json_t *files = json_object_get(root, "file");
	json_int_t number[NUMBERS];

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (!parse_text(root, &texts[i], m))
			return texts[i].key;
	for (int i = 0; i < NUMBERS; i++)
		if (!parse_number(root, i, &number[i]))
			return numbers[i].key;
	if (!json_is_boolean(memory))
		return "memory";
	m->memory = json_is_true(memory);
	m->tsc_khz = (unsigned)number[TSC_KHZ];
	m->cpus = (unsigned)number[CPUS];
	m->memory_size = (uint64_t)number[MEMORY_SIZE];
	m->disk_size = (uint64_t)number[DISK_SIZE];
	for (int i = 0; i < part_count(m); i++)
		if (!parse_file(json_object_get(files, parts[i].name),
				&m->file[i]))
			return parts[i].name;
	return json_object_size(files) == (size_t)part_count(m) ? NULL : "file";
}

const char *snapfile_parse(const char *text, size_t len,
			   struct snap_manifest *m)
{
	static char why[JSON_ERROR_TEXT_LENGTH + 32];
	json_error_t error;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	const char *key;

	memset(m, 0, sizeof(*m));
	if (!root) {
		snprintf(why, sizeof(why), "line %d: %s", error.line,
			 error.text);
		return why;
	}
	key = parse_object(root, m);
	if (!key)
		key = wrong_key(m);
	if (key)
		snprintf(why, sizeof(why), "no good '%s'", key);
	else if (json_object_size(root) != ARRAY_LEN(texts) + NUMBERS + 2)
		snprintf(why, sizeof(why), "unknown keys");
	else
		*why = '\0';
	json_decref(root);
	return *why ? why : NULL;
}

int snapfile_read(int dir, const char *name, struct snap_manifest *m)
{
	AUTO_FREE char *text = malloc(MANIFEST_MAX);
	const char *wrong;
	ssize_t len;

	if (!text)
		return fail(EX_OSERR, "out of memory");
	len = read_file(dir, MANIFEST, text, MANIFEST_MAX);
	if (len < 0)
		return fail_errno(EX_DATAERR,
				  "snapshot '%s' is broken: " MANIFEST, name);
	wrong = snapfile_parse(text, (size_t)len, m);
	if (!wrong && strcmp(m->name, name) != 0)
		wrong = "it is of another snapshot";
	if (wrong)
		return fail(EX_DATAERR,
			    "snapshot '%s' is broken: " MANIFEST ": %s", name,
			    wrong);
	return 0;
}

/* ---- write -------------------------------------------------------------- */

static json_t *pack_files(const struct snap_manifest *m)
{
	json_t *files = json_object();

	for (int i = 0; i < part_count(m); i++) {
		const struct snap_file *f = &m->file[i];

		json_object_set_new(files, parts[i].name,
				    json_pack("{sI sI ss}", "size",
					      (json_int_t)f->size, "mtime_ns",
					      (json_int_t)f->mtime_ns, "digest",
					      f->digest));
	}
	return files;
}

char *snapfile_format(const struct snap_manifest *m)
{
	json_t *root = json_object();
	char *text;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		json_object_set_new(root, texts[i].key,
				    json_string(get_text(m, &texts[i])));
	json_object_set_new(root, "memory", json_boolean(m->memory));
	for (int i = 0; i < NUMBERS; i++)
		json_object_set_new(root, numbers[i].key,
				    json_integer(get_number(m, i)));
	json_object_set_new(root, "file", pack_files(m));
	text = root ? json_dumps(root, JSON_COMPACT) : NULL;
	json_decref(root);
	return text;
}

int snapfile_write(int dir, const struct snap_manifest *m)
{
	const char *wrong = wrong_key(m);
	AUTO_FREE char *text = NULL;

	if (wrong)
		return fail(EX_SOFTWARE, "a manifest without a good '%s'",
			    wrong);
	text = snapfile_format(m);
	if (!text)
		return fail(EX_OSERR, "out of memory");
	if (write_value(dir, MANIFEST, "%s", text) < 0 ||
	    fchmodat(dir, MANIFEST, 0444, 0) < 0 || fsync(dir) < 0)
		return fail_errno(EX_IOERR, "cannot write " MANIFEST);
	return 0;
}

/* ---- files -------------------------------------------------------------- */

static int64_t mtime_of(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

int snapfile_record(int dir, struct snap_manifest *m, enum snap_part part)
{
	struct snap_file *f = &m->file[part];
	struct stat st;

	if (fstatat(dir, parts[part].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail_errno(EX_IOERR, "cannot look at '%s'",
				  parts[part].name);
	f->size = (uint64_t)st.st_size;
	f->mtime_ns = mtime_of(&st);
	f->digest[0] = '\0';
	return 0;
}

int snapfile_digest(int dir, struct snap_manifest *m)
{
	for (int i = 0; i < part_count(m); i++)
		if (!m->file[i].digest[0] &&
		    image_digest(dir, parts[i].name, parts[i].sparse,
				 m->file[i].digest) < 0)
			return fail_errno(EX_IOERR, "cannot read '%s'",
					  parts[i].name);
	return 0;
}

int snapfile_check(int dir, const struct snap_manifest *m)
{
	for (int i = 0; i < part_count(m); i++) {
		struct stat st;

		if (fstatat(dir, parts[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail_errno(EX_DATAERR,
					  "snapshot '%s' is broken: %s",
					  m->name, parts[i].name);
		if (!S_ISREG(st.st_mode) ||
		    (uint64_t)st.st_size != m->file[i].size ||
		    mtime_of(&st) != m->file[i].mtime_ns)
			return fail(EX_DATAERR,
				    "%s of snapshot '%s' has changed",
				    parts[i].what, m->name);
	}
	return 0;
}

static int verify_part(int dir, const struct snap_manifest *m, int part)
{
	const char *want = m->file[part].digest;
	bool sparse = strncmp(want, "blocks:", 7) == 0;
	char have[DIGEST_MAX];

	if (!*want)
		return fail(EX_DATAERR, "snapshot '%s': no digest of its %s",
			    m->name, parts[part].what);
	if (image_digest(dir, parts[part].name, sparse, have) < 0)
		return fail_errno(EX_IOERR, "snapshot '%s': cannot read its %s",
				  m->name, parts[part].what);
	if (strcmp(want, have) != 0)
		return fail(EX_DATAERR, "%s of snapshot '%s' has changed",
			    parts[part].what, m->name);
	return 0;
}

int snapfile_verify(int dir, const struct snap_manifest *m)
{
	int result = 0;

	for (int i = 0; i < part_count(m); i++) {
		int r = verify_part(dir, m, i);

		if (result == 0)
			result = r;
	}
	return result;
}

/* ---- host --------------------------------------------------------------- */

/* Within 0.1 %: what a measurement of the same rate may differ by. */
static bool same_rate(unsigned a, unsigned b)
{
	uint64_t difference = a > b ? a - b : b - a;

	return difference * 1000 <= a;
}

int snapfile_compatible(const struct snap_manifest *m,
			const struct snap_host *host)
{
	const struct {
		const char *what, *had, *has;
	} words[] = {
		{"VMM", m->vmm, host->vmm},
		{"version of the VMM", m->version, host->version},
		{"accelerator", m->accel, host->accel},
		{"processor", m->cpu, host->cpu},
	};

	if (!m->memory)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].had, words[i].has) != 0)
			return fail(EX_UNAVAILABLE,
				    "snapshot '%s' is of another %s: '%s', "
				    "here it is '%s'",
				    m->name, words[i].what, words[i].had,
				    words[i].has);
	if (m->tsc_khz && !same_rate(m->tsc_khz, host->tsc_khz))
		return fail(EX_UNAVAILABLE,
			    "snapshot '%s' is of another TSC rate: %u kHz, "
			    "here it is %u kHz",
			    m->name, m->tsc_khz, host->tsc_khz);
	return 0;
}
