/*
 * test-ch - the pure parts of the Cloud Hypervisor driver: the configuration,
 * the edit of a state, versions, the stream of events.
 */
#include "tap.h"

#include "ch.h"

#include <jansson.h>

/* ---- configuration ------------------------------------------------------ */

#define DISKS(cpus, bytes, shared, direct)                                     \
	"{\"cpus\":{\"boot_vcpus\":" cpus ",\"max_vcpus\":" cpus               \
	",\"nested\":false},"                                                  \
	"\"memory\":{\"size\":0,\"zones\":[{\"id\":\"mem0\",\"size\":" bytes   \
	",\"file\":\"/proc/self/fd/5\",\"shared\":" shared "}]},"              \
	"\"payload\":{\"kernel\":\"/proc/self/fd/3\","                         \
	"\"initramfs\":\"/proc/self/fd/4\",\"cmdline\":\"WORDS\"},"            \
	"\"disks\":[{\"id\":\"base\",\"path\":\"/proc/self/fd/9\","            \
	"\"readonly\":true,\"direct\":false,\"image_type\":\"Raw\","           \
	"\"serial\":\"ark-base\"},"                                            \
	"{\"id\":\"disk\",\"path\":\"/proc/self/fd/10\",\"readonly\":false,"   \
	"\"direct\":" direct ","                                               \
	"\"image_type\":\"Raw\",\"serial\":\"ark-disk\"}],"                    \
	"\"net\":[{\"id\":\"net0\",\"tap\":\"tap0\","                          \
	"\"mac\":\"02:00:0a:00:02:02\"}],"                                     \
	"\"vsock\":{\"id\":\"vsock0\",\"cid\":3,\"socket\":\"/run/vsock\"},"   \
	"\"serial\":{\"mode\":\"File\",\"file\":\"/proc/self/fd/11\"},"        \
	"\"console\":{\"mode\":\"Off\"},\"rng\":{\"src\":\"/dev/urandom\"},"   \
	"\"pvpanic\":true}"
#define CONFIG(cpus, bytes, shared) DISKS(cpus, bytes, shared, "false")

/* The kernel's words are every driver's: one word stands for them. */
static void without_words(char *text)
{
	char *words = strstr(text, vmm_kernel_words);
	size_t n = strlen(vmm_kernel_words);

	if (!words)
		return;
	memcpy(words, "WORDS", 5);
	memmove(words + 5, words + n, strlen(words + n) + 1);
}

