/*
 * auth-make.c - make, replace and remove tokens and tenants.
 *
 * 1. What a token was replaced or removed for must not come back with the
 *    next power failure: the directory is synced before anybody is told.
 * 2. Removal and making of a tenant look for its names under the lock that a
 *    request needs to be let in (quota_claim()), which then looks whether the
 *    tenant is still there: no request can make a name in between.
 */
#include "auth.h"
#include "quota.h"
#include "stage.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

static int check_tenant(const char *kind, const char *name)
{
	if (tenant_ok(name))
		return 0;
	return fail(EX_USAGE,
		    "bad %s '%.40s': a letter, then up to %d of a-z, 0-9 "
		    "and -",
		    kind, name, TENANT_MAX - 1);
}

/* A new token and the line about it. */
static int write_token(int tokens, const char *label, enum scope scope,
		       char token[TOKEN_LEN + 1])
{
	unsigned char secret[32], hash[32];
	char hex[65];
	int r = 0;

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		return fail_errno(EX_OSERR, "no random bytes");
	token_format(secret, token);
	explicit_bzero(secret, sizeof(secret));
	token_hash(token, hash);
	to_hex(hash, sizeof(hash), hex);
	if (write_value(tokens, label, "%s %s %lld", scope_word(scope), hex,
			(long long)time(NULL)) < 0 ||
	    fsync(tokens) < 0) {
		r = fail_errno(EX_IOERR, "cannot write token '%s'", label);
		explicit_bzero(token, TOKEN_LEN + 1);
	}
	return r;
}

static int is_temporary(const struct dirent *entry)
{
	return entry->d_name[0] == '.' && entry->d_name[1] &&
	       strcmp(entry->d_name, "..") != 0;
}

/* What write_value() leaves in a folder when it is killed. */
static void sweep(int dir, const char *folder)
{
	AUTO_CLOSE int fd = open_dir(dir, folder);
	struct dirent **list;
	int n = fd < 0 ? 0 : scandirat(fd, ".", &list, is_temporary, NULL);

	for (int i = 0; i < n; i++) {
		unlinkat(fd, list[i]->d_name, 0);
		free(list[i]);
	}
	if (fd >= 0 && n >= 0)
		free(list);
}

int auth_lock(const char *tenant)
{
	AUTO_CLOSE int dir = auth_dir(tenant);
	struct stat st;

	if (dir < 0 && errno == ENOENT)
		return fail(EX_NOINPUT, "no such tenant '%s'", tenant);
	if (dir < 0)
		return fail_errno(EX_OSERR, "cannot open tenant '%s'", tenant);
	if (lock_file(dir, LOCK_EX, 10000) < 0)
		return fail(EX_TEMPFAIL,
			    "tenant '%s' is being changed by another command",
			    tenant);
	if (fstat(dir, &st) < 0 || st.st_nlink == 0)
		return fail(EX_NOINPUT, "no such tenant '%s'", tenant);
	sweep(dir, "token");
	sweep(dir, "quota");
	return steal_fd(&dir);
}

/* Nothing may have the prefix already: under the lock of quota_lock(). */
static int check_no_names(int lock, const char *tenant, const char *what)
{
	uint64_t used[QUOTA_KINDS];
	int r;

	/* All names are the host's, with it or without. */
	if (strcmp(tenant, TENANT_HOST) == 0)
		return 0;
	r = quota_count(lock, tenant, used);
	if (r < 0)
		return r;
	if (used[QUOTA_SANDBOXES] || used[QUOTA_SNAPSHOTS])
		return fail(EX_UNAVAILABLE,
			    "cannot %s tenant '%s': there are %llu sandboxes "
			    "and %llu snapshots '%s.*' (-f to do it anyhow)",
			    what, tenant,
			    (unsigned long long)used[QUOTA_SANDBOXES],
			    (unsigned long long)used[QUOTA_SNAPSHOTS], tenant);
	return 0;
}

/* ---- add ---------------------------------------------------------------- */

static int fill_tenant(int dir, const char *label, enum scope scope,
		       const struct quota_limits *limits,
		       char token[TOKEN_LEN + 1])
{
	AUTO_CLOSE int tokens = -1;
	int r;

	if (mkdirat(dir, "token", 0700) < 0 ||
	    (tokens = open_dir(dir, "token")) < 0)
		return fail_errno(EX_IOERR, "cannot make the tenant");
	r = quota_write(dir, limits);
	if (r == 0)
		r = write_token(tokens, label, scope, token);
	if (r == 0 && fsync(dir) < 0)
		r = fail_errno(EX_IOERR, "cannot write the tenant");
	return r;
}

/* 0, told, or 1: somebody has just made it. */
static int add_tenant(const char *tenant, const char *label, enum scope scope,
		      const struct quota_limits *limits, bool force,
		      char token[TOKEN_LEN + 1])
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int all = root_open("auth");
	AUTO_CLOSE int lock = all < 0 ? all : quota_lock(tenant);
	AUTO_CLOSE int dir = -1;
	int r = lock < 0 ? lock : 0;

	if (r == 0 && !force)
		r = check_no_names(lock, tenant, "add");
	if (r < 0)
		return r;
	dir = stage_make(all, tenant, temp);
	if (dir < 0)
		return fail_errno(EX_IOERR, "cannot make tenant '%s'", tenant);
	r = fill_tenant(dir, label, scope, limits, token);
	if (r == 0 && renameat2(all, temp, all, tenant, RENAME_NOREPLACE) < 0)
		r = errno == EEXIST
			    ? 1
			    : fail_errno(EX_IOERR, "cannot make tenant '%s'",
					 tenant);
	if (r == 0 && fsync(all) < 0)
		r = fail_errno(EX_IOERR, "cannot write tenant '%s'", tenant);
	if (r != 0) {
		explicit_bzero(token, TOKEN_LEN + 1);
		remove_tree(all, temp);
	}
	return r;
}

