/*
 * test-num - numbers, sizes and durations that people type, from tables.
 */
#include "tap.h"

#include <limits.h>

#define BAD (-1) /* in a table: must be refused, and say why */
#define KIB (1LL << 10)
#define MIB (1LL << 20)
#define GIB (1LL << 30)
#define TIB (1LL << 40)
#define DAY (86400 * 1000LL)

struct row {
	const char *text;
	long long value;
};

static const struct row numbers[] = {
	/* min 0, max 1000 */
	{"0", 0},
	{"1", 1},
	{"1000", 1000},
	{"007", 7},
	{"", BAD},
	{" ", BAD},
	{" 1", BAD},
	{"1 ", BAD},
	{"+1", BAD},
	{"-1", BAD},
	{"--1", BAD},
	{"-", BAD},
	{"1001", BAD},
	{"0x10", BAD},
	{"1e2", BAD},
	{"1.0", BAD},
	{"1,0", BAD},
	{"ten", BAD},
	{"1\n", BAD},
	{"\t1", BAD},
	{"\xd9\xa1", BAD},
	{"99999999999999999999999", BAD},
	{"-99999999999999999999999", BAD},
	{"9223372036854775808", BAD},
};

static const struct row sizes[] = {
	{"0", 0},
	{"1", 1},
	{"123", 123},
	{"123B", 123},
	{"1K", KIB},
	{"1k", KIB},
	{"1KiB", KIB},
	{"1KB", KIB},
	{"1Ki", KIB},
	{"64K", 64 * KIB},
	{"512M", 512 * MIB},
	{"512m", 512 * MIB},
	{"512MiB", 512 * MIB},
	{"4G", 4 * GIB},
	{"4g", 4 * GIB},
	{"1T", TIB},
	{"8388607T", 8388607 * TIB},
	{"9223372036854775807", LLONG_MAX},
	{"", BAD},
	{"M", BAD},
	{"-1", BAD},
	{"-1M", BAD},
	{"+1M", BAD},
	{" 1M", BAD},
	{"1M ", BAD},
	{"1 M", BAD},
	{"1 ", BAD},
	{"5 ", BAD},
	{"1  ", BAD},
	{" ", BAD},
	{"1@", BAD},
	{"1 i", BAD},
	{"1 B", BAD},
	{"1MM", BAD},
	{"1MiiB", BAD},
	{"1X", BAD},
	{"1iB", BAD},
	{"1i", BAD},
	{"0x10", BAD},
	{"1e9", BAD},
	{"1M\n", BAD},
	{"1.5G", BAD},
	{"1BB", BAD},
	{"1KiBx", BAD},
	{"8388608T", BAD},
	{"9223372036854775808", BAD},
	{"99999999999999999999999999G", BAD},
	{"18446744073709551615", BAD},
	{"1\xc2\xb5", BAD},
	{"1,5G", BAD},
};

static const struct row durations[] = {
	{"0", 0},
	{"2", 2000},
	{"1.5", 1500},
	{"30s", 30000},
	{"500ms", 500},
	{"0.5s", 500},
	{"5m", 300000},
	{"1.5m", 90000},
	{"1h", 3600000},
	{"1d", DAY},
	{"0.001", 1},
	{"0.0001", 0},
	{"1.999999999999999999999", 1999},
	{"3652d", 3652 * DAY},
	{"", BAD},
	{"s", BAD},
	{"-1", BAD},
	{"+1", BAD},
	{" 1", BAD},
	{"1 ", BAD},
	{"1 s", BAD},
	{".5", BAD},
	{"1.", BAD},
	{"1.s", BAD},
	{"1..5", BAD},
	{"1.5.5", BAD},
	{"1S", BAD},
	{"1M", BAD},
	{"1w", BAD},
	{"1sm", BAD},
	{"1e3", BAD},
	{"inf", BAD},
	{"nan", BAD},
	{"1s\n", BAD},
	{"3653d", BAD},
	{"999999999999999999999999999", BAD},
	{"99999999999999999999999999d", BAD},
	{"18446744073709551616s", BAD},
};

static void check(const char *what, const struct row *row, bool good,
		  long long value, const char *why)
{
	if (row->value == BAD)
		ok(!good && why && *why && !strchr(why, '\n'),
		   "%s '%s' is refused", what, row->text);
	else if (!ok(good && value == row->value, "%s '%s' is %lld", what,
		     row->text, row->value))
		printf("# got: %d, %lld\n", good, value);
}

static void test_numbers(void)
{
	const char *why;
	long long n;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		bool good = parse_num(numbers[i].text, 0, 1000, &n, &why);

		check("number", &numbers[i], good, n, why);
	}
	ok(parse_num("-5", -5, 5, &n, &why) && n == -5, "the least is good");
	ok(!parse_num("-6", -5, 5, &n, &why) && strstr(why, "small"),
	   "below the least: too small");
	ok(!parse_num("6", -5, 5, &n, &why) && strstr(why, "large"),
	   "above the most: too large");
	ok(parse_num("-9223372036854775808", LLONG_MIN, LLONG_MAX, &n, &why) &&
		   n == LLONG_MIN,
	   "the smallest of all");
	ok(!parse_num("-9223372036854775809", LLONG_MIN, LLONG_MAX, &n, &why),
	   "one below the smallest of all");
}

static void test_sizes(void)
{
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const char *why = NULL;
		uint64_t bytes = 0;
		bool good = parse_size(sizes[i].text, &bytes, &why);

		check("size", &sizes[i], good, (long long)bytes, why);
	}
}

static void test_durations(void)
{
	for (size_t i = 0; i < ARRAY_LEN(durations); i++) {
		const char *why = NULL;
		uint64_t ms = 0;
		bool good = parse_duration(durations[i].text, &ms, &why);

		check("duration", &durations[i], good, (long long)ms, why);
	}
}

static void test_formats(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} shown[] = {
		{0, "0B"},	 {1023, "1023B"},
		{1024, "1K"},	 {1536, "1.5K"},
		{10240, "10K"},	 {512 * MIB, "512M"},
		{4 * GIB, "4G"}, {3 * GIB / 2, "1.5G"},
		{TIB, "1T"},	 {UINT64_MAX, "16383P"},
	};
	static const struct {
		uint64_t seconds;
		const char *text;
	} ages[] = {
		{0, "0s"},	   {119, "119s"},     {120, "2m"},
		{7199, "119m"},	   {7200, "2h"},      {48 * 3600 - 1, "47h"},
		{48 * 3600, "2d"}, {9 * 86400, "9d"},
	};
	static const struct {
		long long seconds;
		const char *text;
	} times[] = {
		{0, "1970-01-01T00:00:00Z"},
		{1796097906, "2026-12-01T04:05:06Z"},
		{253402300799, "9999-12-31T23:59:59Z"},
		{253402300800, ""},
		{INT64_MAX, ""},
	};
	char out[UTC_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		format_utc(out, times[i].seconds);
		is_str(out, times[i].text, times[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		format_size(out, 8, shown[i].bytes);
		is_str(out, shown[i].text, shown[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(ages); i++) {
		format_age(out, sizeof(out), ages[i].seconds);
		is_str(out, ages[i].text, ages[i].text);
	}
	memset(out, 'x', sizeof(out));
	format_size(out, 3, 512 * MIB);
	ok(strlen(out) == 2 && out[3] == 'x', "a small buffer is kept to");
}

int main(void)
{
	test_numbers();
	test_sizes();
	test_durations();
	test_formats();
	return done();
}
