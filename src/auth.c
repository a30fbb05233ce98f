/*
 * auth.c - tokens: read, asked, made.
 *
 * 1. What can be taken from the disk is a hash: it opens nothing.
 * 2. A token is compared by its hash, with every one of the table and to the
 *    last byte, so that time tells nothing; its checksum, which is asked
 *    first, is a function of the token alone and no secret.
 * 3. A token is one file, replaced by rename: after a kill -9 the old one
 *    holds or the new one, never both and never none.  A tenant is put
 *    together on a stage.
 * 4. A tenant's names go with its name: as long as there are some, the tenant
 *    cannot be removed, nor one of that name be made, by mistake.
 */
#include "auth.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <strings.h>

#define TOKEN_PREFIX "ark_"
#define DIGITS 64 /* of the random part */
#define USER_MAX 255

static const char hex_digits[] = "0123456789abcdef";

const struct token auth_anyone = {
	.tenant = TENANT_HOST,
	.label = "-",
	.id = "-",
	.scope = SCOPE_ADMIN,
};

/* ---- pure --------------------------------------------------------------- */

bool tenant_ok(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return name[0] >= 'a' && name[0] <= 'z' && len <= TENANT_MAX &&
	       !name[len];
}

static const char *const scopes[] = {
	[SCOPE_NONE] = "none",	 [SCOPE_READ] = "read",
	[SCOPE_EXEC] = "exec",	 [SCOPE_MANAGE] = "manage",
	[SCOPE_ADMIN] = "admin",
};

enum scope scope_parse(const char *word)
{
	for (enum scope s = SCOPE_READ; s <= SCOPE_ADMIN; s++)
		if (strcmp(word, scopes[s]) == 0)
			return s;
	return SCOPE_NONE;
}

const char *scope_word(enum scope scope)
{
	return scopes[scope];
}

bool same_bytes(const void *a, const void *b, size_t len)
{
	const volatile unsigned char *x = a, *y = b;
	unsigned char differs = 0;

	for (size_t i = 0; i < len; i++)
		differs |= x[i] ^ y[i];
	return differs == 0;
}

void to_hex(const unsigned char *data, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = hex_digits[data[i] >> 4];
		out[2 * i + 1] = hex_digits[data[i] & 15];
	}
	out[2 * len] = '\0';
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool from_hex(const char *text, unsigned char *out, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		int high = hex_value(text[2 * i]);
		int low = high < 0 ? -1 : hex_value(text[2 * i + 1]);

		if (low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

/* CRC-32 as of zip, bit by bit: 68 bytes are no reason for a table. */
static uint32_t crc32(const char *data, size_t len)
{
	uint32_t crc = ~0U;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned char)data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
	}
	return ~crc;
}

void token_format(const unsigned char random[32], char token[TOKEN_LEN + 1])
{
	const size_t head = strlen(TOKEN_PREFIX) + DIGITS;

	snprintf(token, TOKEN_LEN + 1, TOKEN_PREFIX);
	to_hex(random, 32, token + strlen(TOKEN_PREFIX));
	snprintf(token + head, TOKEN_LEN + 1 - head, "%08x",
		 crc32(token, head));
}

bool token_ok(const char *token, size_t len)
{
	const size_t head = strlen(TOKEN_PREFIX) + DIGITS;
	unsigned char random[32];
	char right[TOKEN_LEN + 1];
	bool ok;

	if (len != TOKEN_LEN ||
	    memcmp(token, TOKEN_PREFIX, strlen(TOKEN_PREFIX)) != 0 ||
	    !from_hex(token + strlen(TOKEN_PREFIX), random, sizeof(random)))
		return false;
	token_format(random, right);
	ok = same_bytes(token + head, right + head, TOKEN_LEN - head);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(right, sizeof(right));
	return ok;
}

void token_hash(const char *token, unsigned char hash[32])
{
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, (const uint8_t *)token, TOKEN_LEN);
	SHA256Final(hash, &context);
	explicit_bzero(&context, sizeof(context));
}

/* ---- the header --------------------------------------------------------- */

static int base64_value(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

/* The length, or -1: not base64, or longer than `size`. */
static ssize_t from_base64(const char *text, char *out, size_t size)
{
	size_t len = strcspn(text, "="), n = 0;
	uint32_t bits = 0;

	if (strspn(text + len, "=") != strlen(text + len) ||
	    strlen(text + len) > 2 || strlen(text) % 4 != 0)
		return -1;
	for (size_t i = 0; i < len; i++) {
		int value = base64_value(text[i]);

		if (value < 0)
			return -1;
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 == 0)
			continue;
		if (n == size)
			return -1;
		out[n++] = (char)(bits >> (6 - 2 * (i % 4)));
	}
	return (ssize_t)n;
}

/* Bearer or Basic: the token.  The user is what a client happens to have: who
 * it is the token says. */
static bool read_header(const char *value, char token[TOKEN_LEN])
{
	char plain[USER_MAX + 1 + TOKEN_LEN];
	const char *colon;
	ssize_t len;
	size_t n;

	if (strncasecmp(value, "Bearer ", 7) == 0) {
		value += 7 + strspn(value + 7, " ");
		if (strnlen(value, TOKEN_LEN + 1) != TOKEN_LEN)
			return false;
		memcpy(token, value, TOKEN_LEN);
		return true;
	}
	if (strncasecmp(value, "Basic ", 6) != 0)
		return false;
	value += 6 + strspn(value + 6, " ");
	len = from_base64(value, plain, sizeof(plain));
	colon = len < 0 ? NULL : memchr(plain, ':', (size_t)len);
	n = colon ? (size_t)(colon - plain) : 0;
	if (!colon || (size_t)len - n - 1 != TOKEN_LEN)
		return false;
	memcpy(token, colon + 1, TOKEN_LEN);
	explicit_bzero(plain, sizeof(plain));
	return true;
}

