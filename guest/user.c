/*
 * user.c - users and groups of the guest, out of its own files.  Runs in a
 * child: these files belong to the guest, and opening one may block.
 *
 * The rules are those that container users know: a number needs no entry and
 * has group 0 without one; naming a group leaves out the supplementary ones.
 */
#include "guest.h"

#include <grp.h>
#include <pwd.h>

static bool is_number(const char *text, unsigned *out)
{
	char *end;
	unsigned long long n;

	if (text[0] < '0' || text[0] > '9' || strlen(text) > 10)
		return false;
	n = strtoull(text, &end, 10);
	*out = (unsigned)n;
	return *end == '\0' && n < UINT32_MAX;
}

static void fill(struct user *u, const struct passwd *entry)
{
	u->uid = entry->pw_uid;
	u->gid = entry->pw_gid;
	snprintf(u->name, sizeof(u->name), "%s", entry->pw_name);
	if (entry->pw_dir[0] == '/')
		snprintf(u->home, sizeof(u->home), "%s", entry->pw_dir);
	if (entry->pw_shell[0] == '/')
		snprintf(u->shell, sizeof(u->shell), "%s", entry->pw_shell);
}

static int find_user(struct user *u, const char *name)
{
	unsigned uid = 0;
	bool number = is_number(name, &uid), found = false;
	FILE *f = fopen("/etc/passwd", "re");
	const struct passwd *entry;

	while (f && !found && (entry = fgetpwent(f))) {
		found = strcmp(entry->pw_name, name) == 0 ||
			(number && entry->pw_uid == uid);
		if (found)
			fill(u, entry);
	}
	if (f)
		fclose(f);
	if (found)
		return 0;
	/* Root needs no user database. */
	if (!number && strcmp(name, "root") != 0)
		return -1;
	u->uid = uid;
	snprintf(u->name, sizeof(u->name), "%s", uid ? name : "root");
	snprintf(u->home, sizeof(u->home), "%s", uid ? "/" : "/root");
	return 0;
}

static int find_group(struct user *u, const char *name)
{
	unsigned gid = 0;
	bool number = is_number(name, &gid), found = false;
	FILE *f = fopen("/etc/group", "re");
	const struct group *entry;

	while (f && !found && (entry = fgetgrent(f))) {
		found = strcmp(entry->gr_name, name) == 0;
		if (found)
			gid = entry->gr_gid;
	}
	if (f)
		fclose(f);
	if (!found && !number)
		return -1;
	u->gid = gid;
	return 0;
}

static bool is_member(const struct group *entry, const char *name)
{
	for (char **m = entry->gr_mem; *m; m++)
		if (strcmp(*m, name) == 0)
			return true;
	return false;
}

static void find_groups(struct user *u)
{
	FILE *f = fopen("/etc/group", "re");
	const struct group *entry;

	while (f && u->group_count < ARRAY_LEN(u->groups) &&
	       (entry = fgetgrent(f)))
		if (is_member(entry, u->name))
			u->groups[u->group_count++] = entry->gr_gid;
	if (f)
		fclose(f);
}

int user_find(struct user *u, const char *spec)
{
	char name[256];
	char *group;

	memset(u, 0, sizeof(*u));
	snprintf(u->home, sizeof(u->home), "/");
	snprintf(u->shell, sizeof(u->shell), "/bin/sh");
	snprintf(name, sizeof(name), "%s", spec ? spec : "root");
	group = strchr(name, ':');
	if (group)
		*group++ = '\0';
	if (find_user(u, name) < 0)
		return -1;
	if (group)
		return find_group(u, group);
	find_groups(u);
	return 0;
}
