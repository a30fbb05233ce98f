/*
 * fuzz-tar.c - a tar archive of a stranger's: whatever it is, what comes out is
 * a tree whose names stay in it, or an end that says why.
 *
 * Sums are made right, or nothing would get beyond them.
 */
#include "ark.h"
#include "tar.h"
#include "tree-part.h"

#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_always)
{
	if (!true_always)
		abort();
}

static void set_sums(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		uint8_t *b = data + at;
		unsigned sum = 0;
		bool zero = true;

		for (size_t i = 0; i < TAR_BLOCK; i++)
			zero = zero && !b[i];
		if (zero)
			continue;
		memset(b + 148, ' ', 8);
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += b[i];
		snprintf((char *)b + 148, 8, "%06o", sum);
	}
}

/* The frames, and how they end. */
static void check_frames(const unsigned char *at, size_t size, const char *why)
{
	enum frame_type type = FRAME_DONE;
	char path[TREE_PATH];
	size_t len;
	bool first = true;

	for (; size > 0; at += len, size -= len, first = false) {
		require(size >= FRAME_HEAD &&
			frame_parse_head(at, &type, &len) == 0);
		at += FRAME_HEAD;
		size -= FRAME_HEAD;
		require(len <= size);
		if (type != FRAME_ENTRY)
			continue;
		require(len >= ENTRY_HEAD && len - ENTRY_HEAD < TREE_PATH);
		memcpy(path, at + ENTRY_HEAD, len - ENTRY_HEAD);
		path[len - ENTRY_HEAD] = '\0';
		require(first ? !*path : tree_path_ok(path));
	}
	require(type == (why ? FRAME_ABORT : FRAME_DONE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int in = memfd_create("in", MFD_CLOEXEC);
	int out = memfd_create("out", MFD_CLOEXEC);
	uint8_t *copy = malloc(size + 1);
	unsigned char *frames;
	const char *why;
	off_t end;

	require(in >= 0 && out >= 0 && copy);
	memcpy(copy, data, size);
	set_sums(copy, size);
	require(write_full(in, copy, size) == 0 && lseek(in, 0, SEEK_SET) == 0);
	why = tar_read(in, size, out);
	end = lseek(out, 0, SEEK_CUR);
	frames = malloc((size_t)end + 1);
	require(end > 0 && frames && lseek(out, 0, SEEK_SET) == 0 &&
		read_full(out, frames, (size_t)end) == end);
	check_frames(frames, (size_t)end, why);
	free(frames);
	free(copy);
	close(in);
	close(out);
	return 0;
}
