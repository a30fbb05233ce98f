/*
 * test-name - what a name is, and that a bad one is told in one line.
 */
#include "tap.h"

#define A10 "aaaaaaaaaa"
#define A60 A10 A10 A10 A10 A10 A10

static const char *const good[] = {
	"a",   "Z",  "0",  "9a", "vm",	 "web-1", "a.b",
	"a_b", "a-", "a.", "a_", "a..b", "A-._z", A60 "aaa",
};

static const char *const bad[] = {
	"",
	".",
	"..",
	"../x",
	"a/b",
	"/",
	"/a",
	"a/",
	"-",
	"-rf",
	"--help",
	"_a",
	".a",
	" ",
	"a b",
	"a\n",
	"\na",
	"a\tb",
	"a\rb",
	"a\x1b[31mb",
	"%2e%2e",
	"a%b",
	"\xc3\xa9",
	"a\xc3\xa9",
	"\xff",
	"a\x7f",
	"a:b",
	"a,b",
	"a=b",
	"a@b",
	"a\\b",
	"a;b",
	"a|b",
	"a&b",
	"a$b",
	"a`b`",
	"a'b",
	"a\"b",
	"a*b",
	"a?b",
	"a[b]",
	"~",
	"a~",
	"#a",
	"a#",
	"a!b",
	"\xef\xbc\x8f",
	A60 "aaaa",
	A60 A60 A60 A60 A60,
};

static void test_tables(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		ok(name_ok(good[i]), "good: %s", good[i]);
		ok(check_name("thing", good[i]) == 0 && told_nothing(),
		   "nothing is told about %s", good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ok(!name_ok(bad[i]), "bad: '%.70s'", bad[i]);
		is_num(check_name("thing", bad[i]), -EX_USAGE, "is 64");
		ok(told("bad thing name"), "told in one clean line");
	}
}

/* Every byte, first and later, against the rule written down once more. */
static void test_every_byte(void)
{
	int wrong = 0;

	for (int c = 1; c < 256; c++) {
		bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
			     (c >= 'a' && c <= 'z');
		bool later = alnum || c == '_' || c == '.' || c == '-';
		const char first[] = {(char)c, '\0'};
		const char second[] = {'a', (char)c, '\0'};

		wrong += name_ok(first) != alnum;
		wrong += name_ok(second) != later;
	}
	is_num(wrong, 0, "every byte as the first and as the second");
}

int main(void)
{
	catch_stderr();
	test_tables();
	test_every_byte();
	return done();
}
