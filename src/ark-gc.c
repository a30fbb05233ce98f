/*
 * ark-gc - remove what crashes left behind.  ark-gc(1) is the manual.
 *
 * It removes exactly what is ours and has no holder: every thing that ark
 * makes is locked by whoever makes or keeps it, and a lock goes with its
 * process, however that ends.  What can be locked here is nobody's.
 */
#include "admit.h"
#include "cgroup.h"
#include "keeper.h"
#include "netup.h"
#include "slot.h"
#include "stage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

static const char help[] =
	"Usage: ark-gc\n"
	"\n"
	"Remove what crashes left behind; prints a line for each thing.\n"
	"\n"
	"  -h, --help     show this and exit\n"
	"      --version  show the version and exit\n";

static void told(const char *what, const char *name)
{
	printf("removed %s %s\n", what, name);
}

/* A sandbox whose VM ended with nobody there to do the rest. */
static int tidy_sandbox(const char *name, void *data)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int *result = data;
	int r;

	if (!sandbox_exists(name))
		return 0;
	r = sandbox_open(&s, name);
	if (r == 0 && s.slot && !s.keeper_alive && proc_alive(&s.vmm)) {
		r = keeper_adopt(&s);
		if (r == 0)
			printf("started a keeper for %s\n", name);
	} else if (r == 0 && s.slot && !s.keeper_alive &&
		   lock_file(s.dir, LOCK_EX, 0) == 0) {
		char number[SLOT_NAME_LEN];

		sandbox_probe(&s);
		snprintf(number, sizeof(number), "%04x", (unsigned)s.slot);
		if (s.slot && !s.keeper_alive && !proc_alive(&s.vmm))
			r = slot_release(&s);
		if (r == 0)
			told("slot", number);
		if (r == 0 && faccessat(s.dir, "rm", F_OK, 0) == 0) {
			r = sandbox_remove(&s);
			if (r == 0)
				told("sandbox", name);
		}
	}
	if (*result == 0)
		*result = r;
	return 0;
}

/* Slots that no sandbox points to. */
static int sweep_slot(int run, const char *number)
{
	AUTO_CLOSE int slot = open_dir(run, number);
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char name[NAME_MAX_LEN + 2];
	struct proc vmm;

	if (slot < 0 || lock_file(slot, LOCK_EX, 0) < 0)
		return 0;
	if (proc_read(slot, "vmm", &vmm) == 0 && proc_alive(&vmm))
		return 0;
	if (read_value(slot, "vm", name, sizeof(name)) > 0 &&
	    sandbox_exists(name) && sandbox_open(&s, name) == 0 && s.slot &&
	    (unsigned)s.slot == (unsigned)strtoul(number, NULL, 16))
		return 0;
	if (remove_tree(run, number) < 0)
		return fail_errno(EX_OSERR, "cannot remove slot %s", number);
	told("slot", number);
	return 0;
}

static int sweep_slots(void)
{
	AUTO_CLOSE int run = run_open(true);
	DIR *stream = run < 0 ? NULL : fdopendir(dup(run));
	const struct dirent *entry;
	int result = 0;

	if (!stream)
		return run < 0 ? run
			       : fail_errno(EX_OSERR, "cannot list the slots");
	while ((entry = readdir(stream))) {
		int r = 0;

		if (strspn(entry->d_name, "0123456789abcdef") == 4 &&
		    strlen(entry->d_name) == 4)
			r = sweep_slot(run, entry->d_name);
		if (result == 0)
			result = r;
	}
	closedir(stream);
	return result;
}

static int sweep_network(void)
{
	AUTO_NETHOST struct nethost h = NETHOST_NONE;
	int r = nethost_open(&h);

	return r < 0 ? r : net_gc(&h);
}

static int sweep_cgroups(void)
{
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int lock = run < 0 ? run : admit_lock(run);

	return lock < 0 ? lock : cgroup_gc(run);
}

int main(int argc, char **argv)
{
	static const char *const folders[] = {"vm", "snap", "image", "kernel",
					      "auth"};
	AUTO_CLOSE int root = -1;
	AUTO_CLOSE int run = -1;
	int result = 0, r;

	progname = "ark-gc";
	if (argc == 2 &&
	    (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(help, stdout);
		return finish(0);
	}
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("ark-gc %s\n", ARK_VERSION);
		return finish(0);
	}
	if (argc > 1)
		die(EX_USAGE, "unexpected '%s' (try --help)", argv[1]);
	run = run_open(true);
	r = run < 0 ? run : sandbox_each(tidy_sandbox, &result);
	if (r < 0)
		return finish(r);
	/* The network first: it is found by the slots that it belongs to. */
	r = sweep_network();
	if (result == 0)
		result = r;
	r = sweep_slots();
	if (result == 0)
		result = r;
	r = sweep_cgroups();
	if (result == 0)
		result = r;
	root = root_open(NULL);
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		/* Nothing was made there, and tidying makes nothing. */
		if (faccessat(root, folders[i], F_OK, 0) < 0)
			continue;
		r = stage_sweep(folders[i]);
		if (result == 0)
			result = r;
	}
	return finish(result);
}