static int add_token(const char *tenant, const char *label, enum scope scope,
		     char token[TOKEN_LEN + 1])
{
	AUTO_CLOSE int dir = auth_lock(tenant);
	AUTO_CLOSE int tokens = dir < 0 ? -1 : open_dir(dir, "token");

	if (dir < 0)
		return dir;
	if (tokens < 0)
		return fail_errno(EX_OSERR, "cannot open tenant '%s'", tenant);
	if (faccessat(tokens, label, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fail(EX_CANTCREAT, "tenant '%s' has a token '%s'",
			    tenant, label);
	return write_token(tokens, label, scope, token);
}

int auth_add(const char *tenant, const char *label, enum scope scope,
	     const char *quota, bool force, char token[TOKEN_LEN + 1])
{
	struct quota_limits limits = QUOTA_UNLIMITED;
	const char *why = quota ? quota_parse(quota, &limits) : NULL;
	AUTO_CLOSE int there = -1;
	int r = check_tenant("tenant", tenant);

	if (r == 0)
		r = check_tenant("label", label);
	if (r < 0)
		return r;
	if (why)
		return fail(EX_USAGE, "bad quota: %s", why);
	if (scope == SCOPE_ADMIN && strcmp(tenant, TENANT_HOST) != 0)
		return fail(EX_USAGE,
			    "only tokens of the tenant '%s' may have "
			    "the scope admin",
			    TENANT_HOST);
	there = auth_dir(tenant);
	if (there < 0) {
		r = add_tenant(tenant, label, scope, &limits, force, token);
		if (r <= 0)
			return r;
	}
	if (quota)
		return fail(EX_CANTCREAT,
			    "tenant '%s' exists; its quota is changed by "
			    "ark auth quota",
			    tenant);
	return add_token(tenant, label, scope, token);
}

/* ---- rotate ------------------------------------------------------------- */

/* The scope that a token has. */
static enum scope scope_of(const char *tenant, const char *label)
{
	AUTO_TABLE struct auth_table table;

	if (auth_load(&table) < 0)
		return SCOPE_NONE;
	for (size_t i = 0; i < table.n; i++)
		if (strcmp(table.token[i].tenant, tenant) == 0 &&
		    strcmp(table.token[i].label, label) == 0)
			return table.token[i].scope;
	fail(EX_NOINPUT, "tenant '%s' has no token '%s'", tenant, label);
	return SCOPE_NONE;
}

int auth_rotate(const char *tenant, const char *label,
		char token[TOKEN_LEN + 1])
{
	AUTO_CLOSE int dir = -1;
	AUTO_CLOSE int tokens = -1;
	enum scope scope;
	int r = check_tenant("tenant", tenant);

	if (r == 0)
		r = check_tenant("label", label);
	if (r < 0)
		return r;
	dir = auth_lock(tenant);
	if (dir < 0)
		return dir;
	scope = scope_of(tenant, label);
	if (scope == SCOPE_NONE)
		return -EX_NOINPUT;
	tokens = open_dir(dir, "token");
	if (tokens < 0)
		return fail_errno(EX_OSERR, "cannot open tenant '%s'", tenant);
	return write_token(tokens, label, scope, token);
}

/* ---- rm ----------------------------------------------------------------- */

static int remove_token(int dir, const char *tenant, const char *label)
{
	AUTO_CLOSE int tokens = open_dir(dir, "token");

	if (tokens < 0)
		return fail_errno(EX_OSERR, "cannot open tenant '%s'", tenant);
	if (unlinkat(tokens, label, 0) < 0 && errno == ENOENT)
		return fail(EX_NOINPUT, "tenant '%s' has no token '%s'", tenant,
			    label);
	if (faccessat(tokens, label, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    fsync(tokens) < 0)
		return fail_errno(EX_IOERR, "cannot remove token '%s'", label);
	return 0;
}

static int remove_tenant(const char *tenant, bool force)
{
	char temp[STAGE_NAME_MAX];
	AUTO_CLOSE int all = root_open("auth");
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int lock = all < 0 ? all : quota_lock(tenant);
	AUTO_CLOSE int folder = -1;
	int r = lock < 0 ? lock : 0;

	if (r == 0 && !force)
		r = check_no_names(lock, tenant, "remove");
	if (r < 0)
		return r;
	stage_name(tenant, temp);
	if (renameat(all, tenant, all, temp) < 0 || fsync(all) < 0 ||
	    remove_tree(all, temp) < 0)
		return fail_errno(EX_OSERR, "cannot remove tenant '%s'",
				  tenant);
	/* Its claims and bucket; what is held is looked for by name again. */
	folder = run < 0 ? -1 : open_dir(run, "tenant");
	if (folder >= 0)
		remove_tree(folder, tenant);
	return 0;
}

int auth_remove(const char *tenant, const char *label, bool force)
{
	AUTO_CLOSE int dir = -1;
	int r = check_tenant("tenant", tenant);

	if (r == 0 && label)
		r = check_tenant("label", label);
	if (r < 0)
		return r;
	dir = auth_lock(tenant);
	if (dir < 0)
		return dir;
	return label ? remove_token(dir, tenant, label)
		     : remove_tenant(tenant, force);
}
