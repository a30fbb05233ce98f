/*
 * ram.c - the memory of a guest: made, saved, loaded.
 *
 * Saving reads from a VMM that its guest may have taken over:
 *
 * 1. What the VMM says of itself decides nothing about how much is read or
 *    where it goes: the size is ours, and the mappings of the memfd must hold
 *    each of its bytes once, in a few pieces (a VMM may leave a gap below
 *    4 GiB), shared or private all of them.  Anything else is refused.
 * 2. All comes through descriptors of one process: its folder in /proc is
 *    opened first and compared with pid and start time after that, and what is
 *    opened below it stays with that process, or fails.
 * 3. A page that cannot be read is a failure.  Zeros are what was read as
 *    zeros, or what neither the memfd nor the VMM has a page for.
 * 4. Nothing of the memfd is mapped here: the VMM could cut it short, and a
 *    mapping would kill us where pread(2) returns less.
 * 5. A VMM that goes on running, or changes its mappings while we read, gets a
 *    torn snapshot of itself, of bytes that it could have put there anyhow.
 *    Reads can be made to wait for it, but always killably: who calls this
 *    has a lease that ends.
 */
#include "ram-map.h"
#include "ram.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define PAGE ((size_t)4096)
#define PAGES ((size_t)256) /* at a time: what a second-level cache holds */
#define CHUNK (PAGES * PAGE)
#define SEALS (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

/* Of an entry in /proc/PID/pagemap. */
#define PAGEMAP_PRESENT (1ULL << 63)
#define PAGEMAP_SWAPPED (1ULL << 62)
#define PAGEMAP_OF_FILE (1ULL << 61)

