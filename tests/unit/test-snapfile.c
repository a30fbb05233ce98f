/*
 * test-snapfile - manifests: written and read again, damaged in every field,
 * compared with files and hosts.
 */
#include "tap.h"
#include "snapfile.h"

#include <sys/stat.h>

static int dir;

static const struct snap_manifest model = {
	.id = "0123abcd-0000-4000-8000-00000000000f",
	.name = "golden",
	.parent = "older",
	.source = "box",
	.image = "base",
	.created = "2024-02-29T23:59:59Z",
	.memory = true,
	.vmm = "qemu",
	.version = "7.2.22",
	.accel = "tcg",
	.cpu = "max,+x (R) @ 2.20GHz",
	.tsc_khz = 2250000,
	.cpus = 2,
	.memory_size = 2 << 20,
	.disk_size = 4 << 20,
};

static void make_file(const char *name, off_t size)
{
	put_file(dir, name, name, strlen(name));
	if (size) {
		AUTO_CLOSE int fd = openat(dir, name, O_RDWR);

		if (fd < 0 || ftruncate(fd, size) < 0)
			exit(99);
	}
}

static void make_files(void)
{
	make_file("kernel", 0);
	make_file("initrd", 0);
	make_file("base", 8192);
	make_file("disk", 4 << 20);
	make_file("ram", 2 << 20);
	make_file("state", 0);
}

static struct snap_manifest recorded(void)
{
	struct snap_manifest m = model;

	make_files();
	for (int i = 0; i < SNAP_FILES; i++)
		if (snapfile_record(dir, &m, (enum snap_part)i) < 0)
			exit(99);
	return m;
}

static bool same(const struct snap_manifest *a, const struct snap_manifest *b)
{
	AUTO_FREE char *x = snapfile_format(a);
	AUTO_FREE char *y = snapfile_format(b);

	return strcmp(x, y) == 0;
}

/* ---- round trip --------------------------------------------------------- */

static void test_round_trip(void)
{
	struct snap_manifest m = recorded(), back;
	struct stat st = {0};

	is_num(snapfile_digest(dir, &m), 0, "digests are taken");
	ok(strncmp(m.file[SNAP_RAM].digest, "blocks:", 7) == 0,
	   "memory by its blocks");
	ok(strlen(m.file[SNAP_BASE].digest) == 64, "the base as a whole");
	is_num(snapfile_write(dir, &m), 0, "written");
	fstatat(dir, "manifest.json", &st, 0);
	is_num(st.st_mode & 07777, 0444, "read-only");
	is_num(snapfile_read(dir, "golden", &back), 0, "read");
	ok(same(&m, &back), "it is the same");
	is_str(back.cpu, model.cpu, "texts");
	is_num(back.tsc_khz, model.tsc_khz, "numbers");
	is_num(back.file[SNAP_RAM].mtime_ns, m.file[SNAP_RAM].mtime_ns,
	       "and files are where they belong");
	is_num(snapfile_read(dir, "other", &back), -EX_DATAERR,
	       "as the manifest of another snapshot it is refused");
	ok(told("snapshot 'other' is broken: manifest.json: it is of another"),
	   "told");
}

static void test_disk_only(void)
{
	struct snap_manifest m = recorded(), back;
	const struct snap_host host = {"ch", "50", "kvm", "host", 1};

	m.memory = false;
	m.vmm[0] = m.version[0] = m.accel[0] = m.cpu[0] = m.parent[0] = '\0';
	m.tsc_khz = 0;
	memset(&m.file[SNAP_RAM], 0, 2 * sizeof(m.file[0]));
	is_num(snapfile_write(dir, &m), 0, "a disk alone: written");
	is_num(snapfile_read(dir, "golden", &back), 0, "read");
	ok(same(&m, &back), "it is the same");
	unlinkat(dir, "ram", 0);
	is_num(snapfile_check(dir, &m), 0, "its memory is not missed");
	is_num(snapfile_compatible(&m, &host), 0, "it boots on any host");
}