const struct token *auth_check(const struct auth_table *table,
			       const char *value, const char **why)
{
	const struct token *found = NULL;
	char token[TOKEN_LEN];
	unsigned char hash[32];

	*why = "no token";
	if (!value || !*value)
		return NULL;
	*why = "not a token";
	if (!read_header(value, token) || !token_ok(token, TOKEN_LEN))
		return NULL;
	*why = "unknown token";
	token_hash(token, hash);
	explicit_bzero(token, sizeof(token));
	for (size_t i = 0; i < table->n; i++)
		if (same_bytes(hash, table->token[i].hash, sizeof(hash)))
			found = &table->token[i];
	return found;
}

/* ---- names -------------------------------------------------------------- */

static bool is_host(const char *tenant)
{
	return strcmp(tenant, TENANT_HOST) == 0;
}

int tenant_name(const char *tenant, const char *kind, const char *name,
		char out[NAME_MAX_LEN + 1])
{
	size_t room = NAME_MAX_LEN;
	int r = check_name(kind, name);

	if (r < 0)
		return r;
	if (!is_host(tenant))
		room -= strlen(tenant) + 1;
	if (strlen(name) > room)
		return fail(EX_USAGE, "bad %s name '%.40s...': longer than %zu",
			    kind, name, room);
	if (is_host(tenant))
		snprintf(out, NAME_MAX_LEN + 1, "%s", name);
	else
		snprintf(out, NAME_MAX_LEN + 1, "%s.%s", tenant, name);
	return 0;
}

const char *tenant_strip(const char *tenant, const char *name)
{
	size_t len = strlen(tenant);

	if (is_host(tenant))
		return name;
	/* What is behind the prefix must be a name that could be asked for. */
	if (strncmp(name, tenant, len) != 0 || name[len] != '.' ||
	    !name_ok(name + len + 1))
		return NULL;
	return name + len + 1;
}

/* ---- the table ---------------------------------------------------------- */

int auth_dir(const char *tenant)
{
	AUTO_CLOSE int all = root_open("auth");

	if (all < 0 || !tenant_ok(tenant)) {
		errno = all < 0 ? EIO : ENOENT;
		return -1;
	}
	return open_dir(all, tenant);
}

/* "SCOPE SHA256 CREATED" */
static bool parse_token(char *text, struct token *token)
{
	char *hash = strchr(text, ' '), *created;
	const char *why;

	created = hash ? strchr(hash + 1, ' ') : NULL;
	if (!created || created - hash - 1 != 64)
		return false;
	*hash++ = '\0';
	*created++ = '\0';
	token->scope = scope_parse(text);
	snprintf(token->id, sizeof(token->id), "%.*s", TOKEN_ID_LEN, hash);
	return token->scope != SCOPE_NONE &&
	       from_hex(hash, token->hash, sizeof(token->hash)) &&
	       parse_num(created, 0, INT64_MAX, &token->created, &why) &&
	       (token->scope != SCOPE_ADMIN || is_host(token->tenant));
}

static int load_token(struct auth_table *table, int dir, const char *tenant,
		      const char *label)
{
	char text[160];
	struct token *more;
	struct token token = {0};

	errno = 0;
	snprintf(token.tenant, sizeof(token.tenant), "%s", tenant);
	snprintf(token.label, sizeof(token.label), "%s", label);
	if (read_value(dir, label, text, sizeof(text)) < 0 ||
	    !parse_token(text, &token)) {
		/* ENOENT: removed since the folder was read. */
		if (errno != ENOENT)
			warn_line("token '%s' of tenant '%s' is damaged", label,
				  tenant);
		return 0;
	}
	more = reallocarray(table->token, table->n + 1, sizeof(*more));
	if (!more)
		return fail_errno(EX_OSERR, "cannot read the tokens");
	table->token = more;
	table->token[table->n++] = token;
	return 0;
}

static int is_label(const struct dirent *entry)
{
	return tenant_ok(entry->d_name);
}

static int load_tenant(const char *tenant, void *data)
{
	AUTO_CLOSE int dir = auth_dir(tenant);
	AUTO_CLOSE int tokens = dir < 0 ? -1 : open_dir(dir, "token");
	struct dirent **list;
	int n, r = 0;

	if (tokens < 0)
		return 0;
	n = scandirat(tokens, ".", &list, is_label, alphasort);
	if (n < 0)
		return fail_errno(EX_OSERR, "cannot list the tokens of '%s'",
				  tenant);
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = load_token(data, tokens, tenant, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return r;
}

int auth_load(struct auth_table *table)
{
	*table = (struct auth_table){0};
	return names_each("auth", load_tenant, table);
}

void auth_free(struct auth_table *table)
{
	free(table->token);
	*table = (struct auth_table){0};
}

int auth_any(void)
{
	AUTO_TABLE struct auth_table table;
	int r = auth_load(&table);

	return r < 0 ? r : table.n > 0;
}
