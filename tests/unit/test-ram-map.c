/*
 * test-ram-map - how a VMM may have mapped its memory, and how it may not.
 */
#include "ram-play.h"

/* ---- honest ones -------------------------------------------------------- */

/* Below and above a gap, in the order that the kernel likes: what the VMM sees
 * as one memory is put together for the comparison. */
static char *scatter(int base, int flags, const size_t *cut, size_t n)
{
	char *whole = malloc(SIZE);

	for (size_t i = 0; i < n; i++) {
		size_t from = cut[i] * PAGE, len = cut[i + 1] * PAGE - from;
		char *m = map_piece(NULL, len, flags, base, from);

		m[1] = 's';
		m[len - 1] = 't';
		memcpy(whole + from, m, len);
	}
	return whole;
}

static char *play_scattered(int base)
{
	static const size_t cut[] = {0, 333, 700, SIZE / PAGE};

	return scatter(base, MAP_PRIVATE, cut, 3);
}

static char *play_scattered_shared(int base)
{
	static const size_t cut[] = {0, 512, SIZE / PAGE};

	return scatter(base, MAP_SHARED, cut, 2);
}

/* ---- liars -------------------------------------------------------------- */

static char *play_half(int base)
{
	map_piece(NULL, SIZE / 2, MAP_PRIVATE, base, 0);
	return NULL;
}

static char *play_hole(int base)
{
	munmap(map(base, MAP_PRIVATE) + 100 * PAGE, 100 * PAGE);
	return NULL;
}

static char *play_tail(int base)
{
	munmap(map(base, MAP_PRIVATE), 100 * PAGE);
	return NULL;
}

static char *play_twice(int base)
{
	map(base, MAP_PRIVATE);
	map_piece(NULL, PAGE, MAP_PRIVATE, base, 0);
	return NULL;
}

static char *play_mixed(int base)
{
	char *m = map(base, MAP_PRIVATE);

	map_piece(m + 50 * PAGE, PAGE, MAP_SHARED | MAP_FIXED, base, 50 * PAGE);
	return NULL;
}

static char *play_overlap(int base)
{
	map_piece(NULL, 600 * PAGE, MAP_PRIVATE, base, 0);
	map_piece(NULL, SIZE - 599 * PAGE, MAP_PRIVATE, base, 599 * PAGE);
	return NULL;
}

static char *play_crumbs(int base)
{
	static const size_t cut[] = {0,	  100, 200, 300, 400,
				     500, 600, 700, 800, SIZE / PAGE};

	free(scatter(base, MAP_PRIVATE, cut, 9));
	return NULL;
}

static char *play_other(int base)
{
	(void)base;
	map(ram_create(SIZE), MAP_PRIVATE);
	return NULL;
}

static const struct {
	play *vmm;
	const char *what, *told;
} liars[] = {
	{play_other, "another memfd of that name", "it is not mapped"},
	{play_half, "a short mapping", "it is mapped in part"},
	{play_hole, "a hole in the mapping", "it is mapped in part"},
	{play_tail, "its start unmapped", "it is mapped in part"},
	{play_twice, "a page mapped twice", "it is mapped twice"},
	{play_overlap, "a page in two pieces", "it is mapped twice"},
	{play_crumbs, "nine pieces", "it is mapped in too many pieces"},
	{play_mixed, "one page shared", "it is mapped half shared"},
};

static void test_liars(void)
{
	for (size_t i = 0; i < ARRAY_LEN(liars); i++) {
		AUTO_CLOSE int base = with_pattern();

		is_num(save_as(liars[i].vmm, base, "ram"), -EX_UNAVAILABLE,
		       liars[i].what);
		ok(told(liars[i].told), "it is told");
		ok(faccessat(dir, "ram", F_OK, 0) < 0, "there is no file");
	}
}

int main(void)
{
	progname = "test";
	dir = tap_dir();
	catch_stderr();
	test_saved(play_scattered, "three pieces", 6);
	test_saved(play_scattered_shared, "two shared pieces", 0);
	test_liars();
	return done();
}
