/*
 * quota.c - count what a tenant has, admit what it may have.
 *
 * 1. Exact at any moment means: never more than the limit, whoever is killed.
 *    A claim counts from before its command begins until the command has
 *    ended, and the command ends after what it makes is in the files; so what
 *    is being made is counted once at least.
 * 2. Claims are read before the files.  The other way round, something whose
 *    command ends between the two would be seen in neither.
 * 3. A claim that says what it makes is passed over when that is found in the
 *    files: it counts once.  One that does not counts twice until its end,
 *    which may refuse what would have fitted, for that time.
 * 4. A claim that can be locked is nobody's, and goes; only under the lock of
 *    the tenant, under which alone claims are made and locked.
 */
#include "disk.h"
#include "quota.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define CLAIM_PREFIX "claim."

static const char *const words[QUOTA_KINDS] = {
	[QUOTA_SANDBOXES] = "sandboxes", [QUOTA_CPUS] = "cpus",
	[QUOTA_MEMORY] = "memory",	 [QUOTA_DISK] = "disk",
	[QUOTA_SNAPSHOTS] = "snapshots", [QUOTA_EXECS] = "execs",
	[QUOTA_RATE] = "rate",		 [QUOTA_BURST] = "burst",
};

const char *quota_word(enum quota kind)
{
	return words[kind];
}

/* ---- claims ------------------------------------------------------------- */

struct claim {
	uint64_t amount[QUOTA_CLAIMED];
	char sandbox[NAME_MAX_LEN + 1], snapshot[NAME_MAX_LEN + 1]; /* or "-" */
};

struct claims {
	size_t n;
	struct claim *claim; /* owned */
};

#define AUTO_CLAIMS __attribute__((cleanup(claims_free)))

static void claims_free(struct claims *c)
{
	free(c->claim);
}

static int write_claim(int fd, const struct quota_ask *ask)
{
	const uint64_t *a = ask->amount;

	return dprintf(fd, "%llu %llu %llu %llu %llu %llu %s %s\n",
		       (unsigned long long)a[QUOTA_SANDBOXES],
		       (unsigned long long)a[QUOTA_CPUS],
		       (unsigned long long)a[QUOTA_MEMORY],
		       (unsigned long long)a[QUOTA_DISK],
		       (unsigned long long)a[QUOTA_SNAPSHOTS],
		       (unsigned long long)a[QUOTA_EXECS],
		       ask->sandbox ? ask->sandbox : "-",
		       ask->snapshot ? ask->snapshot : "-") < 0
		       ? -1
		       : 0;
}

static bool parse_claim(char *text, struct claim *claim)
{
	char *word, *rest = text;
	const char *why;

	for (int i = 0; i < QUOTA_CLAIMED; i++) {
		long long n;

		word = strsep(&rest, " ");
		if (!rest || !parse_num(word, 0, INT64_MAX, &n, &why))
			return false;
		claim->amount[i] = (uint64_t)n;
	}
	word = strsep(&rest, " ");
	if (!rest)
		return false;
	snprintf(claim->sandbox, sizeof(claim->sandbox), "%s", word);
	snprintf(claim->snapshot, sizeof(claim->snapshot), "%s", rest);
	return true;
}

