/*
 * state.c - open the state directories and find out what a sandbox is doing.
 *
 * Nothing here believes a stored word about something that can be looked at:
 * a sandbox runs when the process whose pid and start time its slot records is
 * alive, in this boot.  The words kept in files are those that nobody can look
 * up later, above all why a VMM has ended.
 */
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <uuid/uuid.h>

static const char *root_path(void)
{
	const char *path = getenv("ARK_ROOT");

	return path && *path ? path : "/var/lib/ark";
}

static const char *run_path(void)
{
	const char *path = getenv("ARK_RUN");

	return path && *path ? path : "/run/ark";
}

/* Open a state directory, made when missing; told. */
static int state_dir(const char *variable, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (path[0] != '/')
		return fail(EX_CONFIG, "%s='%s' is not an absolute path",
			    variable, path);
	if (geteuid() != 0) {
		if (fd >= 0)
			close(fd);
		return fail(EX_NOPERM, "must be root");
	}
	if (fd < 0 && errno == ENOENT)
		fd = make_dir(path, 0700);
	if (fd < 0)
		return fail_errno(EX_OSERR, "cannot open %s='%s'", variable,
				  path);
	return fd;
}

int root_open(const char *folder)
{
	AUTO_CLOSE int root = state_dir("ARK_ROOT", root_path());
	int fd;

	if (root < 0)
		return root;
	if (!folder)
		return steal_fd(&root);
	fd = open_dir(root, folder);
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(root, folder, 0700) < 0 && errno != EEXIST)
			return fail_errno(EX_OSERR, "cannot make '%s/%s'",
					  root_path(), folder);
		fd = open_dir(root, folder);
	}
	if (fd < 0)
		return fail_errno(EX_OSERR, "cannot open '%s/%s'", root_path(),
				  folder);
	return fd;
}

/* Was the directory written in this boot? */
static bool same_boot(int run)
{
	static char now[64];
	char then[64];

	if (!*now && read_value(AT_FDCWD, "/proc/sys/kernel/random/boot_id",
				now, sizeof(now)) < 0)
		return false;
	if (read_value(run, "boot_id", then, sizeof(then)) < 0)
		return false;
	return strcmp(now, then) == 0;
}

/* Remove everything of another boot.  Under a lock, and looked at again under
 * it: of two programs that find the old files, the second must not remove what
 * the first has put there since. */
