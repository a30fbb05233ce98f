/*
 * image.c - open, list, verify and remove sealed images.
 *
 * 1. An image is complete or it has no name that anybody can say: it is put
 *    together on a stage (stage.h) and renamed.  Hence image_open(), which
 *    stands in the way of every start, only looks whether the files are there.
 */
#include "image.h"
#include "stage.h"
#include "state.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sha256.h>
#include <sys/file.h>
#include <sys/stat.h>

#define MANIFEST_MAX 65536
#define BLOCK 4096
#define CHUNK (16 * BLOCK)

int image_open(const char *name)
{
	static const char *const files[] = {"kernel", "initrd", "base", "disk",
					    "manifest.json"};
	AUTO_CLOSE int images = -1;
	AUTO_CLOSE int dir = -1;
	int r = check_name("image", name);

	if (r < 0)
		return r;
	images = root_open("image");
	if (images < 0)
		return images;
	dir = open_dir(images, name);
	if (dir < 0 && errno == ENOENT)
		return fail(EX_NOINPUT, "no image '%s' (see ark image)", name);
	if (dir < 0)
		return fail_errno(EX_OSERR, "cannot open image '%s'", name);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct stat st;

		if (fstatat(dir, files[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
			return fail_errno(EX_DATAERR,
					  "image '%s' is broken: %s", name,
					  files[i]);
		if (!S_ISREG(st.st_mode))
			return fail(EX_DATAERR,
				    "image '%s' is broken: %s is no file", name,
				    files[i]);
	}
	return steal_fd(&dir);
}

/* ---- digests ------------------------------------------------------------ */

static void add_number(SHA2_CTX *sum, uint64_t number)
{
	uint64_t le = htole64(number);

	SHA256Update(sum, (const uint8_t *)&le, sizeof(le));
}

static void add_blocks(SHA2_CTX *sum, const uint8_t *buf, size_t len, off_t at)
{
	for (size_t i = 0; i < len; i += BLOCK) {
		size_t n = len - i < BLOCK ? len - i : BLOCK;

		if (buf[i] == 0 && memcmp(buf + i, buf + i + 1, n - 1) == 0)
			continue;
		add_number(sum, (uint64_t)at + i);
		SHA256Update(sum, buf + i, n);
	}
}

/* Feed the file to the sum; returns its size, or -1 and errno. */
static off_t add_file(SHA2_CTX *sum, int fd, bool sparse)
{
	uint8_t buf[CHUNK];
	off_t at = 0;

	for (;;) {
		ssize_t n;

		if (sparse) {
			off_t data = lseek(fd, at, SEEK_DATA);

			if (data < 0 && errno == ENXIO)
				return lseek(fd, 0, SEEK_END);
			if (data < 0)
				return -1;
			at = data - data % BLOCK;
		}
		n = pread(fd, buf, CHUNK, at);
		if (n < 0)
			return -1;
		if (n == 0)
			return at;
		if (sparse)
			add_blocks(sum, buf, (size_t)n, at);
		else
			SHA256Update(sum, buf, (size_t)n);
		at += n;
	}
}

int image_digest(int dir, const char *name, bool sparse,
		 char digest[DIGEST_MAX])
{
	AUTO_CLOSE int fd = openat(
		dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char hex[SHA256_DIGEST_STRING_LENGTH];
	SHA2_CTX sum;
	off_t size;

	if (fd < 0)
		return -1;
	SHA256Init(&sum);
	size = add_file(&sum, fd, sparse);
	if (size < 0)
		return -1;
	if (sparse)
		add_number(&sum, (uint64_t)size);
	SHA256End(&sum, hex);
	snprintf(digest, DIGEST_MAX, "%s%s", sparse ? "blocks:" : "", hex);
	return 0;
}

json_t *image_manifest(int dir, const char *name)
{
	AUTO_FREE char *text = malloc(MANIFEST_MAX);
	json_error_t error;
	json_t *manifest;
	ssize_t len;

	if (!text)
		return NULL;
	len = read_file(dir, "manifest.json", text, MANIFEST_MAX);
	if (len < 0) {
		fail_errno(EX_DATAERR, "image '%s' is broken: manifest.json",
			   name);
		return NULL;
	}
	manifest =
		json_loadb(text, (size_t)len, JSON_REJECT_DUPLICATES, &error);
	if (!manifest)
		fail(EX_DATAERR, "image '%s' is broken: manifest.json:%d: %s",
		     name, error.line, error.text);
	return manifest;
}

/* One file against what the manifest says of it. */
static int check_file(int dir, const char *image, const char *file,
		      const json_t *manifest)
{
	const char *want = json_string_value(
		json_object_get(json_object_get(manifest, "sha256"), file));
	char have[DIGEST_MAX];

	if (!want)
		return fail(EX_DATAERR, "image '%s': no digest of its %s",
			    image, file);
	if (image_digest(dir, file, strncmp(want, "blocks:", 7) == 0, have) < 0)
		return fail_errno(EX_IOERR, "image '%s': cannot read its %s",
				  image, file);
	if (strcmp(want, have) != 0)
		return fail(EX_DATAERR,
			    "image '%s': its %s is not what was sealed", image,
			    file);
	return 0;
}

int image_digest_check(int dir, const char *name)
{
	static const char *const files[] = {"kernel", "initrd", "base", "disk"};
	json_t *manifest = image_manifest(dir, name);
	int result = 0;

	if (!manifest)
		return -EX_DATAERR;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		int r = check_file(dir, name, files[i], manifest);

		if (result == 0)
			result = r;
	}
	json_decref(manifest);
	return result;
}

/* ---- the folder of images ----------------------------------------------- */

int image_check_free(const char *name)
{
	AUTO_CLOSE int images = -1;
	int r = check_name("image", name);

	if (r < 0)
		return r;
	images = root_open("image");
	if (images < 0)
		return images;
	if (faccessat(images, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fail(EX_CANTCREAT, "image '%s' exists (-f replaces it)",
			    name);
	return 0;
}

int image_remove(const char *name)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int images = -1;
	AUTO_CLOSE int stage = -1;
	int r = check_name("image", name);

	if (r < 0)
		return r;
	images = root_open("image");
	if (images < 0)
		return images;
	stage = stage_make(images, name, temp);
	if (stage < 0)
		return fail_errno(EX_OSERR, "cannot remove image '%s'", name);
	/* Gone at once, and as a whole; then its files. */
	r = renameat(images, name, stage, name) == 0 ? 0 : errno;
	if (remove_tree(images, temp) < 0 && r == 0)
		r = errno;
	errno = r;
	if (r == ENOENT)
		return fail(EX_NOINPUT, "no image '%s'", name);
	return r ? fail_errno(EX_OSERR, "cannot remove image '%s'", name) : 0;
}
