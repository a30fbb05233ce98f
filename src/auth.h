/*
 * auth.h - tenants and their tokens, ARK_ROOT/auth.
 *
 *	auth/TENANT/token/LABEL	"SCOPE SHA256 CREATED", one line
 *	auth/TENANT/quota/KIND	one number (quota.h)
 *
 * A token is "ark_", 64 hexadecimal digits (256 random bits) and 8 of a CRC-32
 * over what is before them, so that a mistyped or cut one is told from an
 * unknown one, and a scanner finds leaked ones.  On the disk is its SHA-256
 * alone: with 256 random bits there is nothing that a salt or a slow hash
 * would make harder.  Its id, in the audit log and in lists, is the first 12
 * digits of that hash.
 *
 * The tenant "host" is the host's own: its names have no prefix, and only its
 * tokens may have the scope admin.  Of any other tenant T the sandbox or
 * snapshot NAME is "T.NAME" on the disk.
 */
#ifndef ARK_AUTH_H
#define ARK_AUTH_H

#include "ark.h"

#define TENANT_MAX 20	/* [a-z][a-z0-9-]{0,19}; a LABEL is the same */
#define TOKEN_LEN 76	/* "ark_" + 64 + 8 */
#define TOKEN_ID_LEN 12 /* hexadecimal digits */
#define TENANT_HOST "host"
#define TOKEN_LABEL "main" /* of a tenant's first token */

/* Each may do what those before it may. */
enum scope { SCOPE_NONE, SCOPE_READ, SCOPE_EXEC, SCOPE_MANAGE, SCOPE_ADMIN };

struct token {
	char tenant[TENANT_MAX + 1];
	char label[TENANT_MAX + 1];
	char id[TOKEN_ID_LEN + 1];
	enum scope scope;
	long long created; /* seconds since 1970 */
	unsigned char hash[32];
};

/* All tokens of the host, to be asked without a file. */
struct auth_table {
	size_t n;
	struct token *token; /* owned */
};

#define AUTO_TABLE __attribute__((cleanup(auth_free)))

/* Read all tokens (~10 us each).  A token file that is damaged is told and
 * left out: it locks its own tenant out, and nobody else.  0, or the negative
 * exit code, told. */
int auth_load(struct auth_table *table);
void auth_free(struct auth_table *table);

/* Whom does the value of an Authorization header name?  "Bearer TOKEN", or
 * "Basic BASE64" of "USER:TOKEN", whatever USER is, up to 255 bytes (RFC 6750,
 * RFC 7617; the scheme in any case).  Pure: memory only, no system call, so it
 * works under any seccomp filter.  Its time depends on the table's length and
 * the shape of the value, not on how much of a token is right.
 * An entry of the table, or NULL and *why: "no token", "not a token" (scheme,
 * length, checksum) or "unknown token". */
const struct token *auth_check(const struct auth_table *table,
			       const char *value, const char **why);

/* The token of somebody who needs none (`auth = none`): tenant "host", scope
 * admin, id "-". */
extern const struct token auth_anyone;

/* Are there any tokens?  What `ark serve` asks before it listens beyond
 * loopback.  1, 0, or the negative exit code, told. */
int auth_any(void);

/* ---- names -------------------------------------------------------------- */

/* The name on the disk of a tenant's sandbox or snapshot: 0, or -EX_USAGE, told
 * in the tenant's own words, when it is no name or too long with the prefix. */
int tenant_name(const char *tenant, const char *kind, const char *name,
		char out[NAME_MAX_LEN + 1]);

/* The tenant's own word for a name on the disk, within `name`; NULL when it is
 * not the tenant's. */
const char *tenant_strip(const char *tenant, const char *name);

/* [a-z][a-z0-9-]{0,19}; for labels as well. */
bool tenant_ok(const char *name);

/* "read", "exec", "manage", "admin"; SCOPE_NONE for another word. */
enum scope scope_parse(const char *word);
const char *scope_word(enum scope scope);

/* ---- for ark-auth(8); each is whole or has not happened, under kill -9 -- */

/* An open directory ARK_ROOT/auth/TENANT, or -1 and errno. */
int auth_dir(const char *tenant);

/* The same, locked for a change, and without what killed changes have left;
 * told. */
int auth_lock(const char *tenant);

/* Give the tenant a token named `label`, the tenant being made when it is new.
 * `quota`: "KIND=N,..." (quota.h) or NULL, for a new tenant only.  `force`:
 * also when names with its prefix are there already, which then are its own. 0
 * and the token (TOKEN_LEN + 1 bytes, to be wiped by the caller), or the
 * negative exit code, told: -EX_CANTCREAT when there is such a label. */
int auth_add(const char *tenant, const char *label, enum scope scope,
	     const char *quota, bool force, char token[TOKEN_LEN + 1]);

/* A new token in the place of that one, which is refused from then on. */
int auth_rotate(const char *tenant, const char *label,
		char token[TOKEN_LEN + 1]);

/* Remove one token, or with a NULL label the tenant: that is refused
 * (-EX_UNAVAILABLE) while sandboxes or snapshots have its prefix, which the
 * next tenant of that name would get, but not with `force`. */
int auth_remove(const char *tenant, const char *label, bool force);

/* ---- pure, for the above and the tests ---------------------------------- */

/* Random bytes to a token. */
void token_format(const unsigned char random[32], char token[TOKEN_LEN + 1]);

/* Prefix, length, digits and checksum. */
bool token_ok(const char *token, size_t len);

/* SHA-256 of its TOKEN_LEN bytes. */
void token_hash(const char *token, unsigned char hash[32]);

/* Lower case; out has 2 * len + 1 bytes. */
void to_hex(const unsigned char *data, size_t len, char *out);

/* Are the `len` bytes the same?  In a time that depends on `len` only. */
bool same_bytes(const void *a, const void *b, size_t len);

#endif
