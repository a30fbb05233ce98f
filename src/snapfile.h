/*
 * snapfile.h - what a snapshot says of itself,
 * ARK_ROOT/snap/NAME/manifest.json.
 *
 * Files of a snapshot, beside the manifest: kernel, initrd, base (links to
 * those of the image), disk, and with memory: ram, state (the devices).
 */
#ifndef ARK_SNAPFILE_H
#define ARK_SNAPFILE_H

#include "image.h"

#define SNAP_FILES 6

struct snap_file {
	uint64_t size;
	int64_t mtime_ns;
	char digest[DIGEST_MAX]; /* as in an image's manifest; "": not taken */
};

struct snap_manifest {
	char id[37]; /* UUID */
	char name[NAME_MAX_LEN + 1];
	char parent[NAME_MAX_LEN + 1]; /* snapshot that source was restored
					  from, or "" */
	char source[NAME_MAX_LEN + 1]; /* sandbox */
	char image[NAME_MAX_LEN + 1];
	char created[UTC_SIZE];
	bool memory;  /* false: the disk alone, to be booted */
	char vmm[32]; /* these four may be "" without memory */
	char version[32];
	char accel[8];
	char cpu[64];
	unsigned tsc_khz; /* 0: the guest was not told a rate */
	unsigned cpus;
	uint64_t memory_size, disk_size;
	struct snap_file file[SNAP_FILES]; /* enum snap_part */
};

enum snap_part {
	SNAP_KERNEL,
	SNAP_INITRD,
	SNAP_BASE,
	SNAP_DISK,
	SNAP_RAM, /* this and state: only with memory */
	SNAP_STATE,
};

/* File name of a part. */
const char *snapfile_part(enum snap_part part);

/* Note size and time of dir's file of that part: 0, or -EX_IOERR, told.  The
 * digest, of a former file, goes. */
int snapfile_record(int dir, struct snap_manifest *m, enum snap_part part);

/* Take the digests that are missing: an image's manifest knows those of its
 * files already.  0, or -EX_IOERR, told. */
int snapfile_digest(int dir, struct snap_manifest *m);

/* manifest.json, 0444, on the disk when this returns.  0, or the negative exit
 * code, told: -EX_SOFTWARE for a manifest that would not be read again. */
int snapfile_write(int dir, const struct snap_manifest *m);

/* Read it, and believe nothing of it that is not checked.  0, or -EX_DATAERR,
 * told. */
int snapfile_read(int dir, const char *name, struct snap_manifest *m);

/* Are the files the recorded ones, by size and time: 0, or -EX_DATAERR, told
 * with the one that has changed.  Reads no file. */
int snapfile_check(int dir, const struct snap_manifest *m);

/* The same by digest; a line for every file that differs. */
int snapfile_verify(int dir, const struct snap_manifest *m);

/* What memory is going to be restored with. */
struct snap_host {
	const char *vmm, *version, *accel, *cpu;
	unsigned tsc_khz; /* 0: unknown */
};

/* Can this host go on where the snapshot stopped: 0, or -EX_UNAVAILABLE, told
 * with what differs.  A disk alone can be booted anywhere. */
int snapfile_compatible(const struct snap_manifest *m,
			const struct snap_host *host);

/* ---- pure, for the above and the tests ---------------------------------- */

/* NULL, or what is wrong with the text, in a static buffer. */
const char *snapfile_parse(const char *text, size_t len,
			   struct snap_manifest *m);
/* The text, owned by the caller, or NULL. */
char *snapfile_format(const struct snap_manifest *m);

#endif
