/*
 * test-vmm-argv - the command line of a VMM, from plans; and how it is chosen.
 */
#include "tap.h"

#include "vmm.h"

#include <sys/wait.h>

static struct vmm_argv argv;

static const struct vmm_plan tcg = {
	.program = "/usr/bin/qemu-system-x86_64",
	.name = "demo-1",
	.accel = ACCEL_TCG,
	.cpus = 2,
	.memory = 256ULL << 20,
	.tsc_khz = 2400123,
};

/* The word behind an option, counted from `from`; NULL. */
static const char *behind(const char *option, int *from)
{
	for (int i = *from; i + 1 < argv.n; i++)
		if (strcmp(argv.word[i], option) == 0) {
			*from = i + 2;
			return argv.word[i + 1];
		}
	return NULL;
}

static const char *value_of(const char *option)
{
	int from = 0;

	return behind(option, &from);
}

/* Is there a word that holds the text? */
static bool has(const char *text)
{
	for (int i = 0; i < argv.n; i++)
		if (strstr(argv.word[i], text))
			return true;
	return false;
}

static void test_words(void)
{
	static const struct {
		const char *option, *value;
	} rows[] = {
		{"-name", "ark-demo-1"},
		{"-accel", "tcg,tb-size=256"},
		{"-smp", "2"},
		{"-m", "256M"},
		{"-display", "none"},
		{"-kernel", "/proc/self/fd/3"},
		{"-initrd", "/proc/self/fd/4"},
	};
	struct vmm_plan plan = tcg;

	vmm_qemu.argv(&tcg, &argv);
	is_str(argv.word[0], "/usr/bin/qemu-system-x86_64", "program first");
	ok(argv.word[argv.n] == NULL, "NULL last");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		is_str(value_of(rows[i].option), rows[i].value, rows[i].option);
	ok(strncmp(value_of("-machine"), "microvm,", 8) == 0, "microvm");
	ok(has("-nodefaults") && has("-no-user-config"),
	   "nothing that was not asked for");
	ok(has("-no-reboot"), "a reboot is an end");
	ok(has(" reboot=t "), "and there is no firmware on its way");
	ok(has("cache=writeback") && !has("cache=none"), "the host's cache");
	plan.direct = true;
	vmm_qemu.argv(&plan, &argv);
	ok(has("cache=none") && !has("cache=writeback"), "or none of it");
}

/* What must or must not be there, whatever the plan. */
static void test_security(const char *what)
{
	static const char *const never[] = {
		"-daemonize", "-runas",	     "exec:",	   "balloon",
		"-monitor",   "-incoming",   "hostfwd",	   "user,",
		"script=",    "virtfs",	     "9p",	   "-loadvm",
		"-qmp",	      "-vnc",	     "unix:",	   "/var/lib",
		"/run/ark",   "snapshot=on", "share=off,",
	};
	const char *sandbox = value_of("-sandbox");
	int disks = 0, from = 0;

	ok(sandbox && strncmp(sandbox, "on,", 3) == 0 &&
		   strstr(sandbox, "obsolete=deny") &&
		   strstr(sandbox, "elevateprivileges=deny") &&
		   strstr(sandbox, "spawn=deny") &&
		   strstr(sandbox, "resourcecontrol=deny"),
	   "%s: -sandbox with all of it denied", what);
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		ok(!has(never[i]), "%s: no %s", what, never[i]);
	for (const char *v; (v = behind("-drive", &from));) {
		disks++;
		ok(strstr(v, "format=raw") && strstr(v, "file=/dev/fdset/"),
		   "%s: disk %d is raw, and a descriptor", what, disks);
	}
	is_num(disks, 2, "two disks");
	ok(has("readonly=on"), "%s: one of them read-only", what);
	ok(has("werror=report") && !has("werror=stop"),
	   "%s: a full host disk is an error in the guest", what);
	for (int fd = FD_KERNEL; fd < FD_PAST_LAST; fd++) {
		char one[32], two[32], three[32];

		if (fd == FD_CONSOLE_HELD)
			continue;
		snprintf(one, sizeof(one), "fd=%d,", fd);
		snprintf(two, sizeof(two), "fd/%d", fd);
		snprintf(three, sizeof(three), "fd=%d", fd);
		ok(has(one) || has(two) || has(three),
		   "%s: descriptor %d is used", what, fd);
	}
}

static void test_accelerators(void)
{
	struct vmm_plan plan = tcg;
	const char *words = value_of("-append");
	char path[256];

	ok(strstr(words, "tsc_early_khz=2400123"), "TCG is told the TSC");
	ok(strstr(words, "ark.basefs=ext4"), "the base's file system is told");
	ok(strstr(words, "console=ttyS0"), "console");
	test_security("tcg");
	plan.tsc_khz = 0;
	vmm_qemu.argv(&plan, &argv);
	ok(!has("tsc_early_khz"), "an unknown rate is not passed");
	plan.accel = ACCEL_KVM;
	plan.tsc_khz = 2400123;
	vmm_qemu.argv(&plan, &argv);
	is_str(value_of("-accel"), "kvm", "KVM");
	is_str(value_of("-cpu"), "host", "with the host's processor");
	ok(!has("tsc_early_khz") && !has("mitigations=off"),
	   "no word of TCG's under KVM");
	test_security("kvm");
	ok(vmm_qemu.find(ACCEL_KVM, path, sizeof(path)) == 0 &&
		   !strstr(path, "-microvm"),
	   "a QEMU with seccomp");
	ok(has("rtc=on"), "a clock chip, which kernels would wait for");
}

