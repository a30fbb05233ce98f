/*
 * links.c - what ip, tc and conntrack do for us.
 *
 * 1. Whose a link is, its alias says, which begins with the mark of its
 * ARK_RUN.  Two ARK_RUNs of one host give the same names; neither touches the
 * other's.
 * 2. A namespace is opened through /proc/PID first and the process compared
 *    second: while it is the same process, what was opened is its namespace,
 *    and the descriptor stays that whatever becomes of the pid.
 * 3. A VMM is on record before it has left the host's namespace.  What is
 *    loaded inside would cut the host off there, so until the two differ there
 *    is no namespace.
 */
#include "links.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <net/if.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>

#define NETNS_MS 5000 /* from the fork of a VMM to its own namespace */

/* -1 and EAGAIN while it is still in ours. */
static int open_netns(const struct proc *vmm)
{
	char path[64];
	struct stat home, there;
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)vmm->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (!proc_alive(vmm)) {
		errno = ESRCH;
		return -1;
	}
	if (stat("/proc/self/ns/net", &home) < 0 || fstat(fd, &there) < 0)
		return -1;
	if (home.st_dev != there.st_dev || home.st_ino != there.st_ino)
		return steal_fd(&fd);
	errno = EAGAIN;
	return -1;
}

int link_netns(const struct proc *vmm)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	uint64_t end = now_ms() + NETNS_MS;
	int fd;

	while ((fd = open_netns(vmm)) < 0 && errno == EAGAIN && now_ms() < end)
		nanosleep(&pause, NULL);
	return fd;
}

int link_within(int netns, int (*work)(void *data), void *data)
{
	AUTO_CLOSE int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (home < 0 || setns(netns, CLONE_NEWNET) < 0)
		return fail_errno(EX_OSERR, "cannot enter a namespace");
	r = work(data);
	/* In the wrong one everything that follows would hit the wrong one. */
	if (setns(home, CLONE_NEWNET) < 0)
		die(EX_OSERR, "cannot leave a namespace: %s", strerror(errno));
	return r;
}

int link_batch(const char *program, const char *text, int netns)
{
	const char *const argv[] = {program, "-batch", "-", NULL};
	struct run r = {.argv = argv, .text = text, .netns = netns};
	int code = *text ? run_text(&r) : 0;

	if (code == 0)
		return 0;
	if (code < 0)
		return fail_errno(EX_OSERR, "cannot run %s", program);
	return fail(EX_UNAVAILABLE, "cannot set up the network: %s: %s",
		    program, r.errors);
}

/* ---- links -------------------------------------------------------------- */

/* All links of the host, or one; NULL when it could not be read, or there is
 * no such link. */
static json_t *show_links(const char *name)
{
	const char *const argv[] = {
		"ip", "-j", "link", "show", name ? "dev" : NULL, name, NULL};
	AUTO_FREE char *text = NULL;
	struct run r = {.argv = argv, .output = &text};

	return run_text(&r) == 0 ? json_loads(text, 0, NULL) : NULL;
}

static bool is_ours(const json_t *link, const char *run)
{
	char mark[16];
	const char *alias = json_string_value(json_object_get(link, "ifalias"));

	plan_mark(run, mark);
	return alias && strncmp(alias, mark, strlen(mark)) == 0;
}

static int delete_link(const char *name, int netns)
{
	const char *const argv[] = {"ip", "link", "del", "dev", name, NULL};
	struct run r = {.argv = argv, .netns = netns};
	int code = run_text(&r);

	/* It dies with its namespace, at any moment. */
	if (code == 0 || (netns == 0 && if_nametoindex(name) == 0))
		return 0;
	return fail(EX_UNAVAILABLE, "cannot remove link %s: %s", name,
		    r.errors);
}

int link_remove(const char *name, const char *run)
{
	json_t *links;
	bool ours;

	if (if_nametoindex(name) == 0)
		return 0;
	links = show_links(name);
	ours = is_ours(json_array_get(links, 0), run);
	json_decref(links);
	return ours ? delete_link(name, 0) : 0;
}