static void test_read_refuses(void)
{
	struct snap_manifest m;
	static char large[70000];

	unlinkat(dir, "manifest.json", 0);
	is_num(snapfile_read(dir, "golden", &m), -EX_DATAERR, "no manifest");
	ok(told("snapshot 'golden' is broken: manifest.json: No such"), "told");
	memset(large, ' ', sizeof(large));
	put_file(dir, "manifest.json", large, sizeof(large));
	is_num(snapfile_read(dir, "golden", &m), -EX_DATAERR, "a huge one");
	ok(told("manifest.json: File too large"), "told");
	put_file(dir, "manifest.json", "{\n\033[31m", 7);
	is_num(snapfile_read(dir, "golden", &m), -EX_DATAERR, "no JSON");
	ok(told("manifest.json: line 2"), "told with the line");
	unlinkat(dir, "manifest.json", 0);
	put_link("/dev/zero", dir, "manifest.json");
	is_num(snapfile_read(dir, "golden", &m), -EX_DATAERR, "a link");
	ok(told("manifest.json: Too many levels"), "told");
	unlinkat(dir, "manifest.json", 0);
}

/* ---- damage ------------------------------------------------------------- */

static const struct {
	const char *from, *to; /* first occurrence replaced */
	const char *wrong;
} damages[] = {
	{"\"id\":\"0", "\"id\":\"", "no good 'id'"},
	{"\"id\":\"0", "\"id\":\"00", "no good 'id'"},
	{"\"id\":\"0", "\"id\":\"A", "no good 'id'"},
	{"000f\"", "000f-\"", "no good 'id'"},
	{"-4000-", "04000-", "no good 'id'"},
	{"\"golden\"", "\"gol/den\"", "no good 'name'"},
	{"\"golden\"", "\"\"", "no good 'name'"},
	{"\"golden\"", "7", "no good 'name'"},
	{"\"golden\"", "null", "no good 'name'"},
	{"\"older\"", "\"..\"", "no good 'parent'"},
	{"\"box\"", "\"-x\"", "no good 'source'"},
	{"\"box\"", "\"b\\u0000x\"", "line 1"},
	{"\"base\",", "\"\",", "no good 'image'"},
	{"02-29T", "02-29 ", "no good 'created'"},
	{"59:59Z", "59:59", "no good 'created'"},
	{"2024-", "20x4-", "no good 'created'"},
	{"\"memory\":true", "\"memory\":1", "no good 'memory'"},
	{"\"memory\":true", "\"memory\":false", "no good 'file'"},
	{"\"memory\":true,", "", "no good 'memory'"},
	{"\"qemu\"", "\"\"", "no good 'vmm'"},
	{"\"qemu\"", "\"qe\\nmu\"", "no good 'vmm'"},
	{"\"qemu\"", "\"0123456789012345678901234567890123\"", "no good 'vmm'"},
	{"\"7.2.22\"", "\"\"", "no good 'version'"},
	{"\"7.2.22\"", "7.2", "no good 'version'"},
	{"\"tcg\"", "\"\"", "no good 'accel'"},
	{"\"tcg\"", "\"hvf\"", "no good 'accel'"},
	{"\"tcg\"", "\"tcgtcgtcg\"", "no good 'accel'"},
	{"\"max,", "\"\\u00e4", "no good 'cpu'"},
	{":2250000", ":-1", "no good 'tsc_khz'"},
	{":2250000", ":4294967296", "no good 'tsc_khz'"},
	{":2250000", ":2250000.5", "no good 'tsc_khz'"},
	{":2250000", ":\"2250000\"", "no good 'tsc_khz'"},
	{"\"cpus\":2", "\"cpus\":0", "no good 'cpus'"},
	{"\"cpus\":2", "\"cpus\":256", "no good 'cpus'"},
	{"\"memory_size\":2097152", "\"memory_size\":2097153",
	 "no good 'memory_size'"},
	{"\"memory_size\":2097152", "\"memory_size\":0",
	 "no good 'memory_size'"},
	{"\"memory_size\":2097152", "\"memory_size\":2101248", "no good 'ram'"},
	{"\"memory_size\":2097152", "\"memory_size\":99999999999999999999",
	 "line 1"},
	{"\"disk_size\":4194304", "\"disk_size\":1", "no good 'disk_size'"},
	{"\"disk_size\":4194304", "\"disk_size\":4194816", "no good 'disk'"},
	{"\"kernel\":", "\"Kernel\":", "no good 'kernel'"},
	{"\"initrd\":{", "\"initrd\":{\"x\":0,", "no good 'initrd'"},
	{"\"size\":8192", "\"size\":-8192", "no good 'base'"},
	{"\"size\":8192", "\"size\":8192.0", "no good 'base'"},
	{"\"mtime_ns\":", "\"mtime_ns\":null,\"x\":", "no good 'kernel'"},
	{"\"mtime_ns\":", "\"mtime\":", "no good 'kernel'"},
	{"\"digest\":\"\"", "\"digest\":\"00\"", "no good 'kernel'"},
	{"\"digest\":\"\"", "\"digest\":\"blocks:\"", "no good 'kernel'"},
	{"\"digest\":\"\"", "\"digest\":0", "no good 'kernel'"},
	{"\"state\":", "\"other\":", "no good 'state'"},
	{"\"file\":{", "\"file\":{\"more\":{},", "no good 'file'"},
	{"\"file\":{", "\"file\":[],\"files\":{", "no good 'kernel'"},
	{"\"id\":", "\"more\":1,\"id\":", "unknown keys"},
	{"\"id\":", "\"id\":1,\"id\":", "line 1: duplicate"},
	{"{\"id\"", "[\"id\"", "line 1"},
	{"}}}", "}}}x", "line 1"},
	{"}}}", "}}", "line 1"},
};

