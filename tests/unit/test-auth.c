/*
 * test-auth - tokens: their form, whom they name, who may have which, and what
 * becomes of files that are damaged.
 */
#include "tap.h"

#include "auth.h"
#include "quota.h"

#include <sys/stat.h>

static int dir; /* holds root and run */
static struct auth_table table;
static const char *why;

static void fresh(void)
{
	remove_tree(dir, "root");
	remove_tree(dir, "run");
	mkdirat(dir, "root", 0700);
}

static void load(void)
{
	auth_free(&table);
	is_num(auth_load(&table), 0, "load");
}

/* ---- the form ----------------------------------------------------------- */

static void test_form(void)
{
	/* Digits out of Python: zlib.crc32(b"ark_" + b"00" * 32). */
	static const char zero[] = "ark_00000000000000000000000000000000"
				   "00000000000000000000000000000000"
				   "3e41ddce";
	static const char all[] = "ark_ffffffffffffffffffffffffffffffff"
				  "ffffffffffffffffffffffffffffffff"
				  "23f566de";
	unsigned char random[32] = {0};
	char token[TOKEN_LEN + 1], bad[TOKEN_LEN + 2];
	size_t accepted = 0;

	token_format(random, token);
	is_str(token, zero, "zeros");
	memset(random, 0xff, sizeof(random));
	token_format(random, token);
	is_str(token, all, "ones");
	is_num((long long)strlen(token), TOKEN_LEN, "length");
	ok(token_ok(token, TOKEN_LEN), "is one");
	ok(!token_ok(token, TOKEN_LEN - 1), "cut");
	/* Every other byte in every place. */
	for (size_t i = 0; i < TOKEN_LEN; i++)
		for (int c = 0; c < 256; c++) {
			memcpy(bad, token, sizeof(token));
			bad[i] = (char)c;
			accepted += token_ok(bad, TOKEN_LEN);
		}
	is_num((long long)accepted, TOKEN_LEN, "none with one byte changed");
}

static void test_words(void)
{
	static const char *const good[] = {"a", "abc", "a-1",
					   "abcdefghijklmnopqrst"};
	static const char *const bad[] = {
		"",    "A",  "1a",  "-a",  "a.b",      "a_b",
		"a/b", "..", "a b", "a\n", "\xc3\xa9", "abcdefghijklmnopqrstu"};

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(tenant_ok(good[i]), "tenant '%s'", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!tenant_ok(bad[i]), "no tenant '%s'", bad[i]);
	for (enum scope s = SCOPE_READ; s <= SCOPE_ADMIN; s++)
		is_num(scope_parse(scope_word(s)), s, scope_word(s));
	is_num(scope_parse("none"), SCOPE_NONE, "none is no scope");
	is_num(scope_parse(""), SCOPE_NONE, "nor is nothing");
	ok(same_bytes("abc", "abc", 3) && !same_bytes("abc", "abd", 3) &&
		   !same_bytes("xbc", "abc", 3) && same_bytes("x", "y", 0),
	   "same_bytes");
}

static void test_names(void)
{
	char name[NAME_MAX_LEN + 1], longest[NAME_MAX_LEN + 2];

	is_num(tenant_name("alice", "sandbox", "web", name), 0, "a name");
	is_str(name, "alice.web", "with its prefix");
	is_str(tenant_strip("alice", name), "web", "and without");
	is_num(tenant_name("host", "sandbox", "web", name), 0, "of the host");
	is_str(name, "web", "as it is");
	is_str(tenant_strip("host", "alice.web"), "alice.web",
	       "all names are the host's");
	ok(!tenant_strip("alice", "alice") &&
		   !tenant_strip("alice", "alice.") &&
		   !tenant_strip("alice", "alicex.web") &&
		   !tenant_strip("alice", "bob.alice.web") &&
		   !tenant_strip("alice", "alice.-x") &&
		   !tenant_strip("ali", "alice.web"),
	   "names of others");
	is_str(tenant_strip("alice", "alice.bob.x"), "bob.x",
	       "a name may have dots");
	is_num(tenant_name("alice", "sandbox", "../x", name), -EX_USAGE, "bad");
	ok(told("bad sandbox name '../x'"), "told without the prefix");
	memset(longest, 'x', sizeof(longest));
	longest[57] = '\0';
	is_num(tenant_name("alice", "snapshot", longest, name), 0, "63 in all");
	is_num((long long)strlen(name), 63, "are 63");
	longest[57] = 'x';
	longest[58] = '\0';
	is_num(tenant_name("alice", "snapshot", longest, name), -EX_USAGE,
	       "64 in all");
	ok(told("longer than 57"), "told with the room there is");
}

