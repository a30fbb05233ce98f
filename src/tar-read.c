/*
 * tar-read.c - an archive of a stranger's as a tree of files.
 *
 * The stranger may put into the guest what he likes; what this must not do is
 * to be led by the archive: every length in it only says how much of what comes
 * is what, and is held against what is still to come.  Where a name leads is
 * the receiver's to refuse (tree-recv.c), but what can be said here is refused
 * before anything is written.
 */
#include "tar.h"
#include "ark.h"
#include "tree-part.h"

#include <sys/stat.h>

#define CHUNK (64u * 1024)
#define PAX_MAX (64u * 1024) /* of extended records before one entry */

struct reader {
	int in, out;
	uint64_t left; /* of the archive */
	int broken;    /* `out` is */
	const char *why;

	/* of the next entry, where ustar's fields are too small */
	char path[TREE_PATH], link[TREE_PATH];
	int has_path, has_link, has_size;
	uint64_t size;

	char dir[TREE_PATH]; /* that the last entry was in: it was sent */
	unsigned char block[TAR_BLOCK];
	unsigned char data[8 + CHUNK];
	char pax[PAX_MAX + 1];
};

static int bad(struct reader *r, const char *why)
{
	r->why = why;
	return -1;
}

static int get(struct reader *r, void *data, size_t len)
{
	if (len > r->left)
		return bad(r, "the archive ends early");
	if (read_full(r->in, data, len) != (ssize_t)len)
		return bad(r, "the body ends early");
	r->left -= len;
	return 0;
}

static int put(struct reader *r, enum frame_type type, const void *data,
	       size_t len)
{
	unsigned char head[FRAME_HEAD];

	frame_head(head, type, len);
	if (write_full(r->out, head, sizeof(head)) == 0 &&
	    (len == 0 || write_full(r->out, data, len) == 0))
		return 0;
	r->broken = 1;
	return -1;
}

static int put_entry(struct reader *r, uint32_t mode, uint64_t size,
		     uint64_t mtime, const char *path, size_t len)
{
	unsigned char entry[ENTRY_HEAD + TREE_PATH];

	put_u32(entry, mode);
	put_u64(entry + 4, size);
	put_u64(entry + 12, mtime);
	memcpy(entry + ENTRY_HEAD, path, len);
	return put(r, FRAME_ENTRY, entry, ENTRY_HEAD + len);
}

/* ---- numbers ------------------------------------------------------------- */

/* Octal text, or with the highest bit set a binary number (GNU). */
static int number(const unsigned char *field, size_t len, uint64_t *out)
{
	size_t i = 0;

	*out = 0;
	if (field[0] & 0x80) {
		if (field[0] != 0x80)
			return -1;
		for (i = 1; i < len; i++) {
			if (*out >> 55)
				return -1;
			*out = *out << 8 | field[i];
		}
		return 0;
	}
	while (i < len && field[i] == ' ')
		i++;
	for (; i < len && field[i] >= '0' && field[i] <= '7'; i++)
		*out = *out << 3 | (uint64_t)(field[i] - '0');
	return i == len || field[i] == ' ' || field[i] == '\0' ? 0 : -1;
}

static int is_zero(const unsigned char *block)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (block[i])
			return 0;
	return 1;
}

static int checksum_ok(const unsigned char *block)
{
	uint64_t want, sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : block[i];
	return number(block + 148, 8, &want) == 0 && want == sum;
}

/* ---- names --------------------------------------------------------------- */

/* Without "./" in front, slashes at the end and double ones: 0; a name that
 * leads out is refused. */