/* The text with one change, owned by the caller. */
static char *replaced(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);
	char *out;

	if (!at || asprintf(&out, "%.*s%s%s", (int)(at - text), text, to,
			    at + strlen(from)) < 0)
		exit(99);
	return out;
}

static void test_damage(void)
{
	struct snap_manifest m = recorded();
	AUTO_FREE char *text = snapfile_format(&m);

	ok(!snapfile_parse(text, strlen(text), &m), "undamaged it is read");
	for (size_t i = 0; i < ARRAY_LEN(damages); i++) {
		AUTO_FREE char *bad =
			replaced(text, damages[i].from, damages[i].to);
		const char *wrong = snapfile_parse(bad, strlen(bad), &m);

		if (!ok(wrong && strstr(wrong, damages[i].wrong), "refused: %s",
			damages[i].to))
			printf("#  got: %s\n", wrong ? wrong : "accepted");
	}
	for (size_t len = 0; len < strlen(text); len++)
		if (!snapfile_parse(text, len, &m)) {
			ok(false, "cut after %zu bytes", len);
			return;
		}
	ok(true, "cut anywhere it is refused");
}

static void test_write_refuses(void)
{
	struct snap_manifest m = recorded();

	m.cpus = 0;
	is_num(snapfile_write(dir, &m), -EX_SOFTWARE, "nonsense not written");
	ok(told("a manifest without a good 'cpus'"), "told");
	m = recorded();
	memset(m.cpu, 'x', sizeof(m.cpu));
	is_num(snapfile_write(dir, &m), -EX_SOFTWARE, "text without an end");
	ok(told("a manifest without a good 'cpu'"), "told");
	m = recorded();
	m.file[SNAP_RAM].size--;
	is_num(snapfile_write(dir, &m), -EX_SOFTWARE, "memory cut short");
	ok(told("a manifest without a good 'ram'"), "told");
	ok(faccessat(dir, "manifest.json", F_OK, 0) < 0, "there is no file");
}

/* ---- files -------------------------------------------------------------- */

static const struct {
	const char *name, *what;
} files[SNAP_FILES] = {
	{"kernel", "kernel of snapshot 'golden' has changed"},
	{"initrd", "initrd of snapshot 'golden' has changed"},
	{"base", "base image of snapshot 'golden' has changed"},
	{"disk", "disk of snapshot 'golden' has changed"},
	{"ram", "memory of snapshot 'golden' has changed"},
	{"state", "device state of snapshot 'golden' has changed"},
};

/* Another byte, and the time of before. */
static void tamper(const char *name)
{
	AUTO_CLOSE int fd = openat(dir, name, O_RDWR);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || pwrite(fd, "!", 1, 1) != 1 ||
	    futimens(fd, (struct timespec[]){st.st_atim, st.st_mtim}) < 0)
		exit(99);
}

