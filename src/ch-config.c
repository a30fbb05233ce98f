/*
 * ch-config.c - configuration and state of a Cloud Hypervisor VM as text.
 *
 * 1. Every file is named by a descriptor that the VMM has inherited, every
 *    other path is the same in all jails: a restore needs no edit of what a VMM
 *    has written, because nothing that it has written is used but its state.
 * 2. The state is edited as text.  It holds JSON inside of JSON strings, with
 *    numbers (18446744073709551615) that parsers of doubles and of signed
 *    integers do not give back as they were.
 * 3. What can be left to a default and would differ between versions is said:
 *    disks are RAW (a guest can write any header into one), the virtio console
 *    is off (it would be the VMM's stdout), and every device has an id, by
 * which a state finds it again.
 */
#include "ch.h"
#include "netns.h"

#include <jansson.h>

static json_t *fd_path(enum vmm_fd fd)
{
	return json_sprintf("/proc/self/fd/%d", fd);
}

static json_t *memory(const struct vmm_plan *plan)
{
	/* One zone, so that a snapshot's state and ours name the same one.
	 * A clone maps the snapshot's memory privately: what it writes is its
	 * own. */
	return json_pack("{s:i, s:[{s:s, s:I, s:o, s:b}]}", "size", 0, "zones",
			 "id", "mem0", "size", (json_int_t)plan->memory, "file",
			 fd_path(FD_RAM), "shared", !plan->restore);
}

static json_t *disk(const char *id, enum vmm_fd fd, bool readonly, bool direct)
{
	return json_pack("{s:s, s:o, s:b, s:b, s:s, s:o}", "id", id, "path",
			 fd_path(fd), "readonly", readonly, "direct", direct,
			 "image_type", "Raw", "serial",
			 json_sprintf("ark-%s", id));
}

char *ch_config(const struct vmm_plan *plan)
{
	json_t *config = json_pack(
		"{s:{s:i, s:i, s:b}, s:o, s:{s:o, s:o, s:s}, s:[o, o],"
		" s:[{s:s, s:s, s:s}], s:{s:s, s:i, s:s}, s:{s:s, s:o},"
		" s:{s:s}, s:{s:s}, s:b}",
		"cpus", "boot_vcpus", (int)plan->cpus, "max_vcpus",
		(int)plan->cpus, "nested", 0, "memory", memory(plan), "payload",
		"kernel", fd_path(FD_KERNEL), "initramfs", fd_path(FD_INITRD),
		"cmdline", vmm_kernel_words, "disks",
		disk("base", FD_BASE, true, false),
		disk("disk", FD_DISK, false, plan->direct), "net", "id", "net0",
		"tap", TAP_NAME, "mac", GUEST_MAC, "vsock", "id", "vsock0",
		"cid", CH_VSOCK_CID, "socket", CH_VSOCK, "serial", "mode",
		"File", "file", fd_path(FD_CONSOLE), "console", "mode", "Off",
		"rng", "src", "/dev/urandom", "pvpanic", 1);
	char *text = config ? json_dumps(config, JSON_COMPACT) : NULL;

	json_decref(config);
	return text;
}

/* ---- state.json --------------------------------------------------------- */

const char *ch_seal_state(char *text, size_t *len)
{
	static const char key[] = "\\\"memory_ranges\\\":{\\\"data\\\":[";
	size_t n = sizeof(key) - 1;
	char *from = memmem(text, *len, key, n);
	char *end = text + *len, *to;
	json_t *whole;

	if (!from)
		return "no list of memory in it";
	from += n;
	if (memmem(from, (size_t)(end - from), key, n))
		return "two lists of memory in it";
	to = memchr(from, ']', (size_t)(end - from));
	if (!to)
		return "its list of memory has no end";
	memmove(from, to, (size_t)(end - to));
	*len -= (size_t)(to - from);
	/* It may have been cut short by a full disk. */
	whole = json_loadb(text, *len, 0, NULL);
	if (!json_is_object(whole)) {
		json_decref(whole);
		return "it is no JSON object";
	}
	json_decref(whole);
	return NULL;
}

/* ---- counters ----------------------------------------------------------- */

/* A count of one device; 0 for what is none.  Counters that have never counted
 * are 2^64 - 1, which no parser of signed integers takes, so they come as
 * reals; what is beyond 2^53 is not exact, and not true. */
static uint64_t count(const json_t *devices, const char *device,
		      const char *key)
{
	double value = json_real_value(
		json_object_get(json_object_get(devices, device), key));

	return value > 0 && value < 9007199254740992.0 ? (uint64_t)value : 0;
}

bool ch_counters(const char *text, size_t len, struct vmm_counters *c)
{
	json_t *devices = json_loadb(text, len, JSON_DECODE_INT_AS_REAL, NULL);
	bool good = json_is_object(devices);

	c->disk_read = count(devices, "disk", "read_bytes") +
		       count(devices, "base", "read_bytes");
	c->disk_written = count(devices, "disk", "write_bytes");
	c->net_received = count(devices, "net0", "rx_bytes");
	c->net_sent = count(devices, "net0", "tx_bytes");
	json_decref(devices);
	return good;
}

/* ---- versions ----------------------------------------------------------- */

bool ch_version_of(const char *text, char *version, size_t size)
{
	static const char before[] = "cloud-hypervisor ";
	unsigned major, minor, patch = 0;

	if (strncmp(text, before, sizeof(before) - 1) == 0)
		text += sizeof(before) - 1;
	if (*text == 'v')
		text++;
	if (*text < '0' || *text > '9' ||
	    sscanf(text, "%3u.%3u.%3u", &major, &minor, &patch) < 2)
		return false;
	/* --version says "v53.0" and the API "53.0.0". */
	return snprintf(version, size, "%u.%u.%u", major, minor, patch) <
	       (int)size;
}

static bool numbers(const char *version, unsigned *major, unsigned *minor)
{
	return sscanf(version, "%3u.%3u", major, minor) == 2;
}

const char *ch_version_refused(const char *version)
{
	unsigned major, minor;

	if (!numbers(version, &major, &minor))
		return "is none that is known";
	if (major < 51 || (major == 51 && minor < 2))
		return "lets a guest write into freed memory of its VMM "
		       "(CVE-2026-45782): 51.2 or later is needed";
	if (major == 52 && minor == 0)
		return "keeps a second copy of a clone's memory: 51.2, or 53.0 "
		       "or later is needed";
	return NULL;
}

const char *ch_version_lacks(const char *version)
{
	unsigned major, minor;

	if (ch_version_refused(version) || !numbers(version, &major, &minor))
		return NULL;
	if (major < 53)
		return "does not wait for the disk before it pauses: sync in "
		       "the guest before a snapshot, or use 53.0";
	return NULL;
}