/* One file of the folder: live, or swept. */
static int read_claim(int lock, const char *file, struct claims *claims)
{
	AUTO_CLOSE int fd = openat(
		lock, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[400];
	struct claim *more;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (lock_file(fd, LOCK_EX, 0) == 0)
		return unlinkat(lock, file, 0) < 0 && errno != ENOENT ? -1 : 0;
	more = reallocarray(claims->claim, claims->n + 1, sizeof(*more));
	if (!more)
		return -1;
	claims->claim = more;
	/* Its holder has ended and removed it since: then it no longer
	 * matters, what it made is in the files. */
	if (read_value(lock, file, text, sizeof(text)) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!parse_claim(text, &more[claims->n])) {
		errno = EINVAL;
		return -1;
	}
	claims->n++;
	return 0;
}

static int is_claim(const struct dirent *entry)
{
	return strncmp(entry->d_name, CLAIM_PREFIX, strlen(CLAIM_PREFIX)) == 0;
}

static int read_claims(int lock, struct claims *claims)
{
	struct dirent **list;
	int n = scandirat(lock, ".", &list, is_claim, NULL);
	int result = n < 0 ? -1 : 0;

	for (int i = 0; i < n; i++) {
		if (result == 0)
			result = read_claim(lock, list[i]->d_name, claims);
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return result;
}

/* ---- counting ----------------------------------------------------------- */

struct counting {
	int folder; /* of those that are counted */
	const char *tenant;
	struct claims *claims;
	uint64_t *used;
};

static uint64_t number_of(int dir, const char *name)
{
	long long n;

	return read_number(dir, name, 0, INT64_MAX, &n) < 0 ? 0 : (uint64_t)n;
}

static uint64_t blocks_of(int dir, const char *name)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return allocated_bytes(st.st_blocks);
}

static int count_sandbox(const char *name, void *data)
{
	const struct counting *c = data;
	AUTO_CLOSE int dir = -1;

	if (!tenant_strip(c->tenant, name))
		return 0;
	dir = open_dir(c->folder, name);
	if (dir < 0) /* removed since */
		return 0;
	c->used[QUOTA_SANDBOXES]++;
	c->used[QUOTA_CPUS] += number_of(dir, "cpus");
	c->used[QUOTA_MEMORY] += number_of(dir, "memory");
	c->used[QUOTA_DISK] += number_of(dir, "disk-size");
	for (size_t i = 0; i < c->claims->n; i++)
		if (strcmp(c->claims->claim[i].sandbox, name) == 0)
			c->claims->claim[i] = (struct claim){0};
	return 0;
}

static int count_snapshot(const char *name, void *data)
{
	static const char *const parts[] = {"disk", "ram", "state"};
	const struct counting *c = data;
	AUTO_CLOSE int dir = -1;

	if (!tenant_strip(c->tenant, name))
		return 0;
	dir = open_dir(c->folder, name);
	if (dir < 0)
		return 0;
	c->used[QUOTA_SNAPSHOTS]++;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		c->used[QUOTA_DISK] += blocks_of(dir, parts[i]);
	for (size_t i = 0; i < c->claims->n; i++)
		if (strcmp(c->claims->claim[i].snapshot, name) == 0)
			c->claims->claim[i] = (struct claim){0};
	return 0;
}

static int count_folder(struct counting *c, const char *folder,
			int (*each)(const char *name, void *data))
{
	AUTO_CLOSE int dir = root_open(folder);

	c->folder = dir;
	return dir < 0 ? dir : names_each(folder, each, c);
}

int quota_count(int lock, const char *tenant, uint64_t used[QUOTA_KINDS])
{
	AUTO_CLAIMS struct claims claims = {0};
	struct counting c = {.tenant = tenant, .claims = &claims, .used = used};
	int r;

	memset(used, 0, sizeof(used[0]) * QUOTA_KINDS);
	if (read_claims(lock, &claims) < 0)
		return fail_errno(EX_OSERR, "cannot read the claims of '%s'",
				  tenant);
	r = count_folder(&c, "vm", count_sandbox);
	if (r == 0)
		r = count_folder(&c, "snap", count_snapshot);
	for (size_t i = 0; i < claims.n; i++)
		for (int kind = 0; kind < QUOTA_CLAIMED; kind++)
			used[kind] += claims.claim[i].amount[kind];
	return r;
}

/* ---- the tenant's folder in ARK_RUN ------------------------------------- */

/* Open it, made when missing; told. */
static int open_folder(const char *tenant)
{
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int all = -1;
	int fd;

	if (run < 0)
		return run;
	if ((mkdirat(run, "tenant", 0700) < 0 && errno != EEXIST) ||
	    (all = open_dir(run, "tenant")) < 0 ||
	    (mkdirat(all, tenant, 0700) < 0 && errno != EEXIST) ||
	    (fd = open_dir(all, tenant)) < 0)
		return fail_errno(EX_OSERR, "cannot make ARK_RUN/tenant/%s",
				  tenant);
	return fd;
}

int quota_lock(const char *tenant)
{
	/* It may be removed, with its tenant, while we wait: then again. */
	for (int tries = 0; tries < 100; tries++) {
		AUTO_CLOSE int fd = open_folder(tenant);
		struct stat st;

		if (fd < 0)
			return fd;
		if (lock_file(fd, LOCK_EX, 10000) < 0)
			return fail(EX_TEMPFAIL,
				    "tenant '%s' is being counted by others",
				    tenant);
		if (fstat(fd, &st) == 0 && st.st_nlink > 0)
			return steal_fd(&fd);
	}
	return fail(EX_TEMPFAIL, "tenant '%s' is being changed", tenant);
}

int quota_used(const char *tenant, uint64_t used[QUOTA_KINDS])
{
	AUTO_CLOSE int lock = quota_lock(tenant);

	return lock < 0 ? lock : quota_count(lock, tenant, used);
}

/* ---- admission ---------------------------------------------------------- */

/* 1 and *why when something does not fit. */
static int compare(const struct quota_limits *limits, const uint64_t *used,
		   const struct quota_ask *ask, struct quota_refusal *why)
{
	for (int kind = 0; kind < QUOTA_CLAIMED; kind++) {
		uint64_t limit = limits->limit[kind], n = ask->amount[kind];

		/* What takes nothing of a kind is let in, over its limit or
		 * not: that may have been lowered since. */
		if (n == 0 || limit == QUOTA_NONE ||
		    (used[kind] <= limit && n <= limit - used[kind]))
			continue;
		*why = (struct quota_refusal){
			.kind = (enum quota)kind,
			.limit = limit,
			.used = used[kind],
			.asked = n,
			/* Execs end; the rest stays until it is removed. */
			.retry_after = kind == QUOTA_EXECS ? 1 : 30,
		};
		return 1;
	}
	return 0;
}

/* The file of a claim, locked before its name can be met by others. */
static int make_claim(int lock, const struct quota_ask *ask,
		      struct quota_claim *claim)
{
	static unsigned number;

	snprintf(claim->file, sizeof(claim->file), CLAIM_PREFIX "%d.%u",
		 (int)getpid(), number++);
	/* Of a process of the same number, long gone: swept just now, when it
	 * was counted. */
	claim->fd = openat(lock, claim->file,
			   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (claim->fd < 0)
		return -1;
	if (lock_file(claim->fd, LOCK_EX, 0) == 0 &&
	    fcntl(claim->fd, F_SETFD, 0) == 0 && /* it is to be inherited */
	    write_claim(claim->fd, ask) == 0)
		return 0;
	unlinkat(lock, claim->file, 0);
	close(claim->fd);
	claim->fd = -1;
	return -1;
}

/* Is it still there?  "host" needs no directory. */
static bool tenant_there(const char *tenant)
{
	AUTO_CLOSE int dir = auth_dir(tenant);

	return dir >= 0 || strcmp(tenant, TENANT_HOST) == 0;
}

int quota_claim(const char *tenant, const struct quota_ask *ask,
		struct quota_claim *claim, struct quota_refusal *why)
{
	AUTO_CLOSE int lock = quota_lock(tenant);
	struct quota_limits limits;
	uint64_t used[QUOTA_KINDS];
	int r;

	claim->fd = -1;
	if (lock < 0)
		return lock;
	if (!tenant_there(tenant))
		return fail(EX_NOINPUT, "no such tenant '%s'", tenant);
	snprintf(claim->tenant, sizeof(claim->tenant), "%s", tenant);
	r = quota_limits(tenant, &limits);
	if (r == 0)
		r = quota_count(lock, tenant, used);
	if (r == 0)
		r = compare(&limits, used, ask, why);
	if (r == 0 && make_claim(lock, ask, claim) < 0)
		r = fail_errno(EX_OSERR, "cannot make a claim for '%s'",
			       tenant);
	return r;
}

void quota_release(struct quota_claim *claim)
{
	AUTO_CLOSE int run = claim->fd < 0 ? -1 : run_open(false);
	AUTO_CLOSE int all = run < 0 ? -1 : open_dir(run, "tenant");
	AUTO_CLOSE int folder = all < 0 ? -1 : open_dir(all, claim->tenant);

	if (folder >= 0)
		unlinkat(folder, claim->file, 0);
	if (claim->fd >= 0)
		close(claim->fd);
	claim->fd = -1;
}
