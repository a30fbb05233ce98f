/*
 * tar-head.c - heads of a tar archive that is written: ustar, and pax records
 * (POSIX.1-2001) where that has no room.
 */
#include "tar.h"
#include "ark.h"

#include <sys/stat.h>

#define NAME_ROOM 100
#define SIZE_ROOM 077777777777ULL

size_t tar_padding(uint64_t size)
{
	return (size_t)(-size & (TAR_BLOCK - 1));
}

/* "LEN KEY=VALUE\n", where LEN counts itself. */
static size_t put_record(char *out, const char *key, const char *value)
{
	size_t body = strlen(key) + strlen(value) + 3;
	size_t len = body + 1;
	char digits[24];

	while (body + (size_t)snprintf(digits, sizeof(digits), "%zu", len) !=
	       len)
		len = body + strlen(digits);
	return (size_t)snprintf(out, len + 1, "%zu %s=%s\n", len, key, value);
}

/* A name that fills its field has no NUL. */
static void put_name(char *field, const char *name)
{
	memcpy(field, name, strnlen(name, NAME_ROOM));
}

static void put_block(char *block, const char *path, uint32_t mode,
		      uint64_t size, uint64_t mtime, char type,
		      const char *link)
{
	static const char magic[8] = {'u', 's', 't', 'a', 'r', 0, '0', '0'};
	unsigned sum = 0;

	memset(block, 0, TAR_BLOCK);
	put_name(block, path);
	snprintf(block + 100, 8, "%07o", mode & 0777);
	snprintf(block + 108, 8, "%07o", 0);
	snprintf(block + 116, 8, "%07o", 0);
	snprintf(block + 124, 12, "%011llo",
		 (unsigned long long)(size & SIZE_ROOM));
	snprintf(block + 136, 12, "%011llo",
		 (unsigned long long)(mtime / 1000000000 & SIZE_ROOM));
	memset(block + 148, ' ', 8);
	block[156] = type;
	put_name(block + 157, link);
	memcpy(block + 257, magic, sizeof(magic));
	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += (unsigned char)block[i];
	snprintf(block + 148, 8, "%06o", sum);
}

size_t tar_head(char *out, const char *path, uint32_t mode, uint64_t size,
		uint64_t mtime, const char *link)
{
	char type = S_ISDIR(mode) ? '5' : S_ISLNK(mode) ? '2' : '0';
	char *records = out + TAR_BLOCK, text[24];
	size_t len = 0, at = 0;

	if (strlen(path) > NAME_ROOM)
		len += put_record(records + len, "path", path);
	if (strlen(link) > NAME_ROOM)
		len += put_record(records + len, "linkpath", link);
	if (size > SIZE_ROOM) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)size);
		len += put_record(records + len, "size", text);
	}
	if (len > 0) {
		put_block(out, "pax", 0644, len, mtime, 'x', "");
		memset(records + len, 0, tar_padding(len));
		at = TAR_BLOCK + len + tar_padding(len);
	}
	put_block(out + at, path, mode, size, mtime, type, link);
	return at + TAR_BLOCK;
}
