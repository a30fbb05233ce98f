/*
 * conf.c - ark.conf(5): "key = value", # starts a comment.  Never sourced by a
 * shell, and refused when others than root may write it.
 */
#include "state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* "10.20.0.0/16": not what every sandbox has inside (10.0.2.0/30), not what
 * means something else to the kernel (0, 127, 169.254, 224 and above). */
static const char *set_net(uint32_t *net, const char *value)
{
	char address[16];
	struct in_addr in;
	size_t len = strcspn(value, "/");
	uint32_t n;

	if (strcmp(value + len, "/16") != 0 || len >= sizeof(address))
		return "not an IPv4 network as 10.20.0.0/16";
	memcpy(address, value, len);
	address[len] = '\0';
	if (inet_pton(AF_INET, address, &in) != 1)
		return "not an IPv4 network as 10.20.0.0/16";
	n = ntohl(in.s_addr);
	if (n & 0xffff)
		return "the last two numbers must be 0";
	if (n >> 24 == 0 || n >> 24 == 127 || n >> 24 >= 224 ||
	    n >> 16 == 0xa9fe || n >> 16 == 0x0a00)
		return "not a network that can be used";
	*net = n;
	return NULL;
}

static const char *set_percent(unsigned *percent, const char *value)
{
	size_t len = strlen(value);
	const char *why = NULL;
	long long number;
	char digits[16];

	if (len < 2 || len > sizeof(digits) || value[len - 1] != '%')
		return "not a percentage as 150%";
	memcpy(digits, value, len - 1);
	digits[len - 1] = '\0';
	if (!parse_num(digits, 1, 100000, &number, &why))
		return why;
	*percent = (unsigned)number;
	return NULL;
}

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
	if (strcmp(key, "auth") == 0) {
		c->no_auth = strcmp(value, "none") == 0;
		return c->no_auth || strcmp(value, "token") == 0
			       ? NULL
			       : "neither token nor none";
	}
	if (strcmp(key, "net") == 0)
		return set_net(&c->net, value);
	if (strcmp(key, "policy") == 0) {
		c->policy = strcmp(value, "none") == 0 ? "none" : "open";
		return strcmp(value, c->policy) == 0 ? NULL
						     : "neither open nor none";
	}
	if (strcmp(key, "memory_overcommit") == 0)
		return set_percent(&c->memory_overcommit, value);
	if (strcmp(key, "cpu_overcommit") == 0)
		return set_percent(&c->cpu_overcommit, value);
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
		.net = 0x0a140000,
		.policy = "open",
		.image = "base",
		.memory_overcommit = 150,
		.cpu_overcommit = 1600,
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