static int renew_run(int run)
{
	char boot[64];
	DIR *stream;
	const struct dirent *entry;
	AUTO_CLOSE int again = open_dir(run, ".");

	if (again < 0 || lock_file(again, LOCK_EX, 10000) < 0)
		return -1;
	if (same_boot(run))
		return 0;
	stream = fdopendir(dup(again));
	if (!stream)
		return -1;
	while ((entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			remove_tree(run, entry->d_name);
	closedir(stream);
	if (read_value(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
		       sizeof(boot)) < 0)
		return -1;
	return write_value(run, "boot_id", "%s", boot);
}

int run_open(bool writing)
{
	AUTO_CLOSE int run = -1;

	if (!writing) {
		run = open(run_path(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (run < 0)
			return -1;
		if (same_boot(run))
			return steal_fd(&run);
		errno = ENOENT;
		return -1;
	}
	run = state_dir("ARK_RUN", run_path());
	if (run < 0)
		return run;
	if (!same_boot(run) && renew_run(run) < 0)
		return fail_errno(EX_OSERR, "cannot renew ARK_RUN='%s'",
				  run_path());
	return steal_fd(&run);
}

int run_canonical(int run, char *path)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", run);
	n = readlink(link, path, PATH_MAX - 1);
	if (n < 0)
		return -1;
	path[n] = '\0';
	return 0;
}

/* Open the slot that the sandbox says it holds; it is ours only when the slot
 * says so as well (it may have been given away since).  Sets s->slot. */
static void open_slot(struct sandbox *s)
{
	char text[16], owner[NAME_MAX_LEN + 2];
	AUTO_CLOSE int run = -1;
	char *end;
	long slot;
	int fd;

	if (read_value(s->dir, "slot", text, sizeof(text)) < 0)
		return;
	slot = strtol(text, &end, 16);
	if (*end || slot < 1 || slot > SLOT_MAX || strlen(text) != 4)
		return;
	run = run_open(false);
	if (run < 0)
		return;
	fd = open_dir(run, text);
	if (fd < 0)
		return;
	if (read_value(fd, "vm", owner, sizeof(owner)) < 0 ||
	    strcmp(owner, s->name) != 0) {
		close(fd);
		return;
	}
	s->slot = (int)slot;
	s->run = fd;
}

/* The file `exit` of a slot or of a sandbox: "stopped" or "dead: why". */
static bool read_exit(struct sandbox *s, int dir)
{
	char text[sizeof(s->reason) + 8];

	if (read_value(dir, "exit", text, sizeof(text)) < 0)
		return false;
	s->state = VM_STOPPED;
	if (strncmp(text, "dead: ", 6) == 0) {
		s->state = VM_DEAD;
		printable(s->reason, sizeof(s->reason), text + 6);
	}
	return true;
}

static void probe_slot(struct sandbox *s)
{
	struct proc keeper;
	bool vmm_alive =
		proc_read(s->run, "vmm", &s->vmm) == 0 && proc_alive(&s->vmm);

	s->keeper_alive = proc_read(s->run, "keeper", &keeper) == 0 &&
			  proc_alive(&keeper);
	/* The end is on record: the keeper only has its last things to do. */
	if (!vmm_alive && read_exit(s, s->run))
		return;
	if (vmm_alive || s->keeper_alive) {
		s->state = VM_RUNNING;
		s->starting = faccessat(s->run, "generation", F_OK, 0) < 0;
		if (faccessat(s->run, "paused", F_OK, 0) == 0)
			s->state = VM_PAUSED;
		return;
	}
	/* Nobody was there to see how it ended, but somebody had asked. */
	if (faccessat(s->run, "stopping", F_OK, 0) == 0) {
		s->state = VM_STOPPED;
		return;
	}
	s->state = VM_DEAD;
	snprintf(s->reason, sizeof(s->reason),
		 "VMM and keeper ended unwatched");
}

void sandbox_probe(struct sandbox *s)
{
	if (s->run >= 0)
		close(s->run);
	s->run = -1;
	s->slot = 0;
	s->vmm.pid = 0;
	s->reason[0] = '\0';
	s->starting = s->keeper_alive = false;
	open_slot(s);
	if (s->slot) {
		probe_slot(s);
		return;
	}
	if (read_exit(s, s->dir))
		return;
	/* A slot that is gone without a word: the host was booted since. */
	s->state = faccessat(s->dir, "slot", F_OK, 0) == 0 ? VM_STOPPED
							   : VM_CREATED;
}

/* Told, but for one that is not there. */
static int open_quiet(struct sandbox *s, const char *name)
{
	AUTO_CLOSE int vms = -1;
	int r = check_name("sandbox", name);

	memset(s, 0, sizeof(*s));
	s->dir = s->run = -1;
	if (r < 0)
		return r;
	vms = root_open("vm");
	if (vms < 0)
		return vms;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->dir = open_dir(vms, name);
	if (s->dir < 0 && errno == ENOENT)
		return -EX_NOINPUT;
	if (s->dir < 0)
		return fail_errno(EX_OSERR, "cannot open sandbox '%s'", name);
	sandbox_probe(s);
	return 0;
}

int sandbox_open(struct sandbox *s, const char *name)
{
	int r = open_quiet(s, name);

	return r == -EX_NOINPUT ? fail(EX_NOINPUT, "no such sandbox '%s'", name)
				: r;
}

bool sandbox_find(struct sandbox *s, const char *name)
{
	return open_quiet(s, name) == 0;
}

bool sandbox_exists(const char *name)
{
	AUTO_CLOSE int vms = root_open("vm");

	return vms >= 0 && name_ok(name) &&
	       faccessat(vms, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void sandbox_close(struct sandbox *s)
{
	if (s->dir >= 0)
		close(s->dir);
	if (s->run >= 0)
		close(s->run);
	s->dir = s->run = -1;
}

int sandbox_lock(struct sandbox *s)
{
	struct stat st;

	if (lock_file(s->dir, LOCK_EX, 10000) < 0)
		return fail(EX_TEMPFAIL,
			    "sandbox '%s' is being changed by another command",
			    s->name);
	/* rm unlinks under the lock: whoever waited holds a dead directory. */
	if (fstat(s->dir, &st) < 0 || st.st_nlink == 0)
		return fail(EX_NOINPUT, "sandbox '%s' was removed meanwhile",
			    s->name);
	sandbox_probe(s);
	return 0;
}

const char *state_word(const struct sandbox *s)
{
	static const char *const words[] = {
		[VM_CREATED] = "created", [VM_RUNNING] = "running",
		[VM_PAUSED] = "paused",	  [VM_STOPPED] = "stopped",
		[VM_DEAD] = "dead",
	};

	return words[s->state];
}

static int visible_name(const struct dirent *entry)
{
	return name_ok(entry->d_name);
}

int names_each(const char *folder, int (*each)(const char *name, void *data),
	       void *data)
{
	AUTO_CLOSE int dir = root_open(folder);
	struct dirent **list;
	int n, result = 0;

	if (dir < 0)
		return dir;
	n = scandirat(dir, ".", &list, visible_name, alphasort);
	if (n < 0)
		return fail_errno(EX_OSERR, "cannot list '%s'", folder);
	for (int i = 0; i < n; i++) {
		if (result == 0)
			result = each(list[i]->d_name, data);
		free(list[i]);
	}
	free(list);
	return result;
}

int sandbox_each(int (*each)(const char *name, void *data), void *data)
{
	return names_each("vm", each, data);
}

void new_uuid(char out[37])
{
	uuid_t id;

	uuid_generate_random(id);
	uuid_unparse_lower(id, out);
}
