/*
 * fuzz-snapfile.c - the manifest of a snapshot: whatever is accepted is in its
 * ranges, and says the same when it is written and read again.
 */
#include "snapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_always)
{
	if (!true_always)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snap_manifest m, back;
	const char *wrong = snapfile_parse((const char *)data, size, &m);
	AUTO_FREE char *text = NULL;
	AUTO_FREE char *again = NULL;

	if (wrong) {
		require(*wrong);
		return 0;
	}
	require(name_ok(m.name) && name_ok(m.source) && name_ok(m.image));
	require(m.cpus >= 1 && m.cpus <= 255 && m.memory_size >= 1 << 20);
	require(m.file[SNAP_DISK].size == m.disk_size);
	require(!m.memory || m.file[SNAP_RAM].size == m.memory_size);
	text = snapfile_format(&m);
	require(text && !snapfile_parse(text, strlen(text), &back));
	again = snapfile_format(&back);
	require(again && strcmp(text, again) == 0);
	return 0;
}