int ram_create(uint64_t size)
{
	AUTO_CLOSE int fd =
		memfd_create("ark-ram", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return -1;
	return steal_fd(&fd);
}

/* ---- extents ------------------------------------------------------------ */

/* Where a sparse file has data, asked for with rising offsets. */
struct extents {
	int fd;
	off_t size;
	off_t data, hole; /* the last one found */
};

/* Find the first extent that ends after `at`; at the end of the file an empty
 * one.  -1 and errno. */
static int extent_at(struct extents *e, off_t at)
{
	if (at < e->hole)
		return 0;
	e->data = lseek(e->fd, at, SEEK_DATA);
	if (e->data < 0 && errno != ENXIO)
		return -1;
	if (e->data < 0 || e->data >= e->size) {
		e->data = e->hole = e->size;
		return 0;
	}
	e->hole = lseek(e->fd, e->data, SEEK_HOLE);
	if (e->hole > e->size)
		e->hole = e->size;
	return e->hole < 0 ? -1 : 0;
}

/* ---- load --------------------------------------------------------------- */

/* Bytes [at, end) in the kernel, page cache to page cache. */
static int load_extent(int file, int ram, off_t at, off_t end)
{
	if (lseek(ram, at, SEEK_SET) < 0)
		return -1;
	while (at < end) {
		ssize_t n = sendfile(ram, file, &at, (size_t)(end - at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* somebody cut the file short */
		if (n <= 0)
			return -1;
	}
	return 0;
}

static int load_data(int file, int ram, off_t size)
{
	struct extents e = {.fd = file, .size = size};

	for (off_t at = 0; at < size; at = e.hole)
		if (extent_at(&e, at) < 0 ||
		    load_extent(file, ram, e.data, e.hole) < 0)
			return -1;
	return 0;
}

int ram_load(int dir, const char *name, uint64_t size)
{
	AUTO_CLOSE int file = openat(
		dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	AUTO_CLOSE int ram = -1;
	struct stat st;

	if (file < 0 || fstat(file, &st) < 0)
		return -1;
	errno = EINVAL;
	if (!S_ISREG(st.st_mode) || size % PAGE || size > INT64_MAX ||
	    st.st_size != (off_t)size)
		return -1;
	ram = ram_create(size);
	if (ram < 0 || load_data(file, ram, (off_t)size) < 0)
		return -1;
	/* The seals are the protection, the mode only lets everybody in. */
	if (fcntl(ram, F_ADD_SEALS, SEALS) < 0 || fchmod(ram, 0666) < 0)
		return -1;
	return steal_fd(&ram);
}

/* ---- save: page by page ------------------------------------------------- */

enum source { NOWHERE, BASE, OWN };

struct save {
	struct extents base;
	int mem, pagemap; /* of the VMM; -1: its memory is `base` */
	int out;
	struct ram_map map;
	struct ram_stats *stats;
	enum source from[PAGES];
	uint64_t entries[PAGES];
	unsigned char buf[CHUNK] __attribute__((aligned(PAGE)));
};

static bool is_zero(const unsigned char *page)
{
	const uint64_t *word = (const uint64_t *)(const void *)page;

	for (size_t i = 0; i < PAGE / sizeof(*word); i += 8)
		if (word[i] | word[i + 1] | word[i + 2] | word[i + 3] |
		    word[i + 4] | word[i + 5] | word[i + 6] | word[i + 7])
			return false;
	return true;
}

static int read_at(int fd, void *buf, size_t len, uint64_t at)
{
	for (size_t got = 0; got < len;) {
		ssize_t n = pread(fd, (char *)buf + got, len - got,
				  (off_t)(at + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO; /* cut short, or the VMM is gone */
		if (n <= 0)
			return -1;
		got += (size_t)n;
	}
	return 0;
}

static int read_own(const struct save *s, unsigned char *buf, size_t len,
		    uint64_t at)
{
	for (size_t done = 0, n; done < len; done += n) {
		uint64_t address;

		n = ram_map_at(&s->map, at + done, len - done, &address);
		if (read_at(s->mem, buf + done, n, address) < 0)
			return -1;
	}
	return 0;
}

/* What pagemap says of `n` pages. */
static int read_entries(struct save *s, uint64_t at, size_t n)
{
	for (size_t done = 0, pages; done < n; done += pages) {
		uint64_t address;

		pages = ram_map_at(&s->map, at + done * PAGE, (n - done) * PAGE,
				   &address) /
			PAGE;
		if (read_at(s->pagemap, &s->entries[done],
			    pages * sizeof(*s->entries),
			    address / PAGE * sizeof(*s->entries)) < 0)
			return -1;
	}
	return 0;
}

/* A page of the VMM's own is anonymous, present or swapped out.  Where it has
 * none, what it would read is in the memfd. */
static bool is_own(uint64_t entry)
{
	return !(entry & PAGEMAP_OF_FILE) &&
	       entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED);
}

/* Where each of `n` pages from `at` on is. */
static int classify(struct save *s, off_t at, size_t n)
{
	if (s->pagemap >= 0 && read_entries(s, (uint64_t)at, n) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		off_t page = at + (off_t)(i * PAGE);

		if (extent_at(&s->base, page) < 0)
			return -1;
		s->from[i] = page >= s->base.data ? BASE : NOWHERE;
		if (s->pagemap >= 0 && is_own(s->entries[i])) {
			s->from[i] = OWN;
			s->stats->private_pages++;
		}
	}
	return 0;
}

/* Read the pages, as many of one source in one piece as there are. */
static int collect(struct save *s, off_t at, size_t n)
{
	for (size_t i = 0, next; i < n; i = next) {
		uint64_t place = (uint64_t)at + i * PAGE;
		int r = 0;

		for (next = i + 1; next < n && s->from[next] == s->from[i];)
			next++;
		if (s->from[i] == BASE)
			r = read_at(s->base.fd, s->buf + i * PAGE,
				    (next - i) * PAGE, place);
		else if (s->from[i] == OWN)
			r = read_own(s, s->buf + i * PAGE, (next - i) * PAGE,
				     place);
		if (r < 0)
			return -1;
	}
	return 0;
}

/* Write what is not zero. */
static int put(struct save *s, off_t at, size_t n)
{
	for (size_t i = 0, next; i < n; i = next + 1) {
		for (next = i; next < n && s->from[next] != NOWHERE &&
			       !is_zero(s->buf + next * PAGE);)
			next++;
		if (pwrite_full(s->out, s->buf + i * PAGE, (next - i) * PAGE,
				at + (off_t)(i * PAGE)) < 0)
			return -1;
		s->stats->bytes += (next - i) * PAGE;
	}
	return 0;
}

/* 0; -1 and errno when reading, -2 when writing fails. */
static int copy_pages(struct save *s)
{
	off_t size = s->base.size;

	for (off_t at = 0; at < size; at += (off_t)CHUNK) {
		size_t n = PAGES;

		if (extent_at(&s->base, at) < 0)
			return -1;
		if (s->pagemap < 0 && s->base.data > at)
			at = s->base.data;
		if (size - at < (off_t)CHUNK)
			n = (size_t)(size - at) / PAGE;
		if (classify(s, at, n) < 0 || collect(s, at, n) < 0)
			return -1;
		if (put(s, at, n) < 0)
			return -2;
	}
	return 0;
}

static int cannot_write(const char *name, uint64_t needed)
{
	char size[16];

	if (errno != ENOSPC && errno != EDQUOT)
		return fail_errno(EX_IOERR, "cannot write '%s'", name);
	format_size(size, sizeof(size), needed);
	return fail_errno(EX_IOERR, "cannot write '%s', which may need %s",
			  name, size);
}

static int save(struct save *s, const char *name)
{
	struct stat st;
	int r = ftruncate(s->out, s->base.size) < 0 ? -2 : copy_pages(s);

	if (r == -2)
		return cannot_write(name, (uint64_t)s->base.size);
	if (r < 0)
		return fail_errno(EX_IOERR, "cannot read the VMM's memory");
	/* What was cut off and made longer again read as holes. */
	if (fstat(s->base.fd, &st) < 0 || st.st_size != s->base.size)
		return ram_not_as_given("its size changes");
	return 0;
}

static int open_sources(struct save *s, int proc, const struct stat *base)
{
	int r = ram_map_read(proc, base, &s->map);

	if (r < 0 || s->map.shared)
		return r;
	s->mem = openat(proc, "mem", O_RDONLY | O_CLOEXEC);
	s->pagemap = openat(proc, "pagemap", O_RDONLY | O_CLOEXEC);
	if (s->mem < 0 || s->pagemap < 0)
		return fail_errno(EX_OSERR, "cannot open the VMM's memory");
	return 0;
}

static struct save *save_new(int base, uint64_t size, struct ram_stats *stats)
{
	struct save *s =
		aligned_alloc(PAGE, (sizeof(*s) + PAGE - 1) / PAGE * PAGE);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	memset(stats, 0, sizeof(*stats));
	s->mem = s->pagemap = s->out = -1;
	s->stats = stats;
	s->base = (struct extents){.fd = base, .size = (off_t)size};
	return s;
}

static void save_free(struct save **s)
{
	if (!*s)
		return;
	close_at_exit_of_scope(&(*s)->mem);
	close_at_exit_of_scope(&(*s)->pagemap);
	close_at_exit_of_scope(&(*s)->out);
	free(*s);
}

int ram_save(const struct proc *vmm, int base, uint64_t size, int out_dir,
	     const char *name, struct ram_stats *stats)
{
	__attribute__((cleanup(save_free))) struct save *s =
		save_new(base, size, stats);
	AUTO_CLOSE int proc = proc_dir(vmm);
	struct stat st;
	int r;

	if (proc < 0)
		return fail(EX_UNAVAILABLE, "the VMM has ended");
	if (!s)
		return fail(EX_OSERR, "out of memory");
	if (fstat(base, &st) < 0)
		return fail_errno(EX_OSERR, "cannot look at the VMM's memory");
	if (size % PAGE || size > INT64_MAX || st.st_size != (off_t)size)
		return ram_not_as_given("it has another size");
	r = open_sources(s, proc, &st);
	if (r < 0)
		return r;
	s->out = openat(out_dir, name,
			O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);
	if (s->out < 0)
		return fail_errno(errno == EEXIST ? EX_CANTCREAT : EX_IOERR,
				  "cannot make '%s'", name);
	r = save(s, name);
	if (r < 0)
		unlinkat(out_dir, name, 0);
	return r;
}
