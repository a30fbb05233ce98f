/*
 * ram-play.h - processes that play a VMM, for the tests of ram.c.
 */
#ifndef RAM_PLAY_H
#define RAM_PLAY_H

#include "tap.h"

#include "ram.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PAGE ((size_t)4096)
#define SIZE (1021 * PAGE) /* no multiple of what is read at a time */

static int dir;
static struct ram_stats stats;

/* What a VMM does with the memory that it was given, before it pauses; the
 * mapping that it then claims to be its memory, or NULL. */
typedef char *play(int base);

static char *map_piece(char *at, size_t len, int flags, int base, size_t from)
{
	char *m =
		mmap(at, len, PROT_READ | PROT_WRITE, flags, base, (off_t)from);

	if (m == MAP_FAILED)
		_exit(1);
	return m;
}

static char *map(int base, int flags)
{
	return map_piece(NULL, SIZE, flags, base, 0);
}

/* Start one.  What it sees as its memory is in the file "seen". */
static struct proc start(play *vmm, int base)
{
	struct proc p = {0};
	char byte;
	int up[2];

	if (pipe(up) < 0)
		exit(99);
	unlinkat(dir, "seen", 0);
	p.pid = fork();
	if (p.pid == 0) {
		char *memory;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		memory = vmm(base);
		if (memory)
			put_file(dir, "seen", memory, SIZE);
		if (write(up[1], "u", 1) == 1)
			pause();
		_exit(0);
	}
	close(up[1]);
	if (read(up[0], &byte, 1) != 1 || proc_of(p.pid, &p) < 0)
		exit(99);
	close(up[0]);
	return p;
}

static void stop(const struct proc *p)
{
	kill(p->pid, SIGKILL);
	waitpid(p->pid, NULL, 0);
}

static int save_as(play *vmm, int base, const char *name)
{
	struct proc p = start(vmm, base);
	int r = ram_save(&p, base, SIZE, dir, name, &stats);

	stop(&p);
	return r;
}

static bool same(const char *a, const char *b)
{
	static char one[SIZE + 1], two[SIZE + 1];
	AUTO_CLOSE int x = openat(dir, a, O_RDONLY | O_CLOEXEC);
	AUTO_CLOSE int y = openat(dir, b, O_RDONLY | O_CLOEXEC);

	return read_full(x, one, sizeof(one)) == (ssize_t)SIZE &&
	       read_full(y, two, sizeof(two)) == (ssize_t)SIZE &&
	       memcmp(one, two, SIZE) == 0;
}

static long long blocks(const char *name)
{
	struct stat st = {0};

	fstatat(dir, name, &st, 0);
	return st.st_blocks;
}

/* ---- their memory -------------------------------------------------------- */

#define DATA_PAGES 233 /* that write_pattern() leaves not zero */

/* Runs of pages, single ones, one byte in a page, and zeros written out. */
static void write_pattern(char *m)
{
	for (size_t i = 0; i < 200; i++)
		memset(m + (300 + i) * PAGE, (int)i + 1, PAGE);
	for (size_t i = 0; i < 32; i++)
		m[(600 + 2 * i) * PAGE + i * 131] = 'x';
	memset(m + 800 * PAGE, 0, 100 * PAGE);
	m[SIZE - 1] = 'e';
}

static int with_pattern(void)
{
	int base = ram_create(SIZE);
	char *m = map(base, MAP_SHARED);

	write_pattern(m);
	munmap(m, SIZE);
	return base;
}

/* Saved over the pattern, with so many pages of its own. */
static void test_saved(play *vmm, const char *what, long long own)
{
	AUTO_CLOSE int base = with_pattern();

	is_num(save_as(vmm, base, "ram"), 0, what);
	ok(same("ram", "seen"), "%s: it is what the VMM sees", what);
	is_num((long long)stats.private_pages, own, "pages of its own");
	is_num(blocks("ram"), (long long)stats.bytes / 512, "zeros are holes");
	unlinkat(dir, "ram", 0);
}

#endif