static int clean(struct reader *r, char *path)
{
	char *from = path, *to = path;

	if (*path == '/')
		return bad(r, "a name that begins with a slash");
	while (*from) {
		size_t len = strcspn(from, "/");

		if (len > 0 && !(len == 1 && *from == '.')) {
			if (to > path)
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len + (from[len] == '/');
	}
	*to = '\0';
	if (*path && !tree_path_ok(path))
		return bad(r, "a name that leads out of the archive");
	return 0;
}

static void field_text(char *out, const unsigned char *field, size_t len)
{
	size_t n = strnlen((const char *)field, len);

	memcpy(out, field, n);
	out[n] = '\0';
}

/* The name of the entry whose head is in the block. */
static void take_names(struct reader *r)
{
	const unsigned char *b = r->block;
	char name[101], prefix[156] = "";

	field_text(name, b, 100);
	if (memcmp(b + 257, "ustar\0", 6) == 0)
		field_text(prefix, b + 345, 155);
	if (!r->has_path)
		snprintf(r->path, sizeof(r->path), "%s%s%s", prefix,
			 *prefix ? "/" : "", name);
	if (!r->has_link)
		field_text(r->link, b + 157, 100);
}

/* ---- extended records ---------------------------------------------------- */

static int keep(struct reader *r, char *out, const char *text, size_t len)
{
	if (len == 0 || len >= TREE_PATH || memchr(text, '\0', len))
		return bad(r, "a name that is too long or has a NUL");
	memcpy(out, text, len);
	out[len] = '\0';
	return 1;
}

static int take_record(struct reader *r, const char *key, size_t key_len,
		       const char *value, size_t len)
{
	char text[24];
	const char *why;
	long long size;

	if (key_len == 4 && memcmp(key, "path", 4) == 0)
		r->has_path = keep(r, r->path, value, len);
	else if (key_len == 8 && memcmp(key, "linkpath", 8) == 0)
		r->has_link = keep(r, r->link, value, len);
	if (r->why)
		return -1;
	if (key_len >= 10 && memcmp(key, "GNU.sparse", 10) == 0)
		return bad(r, "a sparse file");
	if (key_len != 4 || memcmp(key, "size", 4) != 0)
		return 0;
	if (len >= sizeof(text))
		return bad(r, "a bad size");
	memcpy(text, value, len);
	text[len] = '\0';
	if (!parse_num(text, 0, INT64_MAX, &size, &why))
		return bad(r, "a bad size");
	r->has_size = 1;
	r->size = (uint64_t)size;
	return 0;
}

/* "LEN KEY=VALUE\n", and so on. */
static int take_pax(struct reader *r, size_t len)
{
	char *at = r->pax, *end = r->pax + len;

	while (at < end) {
		char *blank = memchr(at, ' ', (size_t)(end - at)), *equals;
		const char *why;
		long long size;

		if (!blank || blank - at > 10)
			return bad(r, "a bad extended record");
		*blank++ = '\0';
		if (!parse_num(at, 5, end - at, &size, &why) ||
		    at[size - 1] != '\n' || at + size <= blank)
			return bad(r, "a bad extended record");
		equals = memchr(blank, '=', (size_t)(at + size - blank));
		if (!equals)
			return bad(r, "a bad extended record");
		if (take_record(r, blank, (size_t)(equals - blank), equals + 1,
				(size_t)(at + size - 1 - (equals + 1))) < 0)
			return -1;
		at += size;
	}
	return 0;
}

/* What stands for a name or an extended record, with its padding. */
static int get_padded(struct reader *r, uint64_t size, int wanted)
{
	size_t pad = tar_padding(size);

	if (size > PAX_MAX)
		return bad(r, "an extended record that is too long");
	if (get(r, r->pax, (size_t)size) < 0 || get(r, r->data, pad) < 0)
		return -1;
	r->pax[size] = '\0';
	return wanted ? 0 : 1;
}

/* ---- entries ------------------------------------------------------------- */

/* Directories that the archive does not mention: those of the path that were
 * not those of the last one. */
static int put_parents(struct reader *r, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		if (strncmp(r->dir, path, i) == 0 &&
		    (r->dir[i] == '/' || r->dir[i] == '\0'))
			continue;
		if (put_entry(r, S_IFDIR | 0755, 0, 0, path, i) < 0)
			return -1;
	}
	memcpy(r->dir, path, len);
	r->dir[len] = '\0';
	return 0;
}