/* ---- the header --------------------------------------------------------- */

static void encode(const char *text, char out[600])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = strlen(text), n = 0;

	for (size_t i = 0; i < len; i += 3) {
		uint32_t bits = 0;

		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 |
			       (i + j < len ? (unsigned char)text[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			out[n++] = i + j > len
					   ? '='
					   : digits[bits >> (18 - 6 * j) & 63];
	}
	out[n] = '\0';
}

static const struct token *basic(const char *user, const char *token)
{
	char plain[400], code[600], header[620];

	snprintf(plain, sizeof(plain), "%s:%s", user, token);
	encode(plain, code);
	snprintf(header, sizeof(header), "Basic %s", code);
	return auth_check(&table, header, &why);
}

static const struct token *bearer(const char *word, const char *token)
{
	char header[200];

	snprintf(header, sizeof(header), "%s%s", word, token);
	return auth_check(&table, header, &why);
}

static void test_bad_headers(const char *token)
{
	static const char *const headers[] = {
		"x",
		"Bearer",
		"Bearer ",
		"Bearer x",
		"Basic",
		"Basic ",
		"Basic =",
		"Basic ====",
		"Basic !!!!",
		"Basic OjpA",
		"Basic QQ=A",
		"Digest x",
		"Bearer Bearer",
		"Basic QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
		"FBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQU"
		"FBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB",
	};
	unsigned char other[32] = {1};
	char unknown[TOKEN_LEN + 1], user[257];

	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		ok(!auth_check(&table, headers[i], &why) &&
			   strcmp(why, "not a token") == 0,
		   "header '%.40s'", headers[i]);
	ok(!auth_check(&table, NULL, &why) && strcmp(why, "no token") == 0 &&
		   !auth_check(&table, "", &why) &&
		   strcmp(why, "no token") == 0,
	   "none");
	token_format(other, unknown);
	ok(!bearer("Bearer ", unknown) && strcmp(why, "unknown token") == 0,
	   "an unknown one");
	ok(!bearer("Bearer  x", token) && !bearer("", token) &&
		   !bearer("Bearer\t", token),
	   "a good one in a bad header");
	ok(!basic("a:b", token), "a colon is the end of the user");
	memset(user, 'u', sizeof(user));
	user[255] = '\0';
	ok(basic(user, token), "a user of 255 bytes");
	user[255] = 'u';
	user[256] = '\0';
	ok(!basic(user, token), "and of 256");
}

static void test_header(void)
{
	char token[TOKEN_LEN + 1], read[TOKEN_LEN + 1], longer[100];
	const struct token *t;

	fresh();
	is_num(auth_add("alice", "main", SCOPE_MANAGE, NULL, false, token), 0,
	       "add");
	is_num(auth_add("alice", "ci", SCOPE_READ, NULL, false, read), 0,
	       "another");
	load();
	is_num((long long)table.n, 2, "two tokens");
	t = bearer("Bearer ", token);
	ok(t && strcmp(t->tenant, "alice") == 0 &&
		   strcmp(t->label, "main") == 0 && t->scope == SCOPE_MANAGE &&
		   strlen(t->id) == TOKEN_ID_LEN,
	   "bearer");
	t = bearer("bEARER   ", read);
	ok(t && strcmp(t->label, "ci") == 0 && t->scope == SCOPE_READ,
	   "the scheme in any case, blanks behind it");
	ok(basic("alice", token) && basic("", token) && basic("x y", token),
	   "basic, whatever the user");
	test_bad_headers(token);
	snprintf(longer, sizeof(longer), "%s0", token);
	ok(!bearer("Bearer ", longer) && !basic("alice", longer), "too long");
	longer[TOKEN_LEN - 1] = '\0';
	ok(!bearer("Bearer ", longer) && !basic("alice", longer), "too short");
	ok(told_nothing(), "all of it quietly");
}

/* ---- make, replace, remove ---------------------------------------------- */

static void test_changes(void)
{
	char token[TOKEN_LEN + 1], next[TOKEN_LEN + 1];

	fresh();
	is_num(auth_any(), 0, "no tokens");
	is_num(auth_add("alice", "main", SCOPE_EXEC, "sandboxes=2", false,
			token),
	       0, "add");
	is_num(auth_any(), 1, "some");
	is_num(auth_add("alice", "main", SCOPE_EXEC, NULL, false, next),
	       -EX_CANTCREAT, "the same label");
	ok(told("has a token 'main'"), "told");
	is_num(auth_add("alice", "b", SCOPE_EXEC, "cpus=1", false, next),
	       -EX_CANTCREAT, "a quota for a tenant that is there");
	ok(told("ark auth quota"), "told");
	is_num(auth_add("bob", "main", SCOPE_ADMIN, NULL, false, next),
	       -EX_USAGE, "an admin who is not the host");
	ok(told("'host'"), "told");
	is_num(auth_add("bob", "main", SCOPE_READ, "cpus=x", false, next),
	       -EX_USAGE, "a bad quota");
	ok(told("cpus: not a number"), "told");
	is_num(auth_rotate("alice", "main", next), 0, "rotate");
	load();
	ok(!bearer("Bearer ", token) && bearer("Bearer ", next),
	   "the old one is refused, the new one not");
	is_num(bearer("Bearer ", next)->scope, SCOPE_EXEC, "the same scope");
	is_num(auth_rotate("alice", "none", token), -EX_NOINPUT, "no such");
	ok(told("no token 'none'"), "told");
	is_num(auth_rotate("eve", "main", token), -EX_NOINPUT, "no tenant");
	ok(told("no such tenant 'eve'"), "told");
	is_num(auth_remove("alice", "none", false), -EX_NOINPUT, "no such");
	ok(told("no token 'none'"), "told");
	is_num(auth_remove("alice", "main", false), 0, "remove");
	is_num(auth_any(), 0, "no tokens");
	is_num(auth_remove("alice", NULL, false), 0, "remove the tenant");
	is_num(auth_remove("alice", NULL, false), -EX_NOINPUT, "again");
	ok(told("no such tenant"), "told");
	ok(faccessat(dir, "run/tenant/alice", F_OK, 0) < 0, "nothing left");
}

static void test_heirs(void)
{
	char token[TOKEN_LEN + 1];

	fresh();
	is_num(auth_add("alice", "main", SCOPE_EXEC, NULL, false, token), 0,
	       "add");
	mkdirat(dir, "root/snap/alice.s", 0700);
	is_num(auth_remove("alice", NULL, false), -EX_UNAVAILABLE,
	       "a tenant with a snapshot");
	ok(told("1 snapshots"), "told");
	is_num(auth_remove("alice", NULL, true), 0, "by force");
	is_num(auth_add("alice", "main", SCOPE_EXEC, NULL, false, token),
	       -EX_UNAVAILABLE, "a tenant that would inherit it");
	ok(told("alice.*"), "told");
	is_num(auth_add("alic", "main", SCOPE_EXEC, NULL, false, token), 0,
	       "one with a name like it");
	is_num(auth_add("alice", "main", SCOPE_EXEC, NULL, true, token), 0,
	       "by force");
	is_num(auth_add("host", "main", SCOPE_ADMIN, NULL, false, token), 0,
	       "the host");
	is_num(auth_remove("host", NULL, false), 0, "inherits nothing");
}

static void test_damaged(void)
{
	static const char *const lines[] = {
		"",
		"manage",
		"manage 00 1",
		"manage 0000000000000000000000000000000000000000000000000000"
		"00000000000g 1",
		"none 000000000000000000000000000000000000000000000000000000"
		"0000000000 1",
		"manage 0000000000000000000000000000000000000000000000000000"
		"000000000000 x",
		"admin 00000000000000000000000000000000000000000000000000000"
		"00000000000 1",
		"manage 0000000000000000000000000000000000000000000000000000"
		"000000000000 1\nmanage",
	};
	char token[TOKEN_LEN + 1];

	fresh();
	auth_add("alice", "main", SCOPE_EXEC, NULL, false, token);
	auth_add("bob", "main", SCOPE_EXEC, NULL, false, token);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		put_file(dir, "root/auth/alice/token/main", lines[i],
			 strlen(lines[i]));
		load();
		ok(told("token 'main' of tenant 'alice' is damaged"),
		   "line %zu", i);
		is_num((long long)table.n, 1, "the other one stays");
	}
	mkdirat(dir, "root/auth/UPPER", 0700);
	put_link("/etc", dir, "root/auth/link");
	remove_tree(dir, "root/auth/alice/token/main");
	put_link("../../bob/token/main", dir, "root/auth/alice/token/main");
	load();
	ok(told("damaged"), "a link is no token");
	is_num((long long)table.n, 1, "names that are none");
}

int main(void)
{
	catch_stderr();
	dir = tap_ark();
	test_form();
	test_words();
	test_names();
	test_header();
	test_changes();
	test_heirs();
	test_damaged();
	auth_free(&table);
	return done();
}
