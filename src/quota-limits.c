/*
 * quota-limits.c - the limits themselves: what they are, what they look like,
 * and the one that is about time.
 */
#include "disk.h"
#include "quota.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define RATE_MAX 100000
#define NANO 1000000000ULL

/* ---- words -------------------------------------------------------------- */

static const char *parse_value(enum quota kind, const char *text,
			       uint64_t *value)
{
	bool size = kind == QUOTA_MEMORY || kind == QUOTA_DISK;
	bool rate = kind == QUOTA_RATE || kind == QUOTA_BURST;
	const char *why;
	long long n;

	if (strcmp(text, "none") == 0) {
		*value = QUOTA_NONE;
		return NULL;
	}
	if (size)
		return parse_size(text, value, &why) ? NULL : why;
	/* A rate of 0 would say: never. */
	if (!parse_num(text, rate ? 1 : 0, rate ? RATE_MAX : INT32_MAX, &n,
		       &why))
		return why;
	*value = (uint64_t)n;
	return NULL;
}

static int kind_of(const char *word)
{
	for (int kind = 0; kind < QUOTA_KINDS; kind++)
		if (strcmp(word, quota_word((enum quota)kind)) == 0)
			return kind;
	return -1;
}

const char *quota_parse(const char *text, struct quota_limits *limits)
{
	static char message[160];
	char copy[512], *rest = copy, *item;

	if (strlen(text) >= sizeof(copy))
		return "too long";
	snprintf(copy, sizeof(copy), "%s", text);
	while ((item = strsep(&rest, ","))) {
		char *value = strchr(item, '=');
		const char *why;
		int kind;

		if (!value) {
			snprintf(message, sizeof(message),
				 "'%.40s' is not KIND=N", item);
			return message;
		}
		*value++ = '\0';
		kind = kind_of(item);
		why = kind < 0 ? "not a kind of quota"
			       : parse_value((enum quota)kind, value,
					     &limits->limit[kind]);
		if (why) {
			snprintf(message, sizeof(message), "%.40s: %s", item,
				 why);
			return message;
		}
	}
	return NULL;
}

/* ---- files -------------------------------------------------------------- */

int quota_limits(const char *tenant, struct quota_limits *limits)
{
	AUTO_CLOSE int dir = auth_dir(tenant);
	AUTO_CLOSE int quota = dir < 0 ? -1 : open_dir(dir, "quota");

	*limits = (struct quota_limits)QUOTA_UNLIMITED;
	if (quota < 0)
		return errno == ENOENT
			       ? 0
			       : fail_errno(EX_OSERR,
					    "cannot read the quota of '%s'",
					    tenant);
	for (int kind = 0; kind < QUOTA_KINDS; kind++) {
		long long n;

		if (read_number(quota, quota_word((enum quota)kind), 0,
				INT64_MAX, &n) == 0)
			limits->limit[kind] = (uint64_t)n;
		else if (errno != ENOENT)
			limits->limit[kind] = 0;
	}
	return 0;
}

int quota_write(int tenant_dir, const struct quota_limits *limits)
{
	AUTO_CLOSE int quota = -1;

	if (mkdirat(tenant_dir, "quota", 0700) < 0 && errno != EEXIST)
		return fail_errno(EX_IOERR, "cannot write the quota");
	quota = open_dir(tenant_dir, "quota");
	for (int kind = 0; quota >= 0 && kind < QUOTA_KINDS; kind++) {
		const char *word = quota_word((enum quota)kind);
		int r;

		if (limits->limit[kind] == QUOTA_NONE)
			r = unlinkat(quota, word, 0) < 0 && errno != ENOENT;
		else
			r = write_value(
				quota, word, "%llu",
				(unsigned long long)limits->limit[kind]);
		if (r != 0)
			return fail_errno(EX_IOERR, "cannot write quota %s",
					  word);
	}
	if (quota < 0 || fsync(quota) < 0)
		return fail_errno(EX_IOERR, "cannot write the quota");
	return 0;
}

/* ---- what is asked ------------------------------------------------------ */

int quota_ask_snapshot(struct quota_ask *ask, const char *sandbox)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct stat st;
	long long memory = 0;
	int r = sandbox_open(&s, sandbox);

	if (r < 0)
		return r;
	if (fstatat(s.dir, "disk", &st, AT_SYMLINK_NOFOLLOW) == 0)
		ask->amount[QUOTA_DISK] += allocated_bytes(st.st_blocks);
	if (s.slot && read_number(s.dir, "memory", 0, INT64_MAX, &memory) == 0)
		ask->amount[QUOTA_DISK] += (uint64_t)memory;
	ask->amount[QUOTA_SNAPSHOTS]++;
	return 0;
}

void quota_text(const struct quota_refusal *why, char *out, size_t size)
{
	if (why->kind == QUOTA_RATE)
		snprintf(out, size,
			 "quota of requests: more than %llu per second",
			 (unsigned long long)why->limit);
	else
		snprintf(out, size,
			 "quota of %s: %llu of %llu used, %llu asked for",
			 quota_word(why->kind), (unsigned long long)why->used,
			 (unsigned long long)why->limit,
			 (unsigned long long)why->asked);
}

/* ---- rate --------------------------------------------------------------- */

uint64_t quota_bucket(uint64_t *at, uint64_t now, uint64_t rate, uint64_t burst)
{
	uint64_t one = NANO / rate, room = one * burst;
	uint64_t next = (*at > now ? *at : now) + one;

	/* Further ahead than a full bucket: of another clock, or garbage. */
	if (*at > now + room)
		next = now + room;
	if (next > now + room)
		return next - now - room;
	*at = next;
	return 0;
}

static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * NANO + (uint64_t)t.tv_nsec;
}

/* One number of fixed width, written in place: a write of 20 bytes is done or
 * not, and anything else there is an empty bucket. */
static uint64_t read_bucket(int fd)
{
	char text[24] = "";
	const char *why;
	long long at;

	if (pread(fd, text, 20, 0) != 20)
		return 0;
	return parse_num(text + strspn(text, " "), 0, INT64_MAX, &at, &why)
		       ? (uint64_t)at
		       : 0;
}

int quota_rate(const char *tenant, struct quota_refusal *why)
{
	struct quota_limits limits;
	uint64_t at, wait, rate, burst;
	AUTO_CLOSE int lock = -1;
	AUTO_CLOSE int fd = -1;
	char text[24];
	int r = quota_limits(tenant, &limits);

	rate = r < 0 ? QUOTA_NONE : limits.limit[QUOTA_RATE];
	if (r < 0 || rate == QUOTA_NONE)
		return r;
	if (rate == 0) /* damaged */
		rate = 1;
	burst = limits.limit[QUOTA_BURST];
	if (burst == QUOTA_NONE || burst == 0)
		burst = rate;
	lock = quota_lock(tenant);
	if (lock < 0)
		return lock;
	fd = openat(lock, "bucket", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_errno(EX_OSERR, "cannot open the bucket of '%s'",
				  tenant);
	at = read_bucket(fd);
	wait = quota_bucket(&at, boot_ns(), rate, burst);
	snprintf(text, sizeof(text), "%20llu", (unsigned long long)at);
	if (wait == 0 && pwrite_full(fd, text, 20, 0) < 0)
		return fail_errno(EX_OSERR, "cannot write the bucket of '%s'",
				  tenant);
	if (wait == 0)
		return 0;
	*why = (struct quota_refusal){
		.kind = QUOTA_RATE,
		.limit = rate,
		.used = burst,
		.asked = 1,
		.retry_after = (unsigned)((wait + NANO - 1) / NANO),
	};
	return 1;
}
