/*
 * init.c - PID 1, from the kernel's first instruction of user space to the
 * agent's loop.
 *
 * 1. What the host chose comes from the kernel's command line; the image and
 *    the disk, which a guest has written, are looked at only after.
 * 2. The program goes on as the agent after switch_root, without an exec: its
 *    text is in the initramfs, where nothing of the image can replace it.
 * 3. With ark.init=PROGRAM the agent is a child, and PID 1 becomes the image's
 *    own init.  The agent keeps the '@' that asks systemd to spare it until the
 *    very end of a shutdown.
 */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ROOT "/root"
#define MODULES "/mods"

static char command_line[4096];

__attribute__((format(printf, 2, 0))) static void
line(const char *first, const char *fmt, va_list args)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s", first);

	n += vsnprintf(text + n, sizeof(text) - (size_t)n - 1, fmt, args);
	if (n > (int)sizeof(text) - 2)
		n = (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (write(STDERR_FILENO, text, (size_t)n) < 0)
		return; /* no console, nobody to tell */
}

void say(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("ark: ", fmt, args);
	va_end(args);
}

void fatal(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	line("ark: cannot boot: ", fmt, args);
	va_end(args);
	sync();
	reboot(RB_POWER_OFF);
	_exit(EX_OSERR);
}

/* The value of "key=" in the kernel's command line, or what is usual. */
static const char *word(const char *key, const char *usual)
{
	static char value[2][256];
	static unsigned turn;
	char *out = value[turn++ % ARRAY_LEN(value)];
	const char *at = command_line;
	size_t len = strlen(key);

	while (*at) {
		size_t end = strcspn(at, " \n");

		if (end > len && end - len < sizeof(value[0]) &&
		    strncmp(at, key, len) == 0) {
			memcpy(out, at + len, end - len);
			out[end - len] = '\0';
			return out;
		}
		at += end;
		at += strspn(at, " \n");
	}
	return usual;
}

static void first_mounts(void)
{
	int fd;

	mkdir("/dev", 0755);
	mkdir("/proc", 0555);
	mkdir("/sys", 0555);
	mount("devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755");
	mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	/* The kernel found no console for us if /dev was empty: then 0 to 2 are
	 * free, and must not become something else's. */
	fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC);
	for (int i = 0; i < 3 && fd >= 0; i++)
		if (dup2(fd, i) < 0 || fcntl(i, F_SETFD, 0) < 0)
			fatal("no console: %s", strerror(errno));
	if (fd > 2)
		close(fd);
	fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, command_line, sizeof(command_line) - 1) < 0)
		fatal("no command line: %s", strerror(errno));
	close(fd);
}

static int only_modules(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* In the order of their names, each removed when the kernel has it: that is
 * memory of the guest.  A device that is missing is no reason to fail. */
static void load_modules(void)
{
	AUTO_CLOSE int dir = open(MODULES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries = NULL;
	int n = scandir(MODULES, &entries, only_modules, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = entries[i]->d_name;
		int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

		if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
			say("module '%s': %s", name, strerror(errno));
		close(fd);
		unlinkat(dir, name, 0);
		free(entries[i]);
	}
	free(entries);
}

static void carry(const char *from, const char *to)
{
	mkdir(to, 0755);
	if (mount(from, to, NULL, MS_MOVE, NULL) < 0)
		fatal("cannot move '%s': %s", from, strerror(errno));
}

static void switch_root(void)
{
	carry("/dev", ROOT "/dev");
	carry("/proc", ROOT "/proc");
	carry("/sys", ROOT "/sys");
	unlink("/init");
	if (chdir(ROOT) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 ||
	    chroot(".") < 0 || chdir("/") < 0)
		fatal("cannot enter the root: %s", strerror(errno));
}

/* Returns in the agent only. */
static void become_init(char *program, char *own_name)
{
	char *argv[] = {program, NULL};

	switch (fork()) {
	case -1:
		fatal("cannot fork: %s", strerror(errno));
	case 0:
		setsid();
		own_name[0] = '@';
		return;
	default:
		execv(program, argv);
		fatal("cannot execute '%s': %s", program, strerror(errno));
	}
}

int main(int argc, char **argv)
{
	char program[256];

	if (argc > 0 && strcmp(argv[0], PROBE_NAME) == 0)
		return 0;
	if (getpid() != 1)
		return EX_USAGE;
	first_mounts();
	load_modules();
	disk_mount(ROOT, word("ark.basefs=", "ext4"));
	switch_root();
	system_mounts();
	cgroup_init();
	net_up();
	prctl(PR_SET_NAME, "ark-agent");
	snprintf(program, sizeof(program), "%s", word("ark.init=", ""));
	if (program[0])
		become_init(program, argv[0]);
	agent_main();
}
