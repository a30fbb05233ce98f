/*
 * identity.c - who this guest is from now on.
 *
 * After a restore the guest is a copy: its random numbers, its clock and its
 * name are those of its siblings.  In this order, fail closed:
 *
 * 1. The old generation is void first: whatever fails, nothing runs before an
 *    identity has been taken on whole.
 * 2. The RNG before anything that draws from it (machine-id): the seed is
 *    credited and the CRNG is made to use it at once; without the second step
 *    siblings give out equal numbers for up to a minute.
 * 3. The clock, the names, the machine-id, then the hooks of the image
 *    (hooks.c), and only then the generation file that programs in the guest
 *    watch, and our own copy.
 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <linux/random.h>

#define HOSTS_MAX 65536
#define OWN_LINE "127.0.1.1\t"

static unsigned char current[GENERATION_LEN];
static bool known, had;

const unsigned char *identity(void)
{
	return known ? current : NULL;
}

bool identity_had(void)
{
	return had;
}

static int reseed(const unsigned char seed[SEED_LEN])
{
	struct { /* rand_pool_info with its data */
		int bits, size;
		unsigned char data[SEED_LEN];
	} pool = {.bits = 8 * SEED_LEN, .size = SEED_LEN};
	AUTO_CLOSE int fd = open("/dev/random", O_RDONLY | O_CLOEXEC);

	memcpy(pool.data, seed, SEED_LEN);
	if (fd < 0 || ioctl(fd, RNDADDENTROPY, &pool) < 0)
		return -1;
	return ioctl(fd, RNDRESEEDCRNG);
}

static int set_clock(uint64_t ns)
{
	struct timespec now = {.tv_sec = (time_t)(ns / 1000000000),
			       .tv_nsec = (long)(ns % 1000000000)};

	return clock_settime(CLOCK_REALTIME, &now);
}

/* The user's own lines stay; the one of the former name goes. */
static size_t filter_hosts(char *text, size_t len)
{
	size_t kept = 0;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t line = end ? (size_t)(end - text) + 1 - at : len - at;

		if (line < sizeof(OWN_LINE) ||
		    memcmp(text + at, OWN_LINE, sizeof(OWN_LINE) - 1) != 0) {
			memmove(text + kept, text + at, line);
			kept += line;
		}
		at += line;
	}
	if (kept > 0 && text[kept - 1] != '\n')
		text[kept++] = '\n';
	return kept;
}

static int write_hosts(const char *name)
{
	static char text[HOSTS_MAX + 128];
	AUTO_CLOSE int fd =
		open("/etc/hosts", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n = -1;
	size_t len;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		if (st.st_size > HOSTS_MAX)
			return 0; /* somebody's list, better left alone */
		n = read(fd, text, HOSTS_MAX);
	}
	if (n <= 0)
		n = snprintf(text, sizeof(text),
			     "127.0.0.1\tlocalhost\n::1\tlocalhost\n");
	len = filter_hosts(text, (size_t)n);
	len += (size_t)snprintf(text + len, sizeof(text) - len, OWN_LINE "%s\n",
				name);
	return write_file("/etc/hosts", 0644, text, len);
}

/* Random, of the form that sd-id128 writes (a UUID of version 4). */
static int write_machine_id(void)
{
	unsigned char id[16];
	char text[34];

	if (getrandom(id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		return -1;
	id[6] = (id[6] & 0x0f) | 0x40;
	id[8] = (id[8] & 0x3f) | 0x80;
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	text[32] = '\n';
	return write_file("/etc/machine-id", 0444, text, 33);
}

void identity_text(const unsigned char g[GENERATION_LEN], char text[37])
{
	size_t len = 0;

	for (size_t i = 0; i < GENERATION_LEN; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			text[len++] = '-';
		snprintf(text + len, 3, "%02x", g[i]);
		len += 2;
	}
}

static int write_generation(const unsigned char g[GENERATION_LEN])
{
	char text[37];

	identity_text(g, text);
	text[36] = '\n';
	mkdir("/run/ark", 0755);
	return write_file("/run/ark/generation", 0444, text, sizeof(text));
}

static int refuse(const char *what, char *why, size_t size)
{
	snprintf(why, size, "%s: %s", what, strerror(errno));
	return -1;
}

int identity_take(const struct request *r, char *why, size_t size)
{
	known = false;
	if (reseed(r->seed) < 0)
		return refuse("random numbers", why, size);
	if (set_clock(r->time) < 0)
		return refuse("clock", why, size);
	if (sethostname(r->hostname, strlen(r->hostname)) < 0)
		return refuse("host name", why, size);
	mkdir("/etc", 0755);
	if (write_hosts(r->hostname) < 0)
		return refuse("/etc/hosts", why, size);
	if (write_machine_id() < 0)
		return refuse("/etc/machine-id", why, size);
	return 0;
}

int identity_confirm(const struct request *r, char *why, size_t size)
{
	if (write_generation(r->generation) < 0)
		return refuse("/run/ark/generation", why, size);
	memcpy(current, r->generation, GENERATION_LEN);
	known = had = true;
	return 0;
}
