/*
 * test-ram - guest memory saved out of processes that play the VMM, honest and
 * lying ones, and loaded again.  Root, because a full disk is a small tmpfs
 * that only this process sees, and another user tries the seals.
 */
#include "ram-play.h"

#include <sched.h>
#include <sys/mount.h>

/* ---- honest ones -------------------------------------------------------- */

static char *play_shared(int base)
{
	char *m = map(base, MAP_SHARED);

	write_pattern(m);
	return m;
}

/* Over the pattern: changed, zeroed, new, and given back. */
static char *play_private(int base)
{
	char *m = map(base, MAP_PRIVATE);

	m[300 * PAGE + 7] ^= 1;
	memset(m + 310 * PAGE, 0, PAGE);
	memset(m + 20 * PAGE, 'n', 3 * PAGE);
	memset(m + 499 * PAGE, 'b', 2 * PAGE);
	memset(m + 320 * PAGE, 'g', PAGE);
	if (madvise(m + 320 * PAGE, PAGE, MADV_DONTNEED) < 0)
		_exit(1);
	for (size_t i = 900; i < 1020; i += 2)
		m[i * PAGE] = 'o';
	return m;
}

static char *play_pieces(int base)
{
	char *m = play_private(base);

	if (madvise(m + 100 * PAGE, 500 * PAGE, MADV_DONTDUMP) < 0)
		_exit(1);
	return m;
}

static char *play_untouched(int base)
{
	return map(base, MAP_PRIVATE);
}

/* Memory that its owner may not read is still its memory. */
static char *play_no_access(int base)
{
	char *m = play_private(base);

	put_file(dir, "seen", m, SIZE);
	if (mprotect(m + 200 * PAGE, 400 * PAGE, PROT_NONE) < 0)
		_exit(1);
	return NULL;
}

static void test_shared(void)
{
	AUTO_CLOSE int base = ram_create(SIZE);
	struct stat st;

	is_num(save_as(play_shared, base, "ram"), 0, "shared memory: saved");
	ok(same("ram", "seen"), "it is what the VMM sees");
	is_num(blocks("ram"), DATA_PAGES * PAGE / 512, "zeros are holes");
	is_num((long long)stats.bytes, DATA_PAGES * PAGE, "bytes are counted");
	is_num((long long)stats.private_pages, 0, "no page of its own");
	fstatat(dir, "ram", &st, 0);
	is_num(st.st_mode & 07777, 0600, "nobody else may read it");
	is_num(save_as(play_shared, base, "ram"), -EX_CANTCREAT,
	       "a file that exists is not replaced");
	ok(told("cannot make 'ram': File exists"), "and told");
	ok(same("ram", "seen"), "nor changed");
	unlinkat(dir, "ram", 0);
}

static void test_sizes(void)
{
	AUTO_CLOSE int base = with_pattern();
	struct proc p = start(play_private, base);

	is_num(ram_save(&p, base, SIZE - PAGE, dir, "ram", &stats),
	       -EX_UNAVAILABLE, "memory of another size");
	ok(told("it has another size"), "it is told");
	is_num(ram_save(&p, base, SIZE + 1, dir, "ram", &stats),
	       -EX_UNAVAILABLE, "half a page");
	ok(told("it has another size"), "it is told");
	if (ftruncate(base, SIZE / 2) < 0)
		exit(99);
	is_num(ram_save(&p, base, SIZE, dir, "ram", &stats), -EX_UNAVAILABLE,
	       "a memfd cut short");
	ok(told("it has another size") && faccessat(dir, "ram", F_OK, 0) < 0,
	   "told, no file");
	stop(&p);
}

static void test_dead(void)
{
	AUTO_CLOSE int base = with_pattern();
	struct proc p = start(play_shared, base), other = p;

	other.start++;
	is_num(ram_save(&other, base, SIZE, dir, "ram", &stats),
	       -EX_UNAVAILABLE, "a process with the pid of a dead one");
	ok(told("the VMM has ended") && faccessat(dir, "ram", F_OK, 0) < 0,
	   "told, no file");
	kill(p.pid, SIGKILL);
	waitid(P_PID, (id_t)p.pid, NULL, WEXITED | WNOWAIT);
	is_num(ram_save(&p, base, SIZE, dir, "ram", &stats), -EX_UNAVAILABLE,
	       "a zombie");
	ok(told("the VMM has ended") && faccessat(dir, "ram", F_OK, 0) < 0,
	   "told, no file");
	stop(&p);
	is_num(ram_save(&p, base, SIZE, dir, "ram", &stats), -EX_UNAVAILABLE,
	       "a process that is gone");
	ok(told("the VMM has ended") && faccessat(dir, "ram", F_OK, 0) < 0,
	   "told, no file");
}

