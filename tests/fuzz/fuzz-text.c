/*
 * fuzz-text.c - what people type and what value files hold: names, numbers,
 * sizes, durations, messages; and that what is accepted means what it says.
 */
#include "ark.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool true_always)
{
	if (!true_always)
		abort();
}

static void check_parsers(const char *text)
{
	const char *why;
	long long number;
	uint64_t amount;
	char out[64], shown[8192];

	if (name_ok(text)) {
		require(strlen(text) <= NAME_MAX_LEN && text[0] != '.');
		require(!strchr(text, '/') && !strchr(text, '\n'));
	}
	if (parse_num(text, -5, 1000, &number, &why))
		require(number >= -5 && number <= 1000);
	else
		require(*why);
	if (parse_size(text, &amount, &why)) {
		require(amount <= INT64_MAX);
		format_size(out, sizeof(out), amount);
		require(*out);
	}
	if (parse_duration(text, &amount, &why)) {
		require(amount <= 3653ULL * 86400000);
		format_age(out, sizeof(out), amount / 1000);
	}
	printable(shown, sizeof(shown), text);
	for (const char *c = shown; *c; c++)
		require((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void check_value_file(const uint8_t *data, size_t size)
{
	char path[32], value[256];
	ssize_t len;
	int fd = memfd_create("value", MFD_CLOEXEC);

	require(fd >= 0 && write_full(fd, data, size) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* read_value() follows no link, as state files are none. */
	require(read_value(AT_FDCWD, path, value, sizeof(value)) < 0);
	require(lseek(fd, 0, SEEK_SET) == 0);
	len = read_full(fd, value, sizeof(value) - 1);
	require(len >= 0);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[4096];

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	check_parsers(text);
	check_value_file(data, size);
	return 0;
}
