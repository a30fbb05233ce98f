/*
 * conf.c - ark.conf(5): "key = value", # starts a comment.  Never sourced by a
 * shell, and refused when others than root may write it.
 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* One setting out of text; the reason when it is bad. */
static const char *set(struct conf *c, const char *key, const char *value)
{
	const char *why = NULL;
	long long number;

	if (strcmp(key, "memory") == 0)
		return parse_size(value, &c->memory, &why) ? NULL : why;
	if (strcmp(key, "disk") == 0)
		return parse_size(value, &c->disk_size, &why) ? NULL : why;
	if (strcmp(key, "cpus") == 0) {
		if (!parse_num(value, 1, 255, &number, &why))
			return why;
		c->cpus = (unsigned)number;
		return NULL;
	}
	if (strcmp(key, "uid_base") == 0) {
		if (!parse_num(value, 65536, INT32_MAX - SLOT_MAX, &number,
			       &why))
			return why;
		c->uid_base = (unsigned)number;
		return NULL;
	}
	if (strcmp(key, "image") == 0) {
		if (!name_ok(value))
			return "not an image name";
		snprintf(c->image, sizeof(c->image), "%s", value);
		return NULL;
	}
	return "unknown key";
}

/* Cut blanks off both ends, in place. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, " \t");
	len = strlen(text);
	while (len > 0 && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

static int parse_line(struct conf *c, const char *path, int line, char *text)
{
	char *equals, *comment = strchr(text, '#');
	const char *why;

	if (comment)
		*comment = '\0';
	text = trim(text);
	if (!*text)
		return 0;
	equals = strchr(text, '=');
	if (!equals)
		return fail(EX_CONFIG, "%s:%d: not 'key = value'", path, line);
	*equals = '\0';
	why = set(c, trim(text), trim(equals + 1));
	if (why)
		return fail(EX_CONFIG, "%s:%d: %s: %s", path, line, trim(text),
			    why);
	return 0;
}

int conf_load(struct conf *c)
{
	const char *path = getenv("ARK_CONF");
	char text[16384], *line = text;
	struct stat st;
	int r;

	*c = (struct conf){
		.memory = 512ULL << 20,
		.disk_size = 8ULL << 30,
		.cpus = 1,
		.uid_base = 0x70000000,
		.image = "base",
	};
	if (!path || !*path)
		path = "/etc/ark/ark.conf";
	if (stat(path, &st) < 0 && errno == ENOENT && !getenv("ARK_CONF"))
		return 0;
	if (read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return fail_errno(EX_CONFIG, "cannot read '%s'", path);
	if (stat(path, &st) < 0 || st.st_uid != 0 || st.st_mode & 022)
		return fail(EX_CONFIG,
			    "'%s' may be written by others than root", path);
	for (int number = 1; line; number++) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		r = parse_line(c, path, number, line);
		if (r < 0)
			return r;
		line = end ? end + 1 : NULL;
	}
	return 0;
}
