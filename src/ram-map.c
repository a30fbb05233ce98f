/*
 * ram-map.c - where a VMM says that it has mapped its memory.
 *
 * What it says decides nothing about how much is read or where it goes: the
 * mappings of the memfd must hold each of its bytes once, in a few pieces (a
 * VMM may leave a gap below 4 GiB), all of them shared or all private.
 * Anything else is refused.
 */
#include "ram-map.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/sysmacros.h>

int ram_not_as_given(const char *what)
{
	return fail(EX_UNAVAILABLE,
		    "the VMM's memory is not as it was given: %s", what);
}

static uint64_t length_of(const struct ram_piece *p)
{
	return p->end - p->start;
}

/* One more mapping of the memfd; NULL, or what is wrong with it. */
static const char *add_piece(struct ram_map *m, const struct ram_piece *new,
			     bool shared)
{
	struct ram_piece *last = m->n > 0 ? &m->piece[m->n - 1] : NULL;

	if (!last)
		m->shared = shared;
	if (m->shared != shared)
		return "it is mapped half shared";
	if (last && new->start == last->end &&new->offset ==
			    last->offset + length_of(last)) {
		last->end = new->end;
		return NULL;
	}
	if (m->n == RAM_PIECES_MAX)
		return "it is mapped in too many pieces";
	m->piece[m->n++] = *new;
	return NULL;
}

/* One line of /proc/PID/maps; NULL, or what is wrong with it. */
static const char *add_line(struct ram_map *m, const char *line,
			    const struct stat *base)
{
	struct ram_piece new;
	uint64_t inode;
	unsigned dev_major, dev_minor;
	char mode[5];

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64,
		   &new.start, &new.end, mode, &new.offset, &dev_major,
		   &dev_minor, &inode) != 7)
		return "a line of its maps is not understood";
	if (inode != base->st_ino || dev_major != major(base->st_dev) ||
	    dev_minor != minor(base->st_dev))
		return NULL;
	return add_piece(m, &new, mode[3] == 's');
}

static int by_offset(const void *a, const void *b)
{
	const struct ram_piece *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Do the pieces make up the whole, each byte once? */
static const char *check_pieces(struct ram_map *m, uint64_t size)
{
	uint64_t at = 0;

	if (m->n == 0)
		return "it is not mapped";
	qsort(m->piece, (size_t)m->n, sizeof(m->piece[0]), by_offset);
	for (int i = 0; i < m->n; i++) {
		if (m->piece[i].offset < at)
			return "it is mapped twice";
		if (m->piece[i].offset > at)
			return "it is mapped in part";
		at += length_of(&m->piece[i]);
	}
	return at == size ? NULL : "it is mapped in part";
}

int ram_map_read(int proc, const struct stat *base, struct ram_map *m)
{
	int fd = openat(proc, "maps", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	AUTO_FREE char *line = NULL;
	const char *wrong = NULL;
	size_t size = 0;

	if (!f)
		return fail_errno(EX_OSERR, "cannot read the VMM's maps");
	while (!wrong && getline(&line, &size, f) > 0)
		wrong = add_line(m, line, base);
	fclose(f);
	if (!wrong)
		wrong = check_pieces(m, (uint64_t)base->st_size);
	return wrong ? ram_not_as_given(wrong) : 0;
}

size_t ram_map_at(const struct ram_map *m, uint64_t at, size_t len,
		  uint64_t *address)
{
	const struct ram_piece *p = m->piece;
	uint64_t left;

	while (p->offset + length_of(p) <= at)
		p++;
	*address = p->start + (at - p->offset);
	left = p->end - *address;
	return len < left ? len : (size_t)left;
}