static void test_config(void)
{
	static const struct {
		struct vmm_plan plan;
		const char *want, *what;
	} rows[] = {
		{{.cpus = 1, .memory = 512ULL << 20},
		 CONFIG("1", "536870912", "true"),
		 "a boot: the memory is the file's"},
		{{.cpus = 1, .memory = 512ULL << 20, .restore = true},
		 CONFIG("1", "536870912", "false"),
		 "a restore: the same, but the memory is its own"},
		{{.cpus = 8, .memory = 64ULL << 30},
		 CONFIG("8", "68719476736", "true"),
		 "more of it"},
		{{.cpus = 255, .memory = 1ULL << 40, .restore = true},
		 CONFIG("255", "1099511627776", "false"),
		 "most of it"},
		{{.cpus = 1, .memory = 512ULL << 20, .direct = true},
		 DISKS("1", "536870912", "true", "true"),
		 "past the page cache: the sandbox's disk only"},
		{{.cpus = 1,
		  .memory = 512ULL << 20,
		  .name = "other",
		  .program = "/usr/bin/x",
		  .accel = ACCEL_KVM,
		  .tsc_khz = 1},
		 CONFIG("1", "536870912", "true"),
		 "no name and no host in it"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = ch_config(&rows[i].plan);

		without_words(text);
		is_str(text, rows[i].want, rows[i].what);
		free(text);
	}
}

/* ---- state -------------------------------------------------------------- */

#define STATE(ranges)                                                          \
	"{\"snapshots\":{\"memory-manager\":{\"snapshots\":{},"                \
	"\"snapshot_data\":{\"state\":\"{\\\"memory_ranges\\\":{\\\"data\\\":" \
	"[" ranges "]},\\\"guest_ram_mappings\\\":[{\\\"slot\\\":0,"           \
	"\\\"gpa\\\":0,\\\"size\\\":536870912,\\\"file_offset\\\":0}],"        \
	"\\\"arch_mem_regions\\\":[{\\\"size\\\":18446744073709551615}]}\"}}}" \
	",\"snapshot_data\":{\"state\":\"{\\\"clock\\\":[1]}\"}}"

#define ONE "{\\\"gpa\\\":0,\\\"length\\\":536870912}"
#define TWO ONE ",{\\\"gpa\\\":4294967296,\\\"length\\\":1073741824}"

static void test_state(void)
{
	static const struct {
		const char *text, *want, *wrong, *what;
	} rows[] = {
		{STATE(ONE), STATE(""), NULL, "one range"},
		{STATE(TWO), STATE(""), NULL, "two ranges"},
		{STATE(""), STATE(""), NULL, "none"},
		{"", "", "no list of memory in it", "nothing"},
		{"{}", "{}", "no list of memory in it", "no list"},
		{"{\"memory_ranges\":{\"data\":[]}}", "",
		 "no list of memory in it", "a list that is not in a string"},
		{STATE(ONE) STATE(ONE), "", "two lists of memory in it",
		 "two lists"},
		{"{\"state\":\"{\\\"memory_ranges\\\":{\\\"data\\\":[{", "",
		 "its list of memory has no end", "a list without an end"},
		{"{\"state\":\"{\\\"memory_ranges\\\":{\\\"data\\\":[{}]}", "",
		 "it is no JSON object", "cut short by a full disk"},
		{"[\"{\\\"memory_ranges\\\":{\\\"data\\\":[]}}\"]", "",
		 "it is no JSON object", "an array"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = strlen(rows[i].text);
		char *text = strdup(rows[i].text);
		const char *wrong = ch_seal_state(text, &len);

		if (rows[i].wrong) {
			is_str(wrong, rows[i].wrong, rows[i].what);
		} else {
			text[len] = '\0';
			ok(!wrong, "%s: understood", rows[i].what);
			is_str(text, rows[i].want, rows[i].what);
		}
		free(text);
	}
}

/* Every prefix of a state is refused, and none is read behind its end. */
static void test_state_cut(void)
{
	const char *whole = STATE(TWO);
	size_t refused = 0, n = strlen(whole);

	for (size_t cut = 0; cut < n; cut++) {
		char *text = malloc(cut + 1);
		size_t len = cut;

		memcpy(text, whole, cut);
		refused += ch_seal_state(text, &len) != NULL;
		free(text);
	}
	is_num((long long)refused, (long long)n, "a state cut anywhere");
}

/* ---- counters ----------------------------------------------------------- */

static void test_counters(void)
{
	static const struct {
		const char *text;
		bool good;
		struct vmm_counters want;
	} rows[] = {
		{"{\"net0\":{\"rx_bytes\":726,\"tx_frames\":7,\"rx_frames\":9,"
		 "\"tx_bytes\":586},\"base\":{\"write_ops\":0,\"read_bytes\":"
		 "2094080,\"write_bytes\":0,\"write_latency_max\":"
		 "18446744073709551615},\"disk\":{\"read_bytes\":39936,"
		 "\"write_bytes\":24576}}",
		 true,
		 {2094080 + 39936, 24576, 726, 586}},
		{"{}", true, {0, 0, 0, 0}},
		{"{\"disk\":{\"read_bytes\":-1,\"write_bytes\":"
		 "18446744073709551615},\"net0\":{\"rx_bytes\":\"7\","
		 "\"tx_bytes\":[1]}}",
		 true,
		 {0, 0, 0, 0}},
		{"{\"disk\":7,\"net0\":null}", true, {0, 0, 0, 0}},
		{"[]", false, {0, 0, 0, 0}},
		{"", false, {0, 0, 0, 0}},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct vmm_counters c;

		ok(ch_counters(rows[i].text, strlen(rows[i].text), &c) ==
			   rows[i].good,
		   "counters: %s", rows[i].text);
		ok(memcmp(&c, &rows[i].want, sizeof(c)) == 0, "their values");
	}
}

/* ---- versions ----------------------------------------------------------- */

static void test_versions(void)
{
	static const struct {
		const char *text;
		const char *version; /* NULL: none */
		const char *refused; /* NULL: accepted; a word of the reason */
		bool whole;
	} rows[] = {
		{"cloud-hypervisor v53.0\n", "53.0.0", NULL, true},
		{"cloud-hypervisor v53.0.0-12-gabcdef0", "53.0.0", NULL, true},
		{"v53.0", "53.0.0", NULL, true},
		{"53.1.2", "53.1.2", NULL, true},
		{"54.0.0", "54.0.0", NULL, true},
		{"100.0", "100.0.0", NULL, true},
		{"52.1.0", "52.1.0", NULL, false},
		{"52.0.0", "52.0.0", "second copy", false},
		{"cloud-hypervisor v52.0", "52.0.0", "second copy", false},
		{"51.2.0", "51.2.0", NULL, false},
		{"51.3", "51.3.0", NULL, false},
		{"51.1.0", "51.1.0", "CVE-2026-45782", false},
		{"51.0.0", "51.0.0", "CVE-2026-45782", false},
		{"50.2.0", "50.2.0", "51.2 or later", false},
		{"0.14.1", "0.14.1", "51.2 or later", false},
		{"", NULL, NULL, false},
		{"53", NULL, NULL, false},
		{"v", NULL, NULL, false},
		{"-1.0", NULL, NULL, false},
		{" 53.0", NULL, NULL, false},
		{"vv53.0", NULL, NULL, false},
		{"cloud-hypervisor", NULL, NULL, false},
		{"QEMU emulator version 7.2.22", NULL, NULL, false},
		{"99999999999999999999.1", NULL, NULL, false},
	};
	char version[32];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool found =
			ch_version_of(rows[i].text, version, sizeof(version));
		const char *refused;

		if (!rows[i].version) {
			ok(!found, "no version: %s", rows[i].text);
			continue;
		}
		is_str(found ? version : "none", rows[i].version, rows[i].text);
		refused = ch_version_refused(version);
		ok(rows[i].refused ? refused && strstr(refused, rows[i].refused)
				   : !refused,
		   "%s is %s: %s", version,
		   rows[i].refused ? "refused" : "accepted",
		   refused ? refused : "-");
		ok((ch_version_lacks(version) == NULL) ==
			   (rows[i].whole || rows[i].refused),
		   "%s lacks %s", version, rows[i].whole ? "nothing" : "some");
	}
	ok(ch_version_refused("") != NULL, "an unknown version is refused");
	ok(!ch_version_of("53.0", version, 5), "no room, no version");
}

/* ---- events ------------------------------------------------------------- */

#define EVENT(source, event, more)                                             \
	"{\n  \"timestamp\": {\n    \"secs\": 0,\n    \"nanos\": 4664404\n"    \
	"  },\n  \"source\": \"" source "\",\n  \"event\": \"" event           \
	"\",\n  \"properties\": " more "\n}\n\n"
#define VM(event) EVENT("vm", event, "null")

/* All events of a stream that comes in pieces of `step` bytes, as letters. */
static void read_all(const char *stream, size_t len, size_t step, char *out,
		     size_t size)
{
	static const char letters[] = {
		[EVENT_HELLO] = 'h',   [EVENT_PAUSED] = 'p',
		[EVENT_RESUMED] = 'r', [EVENT_POWEROFF] = 'o',
		[EVENT_REBOOT] = 'b',  [EVENT_PANIC] = '!'};
	struct ch_events *e = calloc(1, sizeof(*e));
	enum vmm_event event;
	size_t n = 0;

	for (size_t at = 0; at < len;) {
		size_t piece = len - at < step ? len - at : step;

		at += ch_events_feed(e, stream + at, piece);
		while ((event = ch_events_next(e)) != EVENT_NONE)
			if (n + 1 < size)
				out[n++] = letters[event];
	}
	out[n] = '\0';
	free(e);
}

static void test_events(void)
{
	static const struct {
		const char *what, *stream, *want;
	} rows[] = {
		{"nothing", "", ""},
		{"a life",
		 EVENT("vmm", "starting", "null") VM("booting") VM(
			 "booted") EVENT("virtio-device", "activated",
					 "{\n    \"id\": \"disk\"\n  }")
			 VM("pausing") VM("paused") VM("snapshotting") VM(
				 "resuming") VM("resumed") VM("shutdown")
				 VM("deleted") EVENT("vmm", "shutdown", "null"),
		 "pro"},
		{"a panic, then a reboot",
		 EVENT("guest", "panic", "{\n    \"event\": \"panic\"\n  }")
			 VM("rebooting"),
		 "!b"},
		{"the words of another source",
		 EVENT("guest", "paused", "null")
			 EVENT("vmm", "resumed", "null"),
		 ""},
		{"no blank lines between",
		 "{\"source\":\"vm\",\"event\":"
		 "\"paused\"}{\"source\":\"vm\","
		 "\"event\":\"resumed\"}",
		 "pr"},
		{"braces and quotes in strings",
		 "{\"source\":\"vm\",\"event\":\"paused\",\"x\":\"}{\\\"{\"}",
		 "p"},
		{"one that was cut, then a whole one",
		 "{\n  \"timestamp\": {\n    \"secs\": 0\n" VM("paused"), "p"},
		{"one that was cut in a string",
		 "{\n  \"source\": \"v\n" VM("paused"), "p"},
		{"the end of one, then a whole one",
		 "\"vm\",\n  \"properties\": null\n}\n\n" VM("rebooting"), "b"},
		{"garbage between",
		 "x}]]\n" VM("paused") "\001\002\n"
				       "nothing\n" VM("resumed"),
		 "pr"},
		{"no strings where they should be",
		 "{\"source\":1,\"event\":[\"paused\"]}" VM("paused"), "p"},
		{"the same key twice",
		 "{\"source\":\"vm\",\"event\":\"paused\",\"event\":"
		 "\"resumed\"}",
		 ""},
		{"an event without an end", "{\"source\":\"vm\",\"event\":\"pa",
		 ""},
	};
	char got[64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t step = 1; step < 100; step += 49) {
			read_all(rows[i].stream, strlen(rows[i].stream), step,
				 got, sizeof(got));
			ok(strcmp(got, rows[i].want) == 0,
			   "%s, %zu at a time: %s", rows[i].what, step, got);
		}
}

/* One that is larger than any is dropped, the next one is read. */
static void test_events_large(void)
{
	static char stream[20000];
	char got[16];
	int n = snprintf(stream, sizeof(stream), "{\"a\": \"%015000d\"}\n%s", 0,
			 VM("paused"));

	for (size_t step = 1; step < 5000; step += 1000) {
		read_all(stream, (size_t)n, step, got, sizeof(got));
		is_str(got, "p", "an event of 15000 bytes is no event");
	}
	memset(stream, '{', sizeof(stream));
	read_all(stream, sizeof(stream), 4096, got, sizeof(got));
	is_str(got, "", "20000 braces");
}

int main(void)
{
	test_config();
	test_state();
	test_state_cut();
	test_counters();
	test_versions();
	test_events();
	test_events_large();
	return done();
}
