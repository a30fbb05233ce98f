/*
 * usage.c - read what a VMM takes out of /proc, which nobody can lie in.
 */
#include "usage.h"
#include "disk.h"
#include "plan.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

/* ---- pure --------------------------------------------------------------- */

bool usage_parse_stat(const char *text, uint64_t *ticks)
{
	/* Fields 14 and 15, counted from behind the name in parentheses, which
	 * may hold anything. */
	const char *at = strrchr(text, ')');
	uint64_t user, kernel;

	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
			  "%" SCNu64 " %" SCNu64,
			  &user, &kernel) != 2)
		return false;
	*ticks = user + kernel;
	return true;
}

uint64_t usage_permille(uint64_t cpu_ms, uint64_t up_ms)
{
	return up_ms ? cpu_ms * 1000 / up_ms : 0;
}

bool usage_parse_net(const char *text, const char *interface, uint64_t *rx,
		     uint64_t *tx)
{
	size_t len = strlen(interface);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += strspn(line, "\n ");
		if (strncmp(line, interface, len) == 0 && line[len] == ':')
			return sscanf(line + len + 1,
				      " %" SCNu64
				      " %*u %*u %*u %*u %*u %*u %*u %" SCNu64,
				      rx, tx) == 2;
	}
	return false;
}

bool usage_parse_smaps(const char *text, uint64_t *bytes)
{
	static const char *const keys[] = {
		"\nPrivate_Clean:", "\nPrivate_Dirty:", "\nSwap:"};

	*bytes = 0;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const char *at = strstr(text, keys[i]);
		uint64_t kib;

		if (!at ||
		    sscanf(at + strlen(keys[i]), " %" SCNu64 " kB", &kib) != 1)
			return false;
		*bytes += kib * 1024;
	}
	return true;
}

/* ---- files -------------------------------------------------------------- */

static bool proc_text(int proc, const char *name, char *text, size_t size)
{
	return read_file(proc, name, text, size) > 0;
}

static uint64_t ticks_ms(uint64_t ticks)
{
	return ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
}

static bool read_cpu(int proc, struct usage *u)
{
	char text[1024];
	uint64_t ticks;

	if (!proc_text(proc, "stat", text, sizeof(text)) ||
	    !usage_parse_stat(text, &ticks))
		return false;
	u->cpu_ms = ticks_ms(ticks);
	return true;
}

static bool read_resident(int proc, struct usage *u)
{
	char text[256];
	uint64_t pages;

	if (!proc_text(proc, "statm", text, sizeof(text)) ||
	    sscanf(text, "%*u %" SCNu64, &pages) != 1)
		return false;
	u->resident = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

/* Of the namespace that the VMM is in: its uplink, and nothing of others. */
static bool read_net(int proc, struct usage *u)
{
	char text[8192];

	return proc_text(proc, "net/dev", text, sizeof(text)) &&
	       usage_parse_net(text, UPLINK, &u->rx, &u->tx);
}

static bool read_private(int proc, struct usage *u)
{
	char text[4096];

	return proc_text(proc, "smaps_rollup", text, sizeof(text)) &&
	       usage_parse_smaps(text, &u->private);
}

void usage_read(const struct sandbox *s, unsigned what, struct usage *u)
{
	static const struct {
		unsigned bit;
		bool (*read)(int proc, struct usage *u);
	} parts[] = {
		{USAGE_CPU, read_cpu},
		{USAGE_RESIDENT, read_resident},
		{USAGE_NET, read_net},
		{USAGE_PRIVATE, read_private},
	};
	AUTO_CLOSE int proc =
		what & ~USAGE_DISK && s->vmm.pid ? proc_dir(&s->vmm) : -1;
	struct stat st;

	*u = (struct usage){0};
	u->up_ms = boot_ms() - ticks_ms(s->vmm.start);
	if (what & USAGE_DISK &&
	    fstatat(s->dir, "disk", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		u->disk = allocated_bytes(st.st_blocks);
		u->known |= USAGE_DISK;
	}
	for (size_t i = 0; proc >= 0 && i < ARRAY_LEN(parts); i++)
		if (what & parts[i].bit && parts[i].read(proc, u))
			u->known |= parts[i].bit;
}