static void test_check(void)
{
	struct snap_manifest m = recorded();

	is_num(snapfile_check(dir, &m), 0, "files as they were recorded");
	for (int i = 0; i < SNAP_FILES; i++) {
		m = recorded();
		m.file[i].mtime_ns++;
		is_num(snapfile_check(dir, &m), -EX_DATAERR, "another time");
		ok(told(files[i].what), "%s: told", files[i].name);
		m.file[i].mtime_ns--;
		m.file[i].size++;
		is_num(snapfile_check(dir, &m), -EX_DATAERR, "another size");
		ok(told(files[i].what), "%s: told", files[i].name);
		unlinkat(dir, files[i].name, 0);
		is_num(snapfile_check(dir, &m), -EX_DATAERR, "missing");
		ok(told("snapshot 'golden' is broken: "), "told");
		put_link("/etc/passwd", dir, files[i].name);
		is_num(snapfile_check(dir, &m), -EX_DATAERR, "a link");
		ok(told(files[i].what), "%s: told", files[i].name);
		unlinkat(dir, files[i].name, 0);
	}
	is_num(snapfile_record(dir, &m, SNAP_STATE), -EX_IOERR,
	       "nothing to record");
	ok(told("cannot look at 'state': No such file"), "told");
}

static void test_verify(void)
{
	struct snap_manifest m = recorded();

	is_num(snapfile_verify(dir, &m), -EX_DATAERR, "without digests");
	catch_stderr();
	m.file[SNAP_KERNEL].digest[0] = '\0';
	snapfile_digest(dir, &m);
	is_num(snapfile_verify(dir, &m), 0, "with them");
	for (int i = 0; i < SNAP_FILES; i++) {
		m = recorded();
		snapfile_digest(dir, &m);
		tamper(files[i].name);
		is_num(snapfile_check(dir, &m), 0, "size and time say nothing");
		is_num(snapfile_verify(dir, &m), -EX_DATAERR, files[i].name);
		ok(told(files[i].what), "told");
	}
	m = recorded();
	memset(m.file[SNAP_BASE].digest, 'a', 64);
	snapfile_digest(dir, &m);
	ok(m.file[SNAP_BASE].digest[63] == 'a', "a known digest is kept");
	snapfile_record(dir, &m, SNAP_BASE);
	is_str(m.file[SNAP_BASE].digest, "", "but not that of a former file");
}

/* ---- hosts -------------------------------------------------------------- */

static const struct {
	struct snap_host host;
	const char *told; /* NULL: compatible */
} hosts[] = {
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2250000}, NULL},
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2252250}, NULL},
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2247750}, NULL},
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2252251},
	 "of another TSC rate: 2250000 kHz, here it is 2252251 kHz"},
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2247749},
	 "of another TSC rate"},
	{{"qemu", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 0},
	 "of another TSC rate"},
	{{"ch", "7.2.22", "tcg", "max,+x (R) @ 2.20GHz", 2250000},
	 "of another VMM: 'qemu', here it is 'ch'"},
	{{"qemu", "7.2.2", "tcg", "max,+x (R) @ 2.20GHz", 2250000},
	 "of another version of the VMM: '7.2.22', here it is '7.2.2'"},
	{{"qemu", "7.2.22", "kvm", "max,+x (R) @ 2.20GHz", 2250000},
	 "of another accelerator: 'tcg', here it is 'kvm'"},
	{{"qemu", "7.2.22", "tcg", "max", 2250000},
	 "of another processor: 'max,+x (R) @ 2.20GHz', here it is 'max'"},
};

static void test_hosts(void)
{
	struct snap_manifest m = model;

	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		int r = snapfile_compatible(&m, &hosts[i].host);

		is_num(r, hosts[i].told ? -EX_UNAVAILABLE : 0,
		       hosts[i].told ? hosts[i].told : "compatible");
		ok(hosts[i].told ? told(hosts[i].told) : told_nothing(),
		   "told, or nothing to tell");
	}
	m.tsc_khz = 0;
	is_num(snapfile_compatible(&m, &hosts[5].host), 0,
	       "a guest that was told no rate needs none");
}

int main(void)
{
	progname = "test";
	dir = tap_dir();
	catch_stderr();
	test_round_trip();
	test_disk_only();
	test_read_refuses();
	test_damage();
	test_write_refuses();
	test_check();
	test_verify();
	test_hosts();
	return done();
}