static void test_sizes(void)
{
	static char name[NAME_MAX_LEN + 1];
	struct vmm_plan plan = tcg;

	memset(name, 'n', NAME_MAX_LEN);
	plan.name = name;
	plan.cpus = 255;
	plan.memory = 1ULL << 40;
	vmm_qemu.argv(&plan, &argv);
	ok(argv.n < VMM_ARGS_MAX && argv.used < sizeof(argv.text),
	   "the longest fits");
	is_str(value_of("-m"), "1048576M", "1 TiB");
	ok(has("size=1048576M"), "of memory behind it");
	is_str(value_of("-smp"), "255", "255 vCPUs");
}

/* A command line too long ends the program with 70 and a line. */
static void test_too_long(void)
{
	int status = 0;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		argv.n = 0;
		argv.used = 0;
		for (;;)
			argv_add(&argv, "%0500d", 0);
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == EX_SOFTWARE,
	   "too much text is 70");
	ok(told("too long"), "told");
	pid = fork();
	if (pid == 0) {
		argv.n = 0;
		argv.used = 0;
		for (;;)
			argv_add(&argv, "x");
	}
	waitpid(pid, &status, 0);
	ok(WIFEXITED(status) && WEXITSTATUS(status) == EX_SOFTWARE,
	   "too many words is 70");
	ok(told("too long"), "told");
}

static void test_cpuinfo(void)
{
	static const struct {
		const char *text;
		bool virt;
	} rows[] = {
		{"processor\t: 0\nflags\t\t: fpu vmx sse\n", true},
		{"processor\t: 0\nflags\t\t: svm\n", true},
		{"processor\t: 0\nflags\t\t: fpu sse svm\n\n", true},
		{"processor\t: 0\nflags\t\t: fpu sse\n", false},
		{"processor\t: 0\nflags\t\t: vmxoff nosvm svm_lock avmx\n",
		 false},
		{"processor\t: 0\nflags\t\t: fpu\nvmx flags\t: vmx svm\n",
		 false},
		{"processor\t: 0\nmodel name\t: svm vmx\n", false},
		{"processor\t: 0\nmodel name\t: svm\nflags\t: fpu\n", false},
		{"processor\t: 0\nflags\t\t:\n", false},
		{"processor\t: 0\nflags", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		ok(cpuinfo_has_virt(rows[i].text) == rows[i].virt,
		   "cpuinfo: %s", rows[i].text);
}

/* It is told of its VM over its API, and of nothing else here. */
static void test_cloud_hypervisor(void)
{
	static const char *const words[] = {"/usr/bin/cloud-hypervisor",
					    "--api-socket",
					    "fd=7",
					    "--event-monitor",
					    "fd=8",
					    "--seccomp",
					    "true"};
	const struct vmm_plan plan = {.program = words[0],
				      .name = "demo-1",
				      .accel = ACCEL_KVM,
				      .cpus = 2,
				      .memory = 256ULL << 20};

	vmm_ch.argv(&plan, &argv);
	is_num(argv.n, ARRAY_LEN(words), "Cloud Hypervisor: words");
	for (int i = 0; i < argv.n && i < (int)ARRAY_LEN(words); i++)
		is_str(argv.word[i], words[i], "Cloud Hypervisor");
	ok(!argv.word[argv.n], "and their end");
}

static void test_choice(void)
{
	enum accel accel;
	char program[64];
	int r;

	setenv("ARK_ACCEL", "kvm", 1);
	ok(accel_choose(&accel) == 0 && accel == ACCEL_KVM, "ARK_ACCEL=kvm");
	setenv("ARK_ACCEL", "tcg", 1);
	ok(accel_choose(&accel) == 0 && accel == ACCEL_TCG, "ARK_ACCEL=tcg");
	setenv("ARK_ACCEL", "xen", 1);
	is_num(accel_choose(&accel), -EX_USAGE, "ARK_ACCEL=xen");
	ok(told("ARK_ACCEL='xen'"), "told");
	unsetenv("ARK_ACCEL");
	is_num(accel_choose(&accel), 0, "by itself");
	setenv("ARK_VMM", "auto", 1);
	ok(vmm_choose(ACCEL_TCG, &r) == &vmm_qemu && r == 0,
	   "ARK_VMM=auto without KVM");
	setenv("ARK_VMM", "qemu", 1);
	ok(vmm_choose(ACCEL_KVM, &r) == &vmm_qemu && r == 0, "ARK_VMM=qemu");
	setenv("ARK_VMM", "ch", 1);
	ok(vmm_choose(ACCEL_TCG, &r) == &vmm_ch && r == 0, "ARK_VMM=ch");
	is_num(vmm_ch.find(ACCEL_TCG, program, sizeof(program)),
	       -EX_UNAVAILABLE, "Cloud Hypervisor without KVM");
	ok(told("needs KVM"), "told");
	setenv("ARK_VMM", "bochs", 1);
	ok(!vmm_choose(ACCEL_KVM, &r) && r == -EX_UNAVAILABLE, "ARK_VMM=bochs");
	ok(told("ARK_VMM='bochs'"), "told");
	ok(vmm_named("ch") == &vmm_ch && vmm_named("qemu") == &vmm_qemu &&
		   !vmm_named("") && !vmm_named("QEMU"),
	   "drivers by name");
	is_str(accel_word(ACCEL_KVM), "kvm", "word");
	is_str(accel_word(ACCEL_TCG), "tcg", "word");
	ok(tsc_khz() > 100000 && tsc_khz() < 20000000, "a rate of the TSC");
}

int main(void)
{
	catch_stderr();
	test_words();
	test_accelerators();
	test_sizes();
	test_too_long();
	test_cpuinfo();
	test_cloud_hypervisor();
	test_choice();
	return done();
}
