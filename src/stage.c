/*
 * stage.c - make and sweep the directories in which things are put together.
 */
#include "stage.h"
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

void stage_name(const char *name, char temp[STAGE_NAME_MAX])
{
	snprintf(temp, STAGE_NAME_MAX, ".%s.%d.tmp", name, (int)getpid());
}

int stage_make(int folder, const char *name, char temp[STAGE_NAME_MAX])
{
	AUTO_CLOSE int lock = open_dir(folder, ".");
	AUTO_CLOSE int dir = -1;

	stage_name(name, temp);
	if (lock < 0 || lock_file(lock, LOCK_EX, 10000) < 0 ||
	    mkdirat(folder, temp, 0700) < 0)
		return -1;
	dir = open_dir(folder, temp);
	if (dir < 0 || lock_file(dir, LOCK_EX, 0) < 0)
		return -1;
	return steal_fd(&dir);
}

static int is_stage(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] == '.' && len > 4 &&
	       strcmp(entry->d_name + len - 4, ".tmp") == 0;
}

static int sweep_one(int dir, const char *folder, const char *temp)
{
	AUTO_CLOSE int held = open_dir(dir, temp);

	if (held < 0 || lock_file(held, LOCK_EX, 0) < 0)
		return 0;
	if (remove_tree(dir, temp) < 0)
		return fail_errno(EX_OSERR, "cannot remove '%s/%s'", folder,
				  temp);
	printf("removed half-made %s/%s\n", folder, temp);
	return 0;
}

int stage_sweep(const char *folder)
{
	AUTO_CLOSE int dir = root_open(folder);
	struct dirent **list;
	int count, result = 0;

	if (dir < 0)
		return dir;
	/* Somebody works in the folder itself (a kernel is being unpacked):
	 * what is there is alive. */
	if (lock_file(dir, LOCK_EX, 1000) < 0)
		return 0;
	count = scandirat(dir, ".", &list, is_stage, alphasort);
	if (count < 0)
		return fail_errno(EX_OSERR, "cannot list '%s'", folder);
	for (int i = 0; i < count; i++) {
		int r = sweep_one(dir, folder, list[i]->d_name);

		if (result == 0)
			result = r;
		free(list[i]);
	}
	free(list);
	return result;
}
