/*
 * image.h - sealed images, ARK_ROOT/image/NAME.
 *
 * An image is five files, 0444 in a 0555 directory: kernel (ELF), initrd, base
 * (read-only root), disk (empty formatted template) and manifest.json.  What
 * is not whole has no name: see image_import().
 */
#ifndef ARK_IMAGE_H
#define ARK_IMAGE_H

#include "ark.h"

#define DIGEST_MAX 80

struct json_t;

/* The directory of an image whose five files are there, owned by the caller;
 * -EX_USAGE, -EX_NOINPUT or -EX_DATAERR, told.  Reads no file. */
int image_open(const char *name);

/* Hash the files again and compare with the manifest: 0, or -EX_DATAERR and
 * one line per file that differs. */
int image_digest_check(int dir, const char *name);

/* Its manifest as an object (release with json_decref), or NULL, told. */
struct json_t *image_manifest(int dir, const char *name);

/* 0 when an image of that name can be made, -EX_CANTCREAT when there is one,
 * -EX_USAGE for a bad name, told. */
int image_check_free(const char *name);

/* Running sandboxes have links of their own: removing never hurts one. */
int image_remove(const char *name);

enum {
	IMPORT_LINK = 1,    /* take the files themselves where possible */
	IMPORT_REPLACE = 2, /* an image of that name goes */
};

/* Seal the directory `from` (kernel, initrd, base and perhaps disk, recipe,
 * kernel_release) as image `name`.  0, or the negative exit code, told. */
int image_import(const char *from, const char *name, unsigned flags);

/* ---- image-import.c needs from image.c ---------------------------------- */

/* The digest of a file's content as manifest.json has it; -1 and errno.
 * `sparse`: "blocks:" and the SHA-256 over every 4 KiB block that is not all
 * zeros, each after its offset, and the size (both little endian, 64 bits): a
 * template of 8 GiB takes a millisecond instead of half a minute. */
int image_digest(int dir, const char *name, bool sparse,
		 char digest[DIGEST_MAX]);

#endif