static int put_contents(struct reader *r, uint64_t size)
{
	uint64_t at = 0;

	while (at < size) {
		size_t n = size - at < CHUNK ? (size_t)(size - at) : CHUNK;

		put_u64(r->data, at);
		if (get(r, r->data + 8, n) < 0 ||
		    put(r, FRAME_DATA, r->data, n + 8) < 0)
			return -1;
		at += n;
	}
	if (get(r, r->data, tar_padding(size)) < 0)
		return -1;
	return put(r, FRAME_END, NULL, 0);
}

static int put_link(struct reader *r, uint64_t mtime)
{
	size_t len = strlen(r->link);

	if (len == 0)
		return bad(r, "a link to nothing");
	put_u64(r->data, 0);
	memcpy(r->data + 8, r->link, len);
	if (put_entry(r, S_IFLNK | 0777, len, mtime, r->path, strlen(r->path)) <
		    0 ||
	    put(r, FRAME_DATA, r->data, len + 8) < 0)
		return -1;
	return put(r, FRAME_END, NULL, 0);
}

static int take_file(struct reader *r, uint64_t mode, uint64_t mtime)
{
	char type = (char)r->block[156];
	size_t len;

	take_names(r);
	if (clean(r, r->path) < 0)
		return -1;
	len = strlen(r->path);
	if (len == 0)
		return type == '5' ? 0 : bad(r, "a file without a name");
	if (r->size > r->left)
		return bad(r, "the archive ends early");
	if (put_parents(r, r->path) < 0)
		return -1;
	if (type == '5')
		return put_entry(r, S_IFDIR | (mode & 07777), 0, mtime, r->path,
				 len);
	if (type == '2')
		return put_link(r, mtime);
	if (put_entry(r, S_IFREG | (mode & 07777), r->size, mtime, r->path,
		      len) < 0)
		return -1;
	return put_contents(r, r->size);
}

/* The entry whose head is in the block. */
static int take_entry(struct reader *r)
{
	uint64_t mode, mtime, size;
	char type = (char)r->block[156];
	int n;

	if (!checksum_ok(r->block))
		return bad(r, "not a tar archive");
	if (number(r->block + 100, 8, &mode) < 0 ||
	    number(r->block + 124, 12, &size) < 0 ||
	    number(r->block + 136, 12, &mtime) < 0 || mtime >> 33)
		return bad(r, "a bad number");
	switch (type) {
	case 'x':
	case 'g':
		n = get_padded(r, size, type == 'x');
		return n == 0 ? take_pax(r, (size_t)size) : n < 0 ? -1 : 0;
	case 'L':
	case 'K':
		if (get_padded(r, size, 1) < 0)
			return -1;
		n = keep(r, type == 'L' ? r->path : r->link, r->pax,
			 strlen(r->pax));
		r->has_path |= type == 'L';
		r->has_link |= type == 'K';
		return n < 0 ? -1 : 0;
	case '0':
	case '\0':
	case '2':
	case '5':
		break;
	default:
		return bad(r, "neither file, directory nor symbolic link");
	}
	if (!r->has_size)
		r->size = type == '2' || type == '5' ? 0 : size;
	n = take_file(r, mode, mtime * 1000000000);
	r->has_path = r->has_link = r->has_size = 0;
	return n;
}

static int take_all(struct reader *r)
{
	if (put_entry(r, S_IFDIR | 0755, 0, 0, "", 0) < 0)
		return -1;
	do {
		if (get(r, r->block, TAR_BLOCK) < 0)
			return -1;
		if (is_zero(r->block))
			return put(r, FRAME_DONE, NULL, 0);
	} while (take_entry(r) == 0);
	return -1;
}

const char *tar_read(int in, uint64_t length, int out)
{
	static struct reader r;

	memset(&r, 0, sizeof(r));
	r.in = in;
	r.out = out;
	r.left = length;
	if (take_all(&r) == 0)
		return NULL;
	if (r.broken || !r.why)
		return "";
	put(&r, FRAME_ABORT, r.why, strlen(r.why));
	return r.why;
}
