/*
 * vmm.c - which VMM and which accelerator this host gets.
 */
#include "ch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <x86intrin.h>

/* reboot=t: a triple fault ends every VMM at once.  The other ways end in the
 * firmware without a reset, which starts a kernel whose data are not those of a
 * start: with QEMU and KVM it then faults for ever and is never seen to end. */
const char vmm_kernel_words[] =
	"console=ttyS0 quiet panic=-1 reboot=t net.ifnames=0 cryptomgr.notests "
	"rcupdate.rcu_expedited=1 initcall_blacklist=init_kprobe_trace,"
	"load_system_certificate_list,crypto_kdf108_init ark.basefs=ext4";

void argv_add(struct vmm_argv *argv, const char *fmt, ...)
{
	size_t room = sizeof(argv->text) - argv->used;
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(argv->text + argv->used, room, fmt, args);
	va_end(args);
	if (len < 0 || (size_t)len >= room || argv->n == VMM_ARGS_MAX)
		die(EX_SOFTWARE, "command line of the VMM is too long");
	argv->word[argv->n++] = argv->text + argv->used;
	argv->word[argv->n] = NULL;
	argv->used += (size_t)len + 1;
}

/* ---- which driver ------------------------------------------------------- */

const struct vmm *vmm_named(const char *name)
{
	static const struct vmm *const drivers[] = {&vmm_ch, &vmm_qemu};

	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		if (strcmp(name, drivers[i]->name) == 0)
			return drivers[i];
	errno = EINVAL;
	return NULL;
}

const struct vmm *vmm_choose(enum accel accel, int *r)
{
	const char *want = getenv("ARK_VMM");
	const struct vmm *driver;

	*r = 0;
	if (!want || !*want || strcmp(want, "auto") == 0)
		return ch_usable(accel) ? &vmm_ch : &vmm_qemu;
	driver = vmm_named(want);
	if (!driver)
		*r = fail(EX_UNAVAILABLE,
			  "ARK_VMM='%s': no such driver (auto, ch, qemu)",
			  want);
	return driver;
}

const struct vmm *vmm_of(const struct sandbox *s)
{
	char name[16];

	if (read_value(s->run, "driver", name, sizeof(name)) < 0)
		return NULL;
	return vmm_named(name);
}

const struct vmm *vmm_recorded(const struct sandbox *s, int *r)
{
	const struct vmm *driver = vmm_of(s);

	*r = driver ? 0
		    : fail_errno(EX_OSERR,
				 "cannot tell which VMM sandbox '%s' has",
				 s->name);
	return driver;
}

/* What a VMM leaves in the page cache is written by the host, some time, and
 * counts for whoever made the file: a limit on its disk would not be met for
 * the first seconds.  Not every file system can do without that cache. */
static bool past_the_cache(const struct sandbox *s)
{
	AUTO_CLOSE int fd = -1;

	if (faccessat(s->dir, "io-rate", F_OK, 0) < 0)
		return false;
	fd = openat(s->dir, "disk",
		    O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0;
}

int vmm_plan_read(const struct sandbox *s, struct vmm_plan *plan)
{
	long long memory, cpus;

	if (read_number(s->dir, "memory", 1 << 20, INT64_MAX, &memory) < 0 ||
	    read_number(s->dir, "cpus", 1, 255, &cpus) < 0)
		return -1;
	plan->name = s->name;
	plan->memory = (uint64_t)memory;
	plan->cpus = (unsigned)cpus;
	plan->direct = past_the_cache(s);
	return 0;
}

/* ---- which accelerator -------------------------------------------------- */

bool cpuinfo_has_virt(const char *text)
{
	const char *flags = strstr(text, "\nflags");
	size_t len;

	if (!flags)
		return false;
	flags += 1;
	len = strcspn(flags, "\n");
	for (const char *at = flags; at < flags + len;) {
		size_t word = strcspn(at, " \t\n");

		if (word == 3 &&
		    (memcmp(at, "vmx", 3) == 0 || memcmp(at, "svm", 3) == 0))
			return true;
		at += word + 1;
	}
	return false;
}

static bool kvm_works(void)
{
	static char text[65536];
	AUTO_CLOSE int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	AUTO_CLOSE int info = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	ssize_t len;

	if (kvm < 0 || info < 0)
		return false;
	/* The first processor is within the first page or two. */
	len = read_full(info, text, sizeof(text) - 1);
	if (len <= 0)
		return false;
	text[len] = '\0';
	return cpuinfo_has_virt(text);
}

int accel_choose(enum accel *accel)
{
	const char *want = getenv("ARK_ACCEL");

	if (!want || !*want) {
		*accel = kvm_works() ? ACCEL_KVM : ACCEL_TCG;
		return 0;
	}
	if (strcmp(want, "kvm") == 0)
		*accel = ACCEL_KVM;
	else if (strcmp(want, "tcg") == 0)
		*accel = ACCEL_TCG;
	else
		return fail(EX_USAGE, "ARK_ACCEL='%s': kvm or tcg", want);
	return 0;
}

const char *accel_word(enum accel accel)
{
	return accel == ACCEL_KVM ? "kvm" : "tcg";
}

/* Counter and clock at one moment: the tightest of 20 tries. */
static void sample(uint64_t *tsc, double *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		struct timespec t;
		uint64_t before = __rdtsc(), after;

		clock_gettime(CLOCK_MONOTONIC_RAW, &t);
		after = __rdtsc();
		if (after - before >= best)
			continue;
		best = after - before;
		*tsc = before + best / 2;
		*ns = (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
	}
}

unsigned tsc_khz(void)
{
	const struct timespec wait = {.tv_nsec = 10000000};
	uint64_t tsc0 = 0, tsc1 = 0;
	double ns0 = 0, ns1 = 0;

	sample(&tsc0, &ns0);
	nanosleep(&wait, NULL);
	sample(&tsc1, &ns1);
	if (ns1 <= ns0 || tsc1 <= tsc0)
		return 0;
	return (unsigned)((double)(tsc1 - tsc0) / (ns1 - ns0) * 1e6 + 0.5);
}