/* A tmpfs that holds less than the pattern, in a mount namespace of ours. */
static void test_full_disk(void)
{
	AUTO_CLOSE int base = with_pattern();
	AUTO_CLOSE int small = -1;
	struct proc p = start(play_private, base);

	mkdirat(dir, "small", 0700);
	if (fchdir(dir) < 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", "small", "tmpfs", 0, "size=256k") < 0)
		die(EX_OSERR, "cannot mount: %s", strerror(errno));
	/* By the way of this namespace, which `dir` is older than. */
	small = open_dir(AT_FDCWD, "small");
	is_num(ram_save(&p, base, SIZE, small, "ram", &stats), -EX_IOERR,
	       "a full disk");
	ok(told("cannot write 'ram', which may need"), "told with the size");
	ok(faccessat(small, "ram", F_OK, 0) < 0, "there is no half file");
	stop(&p);
	close(steal_fd(&small));
	umount("small");
}

/* ---- load --------------------------------------------------------------- */

/* Everything that could change it; 0 when all is refused. */
static int attack(int fd)
{
	static const char text[] = "attack";
	void *m = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	int hits = 0;

	hits += pwrite(fd, text, sizeof(text), 0) >= 0;
	hits += ftruncate(fd, SIZE / 2) == 0;
	hits += ftruncate(fd, 2 * SIZE) == 0;
	hits += fallocate(fd, 0, 0, 2 * SIZE) == 0;
	hits += fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			  SIZE) == 0;
	hits += mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
	hits += m != MAP_FAILED &&
		mprotect(m, PAGE, PROT_READ | PROT_WRITE) == 0;
	hits += fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0;
	if (m != MAP_FAILED)
		munmap(m, PAGE);
	return hits;
}

/* As a VMM does that insists on a file that it can write. */
static int attack_reopened(int ram)
{
	char path[32];
	AUTO_CLOSE int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", ram);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? 100 : attack(fd);
}

static int attack_as_nobody(int ram)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(setresuid(65534, 65534, 65534) < 0
			      ? 101
			      : attack_reopened(ram));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 102;
}

static void make_snapshot(const char *name)
{
	AUTO_CLOSE int base = with_pattern();

	if (save_as(play_private, base, name) < 0)
		exit(99);
}

static void test_seals(void)
{
	AUTO_CLOSE int ram = -1;

	make_snapshot("ram");
	ram = ram_load(dir, "ram", SIZE);
	ok(ram >= 0, "loaded");
	is_num(attack(ram), 0, "nothing changes it");
	is_num(attack_reopened(ram), 0, "nor when opened again for writing");
	is_num(attack_as_nobody(ram), 0, "nor by another user");
	is_num(fcntl(ram, F_GETFD), FD_CLOEXEC, "not inherited by accident");
	is_num(save_as(play_untouched, ram, "again"), 0, "saved again");
	ok(same("ram", "again"), "it is the same");
	is_num(blocks("again"), blocks("ram"), "and as sparse");
	unlinkat(dir, "ram", 0);
	unlinkat(dir, "again", 0);
}

static const struct {
	const char *name;
	size_t size;
	int error;
} refused[] = {
	{"ram", SIZE + PAGE, EINVAL}, {"ram", SIZE - PAGE, EINVAL},
	{"none", SIZE, ENOENT},	      {"link", SIZE, ELOOP},
	{"fifo", SIZE, EINVAL},
};

static void test_load_refuses(void)
{
	make_snapshot("ram");
	put_link("ram", dir, "link");
	mkfifoat(dir, "fifo", 0600);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		const char *name = refused[i].name;

		is_num(ram_load(dir, name, refused[i].size), -1, name);
		is_num(errno, refused[i].error, "is refused");
	}
	unlinkat(dir, "ram", 0);
}

/* Snapshots of clones of snapshots: every depth adds its page. */
static char *play_next(int base)
{
	char *m = map(base, MAP_PRIVATE);

	for (size_t i = 0; i < 1000; i += 100)
		if (m[i * PAGE] == 0) {
			memset(m + i * PAGE, 'd', PAGE);
			break;
		}
	return m;
}

static void test_depth(void)
{
	AUTO_CLOSE int empty = ram_create(SIZE);

	is_num(save_as(play_untouched, empty, "ram"), 0, "memory never used");
	is_num(blocks("ram"), 0, "takes no room");
	for (int depth = 1; depth <= 4; depth++) {
		AUTO_CLOSE int ram = ram_load(dir, "ram", SIZE);

		unlinkat(dir, "ram", 0);
		is_num(save_as(play_next, ram, "ram"), 0, "a depth more");
		ok(same("ram", "seen"), "depth %d is what it sees", depth);
		is_num((long long)stats.private_pages, 1, "its own page");
	}
	unlinkat(dir, "ram", 0);
}

int main(void)
{
	progname = "test";
	dir = tap_dir();
	catch_stderr();
	test_shared();
	test_saved(play_private, "private memory", 67);
	test_saved(play_pieces, "several mappings that follow", 67);
	test_saved(play_no_access, "memory without access", 67);
	test_saved(play_untouched, "a clone that did nothing", 0);
	test_sizes();
	test_dead();
	test_seals();
	test_load_refuses();
	test_depth();
	test_full_disk();
	return done();
}
