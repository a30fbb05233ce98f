/*
 * proc.c - processes by pid AND start time: a pid alone is recycled, and a
 * tool that kills by a recycled pid kills somebody else's program.
 */
#include "ark.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* State letter and start time out of /proc/PID/stat.  The command name in it
 * is the process' own choice and may hold blanks and parentheses: the fields
 * are counted from the last ')'. */
static int read_stat(pid_t pid, char *state, unsigned long long *start)
{
	char path[32], text[1024];
	const char *field;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	field = strrchr(text, ')');
	errno = EINVAL;
	if (!field || field[1] != ' ')
		return -1;
	field += 2;
	*state = *field;
	for (int i = 3; i < 22; i++) {
		field = strchr(field, ' ');
		if (!field)
			return -1;
		field++;
	}
	*start = strtoull(field, NULL, 10);
	return 0;
}

int proc_of(pid_t pid, struct proc *p)
{
	char state;

	p->pid = pid;
	return read_stat(pid, &state, &p->start);
}

int proc_read(int dir, const char *name, struct proc *p)
{
	char text[64], *blank;
	long long pid;
	const char *why;

	if (read_value(dir, name, text, sizeof(text)) < 0)
		return -1;
	blank = strchr(text, ' ');
	errno = EINVAL;
	if (!blank)
		return -1;
	*blank = '\0';
	if (!parse_num(text, 1, INT32_MAX, &pid, &why))
		return -1;
	p->pid = (pid_t)pid;
	p->start = strtoull(blank + 1, NULL, 10);
	return 0;
}

int proc_write(int dir, const char *name, const struct proc *p)
{
	return write_value(dir, name, "%d %llu", (int)p->pid, p->start);
}

bool proc_alive(const struct proc *p)
{
	unsigned long long start;
	char state;

	if (p->pid <= 0 || read_stat(p->pid, &state, &start) < 0)
		return false;
	return start == p->start && state != 'Z' && state != 'X';
}

int proc_pidfd(const struct proc *p)
{
	AUTO_CLOSE int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	/* Opened first, compared second: now it cannot be recycled any more. */
	if (fd < 0)
		return -1;
	if (proc_alive(p))
		return steal_fd(&fd);
	errno = ESRCH;
	return -1;
}

int proc_dir(const struct proc *p)
{
	char path[32];
	AUTO_CLOSE int dir = -1;

	snprintf(path, sizeof(path), "/proc/%d", (int)p->pid);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -1;
	/* As above: opened first, compared second. */
	if (proc_alive(p))
		return steal_fd(&dir);
	errno = ESRCH;
	return -1;
}

void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before it could have sent that. */
	if (getppid() != parent)
		_exit(EX_OSERR);
}

static uint64_t clock_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t now_ms(void)
{
	return clock_ms(CLOCK_MONOTONIC);
}

uint64_t boot_ms(void)
{
	return clock_ms(CLOCK_BOOTTIME);
}
