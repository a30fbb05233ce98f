/*
 * num.c - numbers, sizes and durations that people type.  Strict: the whole
 * text must be a number, and the reason of a refusal is told.
 */
#include "ark.h"

#include <errno.h>

bool parse_num(const char *text, long long min, long long max, long long *out,
	       const char **why)
{
	const char *digits = text + (text[0] == '-');
	char *end;

	*why = "not a number";
	if (digits[0] < '0' || digits[0] > '9')
		return false;
	errno = 0;
	*out = strtoll(text, &end, 10);
	if (*end)
		return false;
	*why = "too large";
	if (errno == ERANGE || *out > max)
		return false;
	*why = "too small";
	return *out >= min;
}

/* The power of 1024 that a suffix such as "M", "MiB" or "" stands for; -1. */
static int size_shift(const char *suffix)
{
	static const char units[] = "KkMmGgTt";
	size_t unit = strcspn(units, (char[]){*suffix, '\0'});
	int shift = 0;

	if (*suffix && units[unit]) {
		shift = 10 * ((int)unit / 2 + 1);
		suffix++;
		if (*suffix == 'i')
			suffix++;
	}
	if (*suffix == 'B')
		suffix++;
	return *suffix ? -1 : shift;
}

bool parse_size(const char *text, uint64_t *bytes, const char **why)
{
	size_t digits = strspn(text, "0123456789");
	char number[24];
	long long value;
	int shift = size_shift(text + digits);

	*why = "not a size (try 512M or 4G)";
	if (digits == 0 || digits >= sizeof(number) || shift < 0)
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!parse_num(number, 0, INT64_MAX >> shift, &value, why))
		return false;
	*bytes = (uint64_t)value << shift;
	return true;
}

/* Milliseconds in one unit; 0 when there is no such unit. */
static uint64_t duration_unit(const char *suffix)
{
	static const struct {
		const char *name;
		uint64_t ms;
	} units[] = {
		{"", 1000},   {"ms", 1},      {"s", 1000},
		{"m", 60000}, {"h", 3600000}, {"d", 86400000},
	};

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(suffix, units[i].name) == 0)
			return units[i].ms;
	return 0;
}

bool parse_duration(const char *text, uint64_t *ms, const char **why)
{
	const uint64_t ten_years = 3652ULL * 86400000;
	uint64_t whole = 0, fraction = 0, scale = 1, unit;
	const char *s = text;

	*why = "not a duration (try 30s, 5m or 1h)";
	if (*s < '0' || *s > '9')
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		whole = whole * 10 + (uint64_t)(*s - '0');
		if (whole > ten_years)
			whole = ten_years + 1;
	}
	if (*s == '.') {
		if (s[1] < '0' || s[1] > '9')
			return false;
		for (s++; *s >= '0' && *s <= '9'; s++) {
			if (scale >= 1000000)
				continue;
			fraction = fraction * 10 + (uint64_t)(*s - '0');
			scale *= 10;
		}
	}
	unit = duration_unit(s);
	if (unit == 0)
		return false;
	*why = "too long (10 years at most)";
	if (whole > ten_years / unit)
		return false;
	*ms = whole * unit + fraction * unit / scale;
	return true;
}

void format_size(char *out, size_t size, uint64_t bytes)
{
	static const char units[] = "BKMGTP";
	uint64_t whole = bytes, rest = 0;
	size_t unit = 0;

	while (whole >= 1024 && unit + 2 < sizeof(units)) {
		rest = (whole % 1024) * 10 / 1024;
		whole /= 1024;
		unit++;
	}
	if (whole < 10 && rest)
		snprintf(out, size, "%u.%u%c", (unsigned)whole, (unsigned)rest,
			 units[unit]);
	else
		snprintf(out, size, "%u%c", (unsigned)whole, units[unit]);
}

void format_age(char *out, size_t size, uint64_t seconds)
{
	if (seconds < 120)
		snprintf(out, size, "%us", (unsigned)seconds);
	else if (seconds < 120 * 60)
		snprintf(out, size, "%um", (unsigned)(seconds / 60));
	else if (seconds < 48 * 3600)
		snprintf(out, size, "%uh", (unsigned)(seconds / 3600));
	else
		snprintf(out, size, "%ud", (unsigned)(seconds / 86400));
}

void format_utc(char out[UTC_SIZE], long long seconds)
{
	const time_t t = (time_t)seconds;
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
	    strftime(out, UTC_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		out[0] = '\0';
}