static int has_uplink(void *data)
{
	(void)data;
	return if_nametoindex(UPLINK) != 0;
}

int link_drop(int netns)
{
	int r = link_within(netns, has_uplink, NULL);

	return r > 0 ? delete_link(UPLINK, netns) : r;
}

int link_clear(const struct plan *p, const char *run, int netns)
{
	int r = link_drop(netns);

	if (r == 0)
		r = link_remove(p->link, run);
	if (r == 0 && if_nametoindex(p->link) != 0)
		return fail(EX_UNAVAILABLE,
			    "link %s exists already and is not of this ARK_RUN",
			    p->link);
	return r;
}

/* Slot out of a name such as ark001f; 0. */
static int slot_of(const char *name)
{
	const char *digits = name + strlen(LINK_PREFIX);

	if (strncmp(name, LINK_PREFIX, strlen(LINK_PREFIX)) != 0 ||
	    strlen(digits) != 4 || strspn(digits, "0123456789abcdef") != 4)
		return 0;
	return (int)strtol(digits, NULL, 16);
}

int link_each(const char *run, int (*each)(int slot, void *data), void *data)
{
	json_t *link, *links = show_links(NULL);
	size_t i;
	int result = 0;

	if (!links)
		return fail(EX_UNAVAILABLE, "cannot list the links");
	json_array_foreach(links, i, link)
	{
		const char *name =
			json_string_value(json_object_get(link, "ifname"));
		int r = 0;

		if (name && slot_of(name) && is_ours(link, run))
			r = each(slot_of(name), data);
		if (result == 0)
			result = r;
	}
	json_decref(links);
	return result;
}

/* ---- connections -------------------------------------------------------- */

static int forget(const char *const argv[], int netns)
{
	struct run r = {.argv = argv, .netns = netns};
	int code = run_text(&r);

	if (code == 0 || (code == 1 && strstr(r.errors, " 0 flow entries")))
		return 0;
	if (code < 0)
		return fail_errno(EX_OSERR, "cannot run conntrack");
	return fail(EX_UNAVAILABLE, "cannot forget connections: conntrack: %s",
		    r.errors);
}

int link_forget(int netns, const char *option, const char *address)
{
	const char *const argv[] = {"conntrack", "-D", option, address, NULL};

	return forget(argv, netns);
}

int link_forget_port(const char *outer, const char *protocol, const char *port)
{
	const char *const argv[] = {
		"conntrack",	   "-D", "-r", outer, "-p", protocol,
		"--orig-port-dst", port, NULL};

	return forget(argv, 0);
}

/* ---- slots -------------------------------------------------------------- */

static int one_slot(int run, const char *number,
		    int (*each)(struct slot *slot, void *data), void *data)
{
	AUTO_CLOSE int dir = open_dir(run, number);
	struct slot slot = {.dir = dir};
	struct proc vmm;

	slot.number = (int)strtol(number, NULL, 16);
	if (dir < 0 || slot.number < 1 || slot.number > SLOT_MAX)
		return 0;
	if (read_value(dir, "vm", slot.name, sizeof(slot.name)) < 0 ||
	    !name_ok(slot.name))
		slot.name[0] = '\0';
	slot.held = lock_file(dir, LOCK_EX, 0) < 0;
	slot.alive = proc_read(dir, "vmm", &vmm) == 0 && proc_alive(&vmm);
	return each(&slot, data);
}

int each_slot(int run, int (*each)(struct slot *slot, void *data), void *data)
{
	DIR *stream;
	const struct dirent *entry;
	AUTO_CLOSE int again = open_dir(run, ".");
	int result = 0;

	stream = again < 0 ? NULL : fdopendir(again);
	if (!stream)
		return fail_errno(EX_OSERR, "cannot list the slots");
	steal_fd(&again);
	while ((entry = readdir(stream))) {
		const char *name = entry->d_name;
		int r = 0;

		if (strlen(name) == 4 && strspn(name, "0123456789abcdef") == 4)
			r = one_slot(run, name, each, data);
		if (result == 0)
			result = r;
	}
	closedir(stream);
	return result;
}
