/*
 * jail-info.c - which walls of a VMM's jail stand, as the kernel shows them.
 *
 * Nothing here is what ark meant to do: all but one value is read from the
 * folder of the process in /proc, which is opened first and compared with pid
 * and start time after that.  Of Landlock the kernel tells nothing afterwards;
 * what is shown is the ABI that it was set up with, from the slot.
 *
 * The VMM chooses the name of its process and its threads; the kernel escapes
 * them, and no field is looked for anywhere but at the beginning of a line.
 */
#include "info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define STATUS_MAX 16384

/* ---- /proc/PID/status --------------------------------------------------- */

/* Where the value of a field begins, or NULL. */
static const char *field(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strncmp(text, name, len) == 0 && text[len] == ':')
			return text + len + 1;
	}
	return NULL;
}

/* Field `name` as a number in this base; -1 when there is none. */
static long long number(const char *text, const char *name, int base)
{
	const char *value = field(text, name);

	return value ? (long long)strtoull(value, NULL, base) : -1;
}

static bool no_capabilities(const char *status)
{
	static const char *const sets[] = {"CapInh", "CapPrm", "CapEff",
					   "CapBnd", "CapAmb"};

	for (size_t i = 0; i < ARRAY_LEN(sets); i++)
		if (number(status, sets[i], 16) != 0)
			return false;
	return true;
}

/* All four of "real effective saved file", the same and not root's. */
static bool one_id(const char *status, const char *name, unsigned *id)
{
	const char *value = field(status, name);
	unsigned ids[4];

	if (!value || sscanf(value, "%u %u %u %u", &ids[0], &ids[1], &ids[2],
			     &ids[3]) != 4)
		return false;
	*id = ids[0];
	return ids[0] != 0 && ids[1] == ids[0] && ids[2] == ids[0] &&
	       ids[3] == ids[0];
}

static bool own_user(const char *status, unsigned *uid)
{
	const char *groups = field(status, "Groups");
	unsigned gid;

	*uid = 0;
	return one_id(status, "Uid", uid) && one_id(status, "Gid", &gid) &&
	       gid == *uid && groups && groups[strspn(groups, " \t")] == '\n';
}

static int read_status(int dir, const char *name, char *text)
{
	return read_file(dir, name, text, STATUS_MAX) > 0 ? 0 : -1;
}

/* The fewest filters that any of its threads is under. */
static long long filters(int proc, char *text)
{
	int fd = open_dir(proc, "task");
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	long long fewest = -1;

	if (!stream) {
		close_at_exit_of_scope(&fd);
		return 0;
	}
	while ((entry = readdir(stream))) {
		char name[300];
		long long n;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/status", entry->d_name);
		if (read_status(fd, name, text) < 0)
			continue; /* it has ended */
		n = number(text, "Seccomp", 10) == 2
			    ? number(text, "Seccomp_filters", 10)
			    : 0;
		if (fewest < 0 || n < fewest)
			fewest = n;
	}
	closedir(stream);
	return fewest < 0 ? 0 : fewest;
}

/* ---- namespaces and mounts ---------------------------------------------- */

/* Is this namespace of its own, and not the one that we are in? */
static bool own_namespace(int proc, const char *name)
{
	char here[32], there[16];
	struct stat ours, its;

	snprintf(here, sizeof(here), "/proc/self/ns/%s", name);
	snprintf(there, sizeof(there), "ns/%s", name);
	return stat(here, &ours) == 0 && fstatat(proc, there, &its, 0) == 0 &&
	       (ours.st_ino != its.st_ino || ours.st_dev != its.st_dev);
}

static json_t *namespaces(int proc)
{
	static const char *const names[] = {"ipc", "mnt", "net", "pid", "uts"};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (own_namespace(proc, names[i]))
			json_array_append_new(list, json_string(names[i]));
	return list;
}

/* One line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS ... - TYPE SOURCE
 * SUPER". */
static void add_mount(char *line, json_t *writable, const char **root)
{
	char point[256], options[128], type[32], source[256];
	const char *tail = strstr(line, " - ");

	if (!tail ||
	    sscanf(line, "%*s %*s %*s %*s %255s %127s", point, options) != 2 ||
	    sscanf(tail, " - %31s %255s", type, source) != 2) {
		json_array_append_new(writable, json_string("?"));
		return;
	}
	if (strcmp(point, "/") == 0)
		*root = strcmp(type, "tmpfs") == 0 &&
					strcmp(source, "ark-jail") == 0
				? "jail"
				: "other";
	if (strncmp(options, "ro", 2) != 0 ||
	    (options[2] != ',' && options[2] != '\0'))
		json_array_append_new(writable, json_string(point));
}

/* What its root is, and where else than in files that it has open it could
 * write. */
static void add_mounts(json_t *object, int proc)
{
	int fd = openat(proc, "mountinfo", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	json_t *writable = json_array();
	const char *root = "unknown";
	AUTO_FREE char *line = NULL;
	size_t size = 0;

	while (f && getline(&line, &size, f) > 0)
		add_mount(line, writable, &root);
	if (f)
		fclose(f);
	else
		close_at_exit_of_scope(&fd);
	json_object_set_new(object, "root", json_string(root));
	json_object_set_new(object, "writable", writable);
}

/* ---- limits ------------------------------------------------------------- */

static json_t *limits(int proc, char *text)
{
	static const struct {
		const char *name, *line;
	} known[] = {
		{"core", "Max core file size"},	  {"data", "Max data size"},
		{"address", "Max address space"}, {"file", "Max file size"},
		{"processes", "Max processes"},	  {"files", "Max open files"},
	};
	json_t *object = json_object();

	if (read_status(proc, "limits", text) < 0)
		return object;
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const char *line = strstr(text, known[i].line);
		long long value;

		/* "unlimited" is no number, and no limit. */
		if (line &&
		    sscanf(line + strlen(known[i].line), " %lld", &value) == 1)
			json_object_set_new(object, known[i].name,
					    json_integer(value));
	}
	return object;
}

/* ---- all of it ---------------------------------------------------------- */

json_t *info_jail(const struct sandbox *s)
{
	AUTO_FREE char *text = malloc(STATUS_MAX);
	AUTO_CLOSE int proc = s->vmm.pid ? proc_dir(&s->vmm) : -1;
	json_t *object;
	unsigned uid;
	bool own;
	long long abi;

	if (!text || proc < 0 || read_status(proc, "status", text) < 0)
		return NULL;
	object = json_object();
	own = own_user(text, &uid);
	json_object_set_new(object, "uid", json_integer(uid));
	json_object_set_new(object, "own_user", json_boolean(own));
	json_object_set_new(object, "no_capabilities",
			    json_boolean(no_capabilities(text)));
	json_object_set_new(object, "no_new_privs",
			    json_boolean(number(text, "NoNewPrivs", 10) == 1));
	json_object_set_new(object, "namespaces", namespaces(proc));
	json_object_set_new(object, "seccomp_filters",
			    json_integer(filters(proc, text)));
	add_mounts(object, proc);
	json_object_set_new(object, "limits", limits(proc, text));
	if (read_number(s->run, "landlock", 0, 1000, &abi) == 0)
		json_object_set_new(object, "landlock", json_integer(abi));
	return object;
}
