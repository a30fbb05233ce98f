/*
 * tree.c - what both ends of tree.h share, and where a received tree goes.
 *
 * The target of a copy is a path of the user, in the user's own words, so it
 * is looked up as every program looks up paths: a link to a directory counts
 * as that directory.  The name under it is the sender's, and only ever a name.
 */
#include "tree-part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int tree_path_ok(const char *path)
{
	const char *part = path;

	if (strlen(path) >= TREE_PATH)
		return 0;
	for (;;) {
		size_t len = strcspn(part, "/");

		if (len == 0 || (len == 1 && part[0] == '.') ||
		    (len == 2 && part[0] == '.' && part[1] == '.'))
			return 0;
		if (part[len] == '\0')
			return 1;
		part += len + 1;
	}
}

/* The end of a long text: the reason behind it must not be cut off. */
static const char *tail(const char *text, const char **dots)
{
	const size_t shown = 160;
	size_t len = strlen(text);

	*dots = len > shown ? "..." : "";
	return len > shown ? text + len - shown : text;
}

int tree_fail(struct tree_error *error, const char *verb, const char *top,
	      const char *path, const char *why)
{
	const char *dots, *more;

	top = tail(top, &dots);
	path = tail(path, &more);
	snprintf(error->text, sizeof(error->text), "cannot %s '%s%s%s%s%s': %s",
		 verb, dots, top,
		 *path && *top && top[strlen(top) - 1] != '/' ? "/" : "", more,
		 path, why);
	return -1;
}

static int fail_place(const struct tree_place *p, struct tree_error *error,
		      const char *verb, const char *why)
{
	return tree_fail(error, verb, p->top, "", why);
}

/* mkdir -p. */
static int make_dirs(int dir, const char *path)
{
	char part[TREE_PATH];
	size_t len = strlen(path);

	for (size_t i = 1; i <= len; i++) {
		if (i < len && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdirat(dir, part, 0777) < 0 && errno != EEXIST)
			return -1;
	}
	return 0;
}

/* The target is no directory: the thing gets that name, in its parent. */
static int resolve_new(struct tree_place *p, int dir, const char *target,
		       unsigned flags, struct tree_error *error)
{
	const char *slash = strrchr(target, '/');
	const char *leaf = slash ? slash + 1 : target;
	char parent[TREE_PATH] = ".";

	if (!tree_path_ok(leaf) || strlen(leaf) > NAME_MAX)
		return fail_place(p, error, "create", strerror(ENOENT));
	memcpy(p->leaf, leaf, strlen(leaf) + 1);
	if (slash) {
		size_t len = slash == target ? 1 : (size_t)(slash - target);

		memcpy(parent, target, len);
		parent[len] = '\0';
	}
	if (flags & TREE_PARENTS && make_dirs(dir, parent) < 0)
		return fail_place(p, error, "make the directory of",
				  strerror(errno));
	p->holder = openat(dir, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->holder < 0)
		return fail_place(p, error, "create", strerror(errno));
	return 0;
}

static int resolve_below(struct tree_place *p, const char *base,
			 struct tree_error *error)
{
	size_t len = strlen(base), top = strlen(p->top);

	if (!tree_path_ok(base) || strchr(base, '/') || len > NAME_MAX)
		return fail_place(p, error, "create", "a bad name for it");
	memcpy(p->leaf, base, len + 1);
	if (p->top[top - 1] != '/')
		p->top[top++] = '/';
	memcpy(p->top + top, base, len + 1);
	return 0;
}

int tree_resolve(struct tree_place *place, int dir, const char *target,
		 const char *base, unsigned flags, struct tree_error *error)
{
	const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	const unsigned both = TREE_INTO | TREE_PARENTS;
	size_t len = strlen(target);
	int fd;

	*place = (struct tree_place){.holder = -1};
	if (len == 0 || len >= TREE_PATH)
		return fail_place(place, error, "create", "a bad path");
	memcpy(place->top, target, len + 1);
	fd = openat(dir, target, how);
	if (fd < 0 && errno == ENOENT && (flags & both) == both &&
	    make_dirs(dir, target) == 0)
		fd = openat(dir, target, how);
	if (fd < 0 &&
	    (flags & TREE_INTO || (errno != ENOENT && errno != ENOTDIR)))
		return fail_place(place, error, "open directory",
				  strerror(errno));
	if (fd < 0)
		return resolve_new(place, dir, target, flags, error);
	place->holder = fd;
	return base[0] ? resolve_below(place, base, error) : 0;
}
