/*
 * test-quota - limits: read, counted, and never passed, by however many at
 * once and whoever of them is killed.
 */
#include "tap.h"

#include "quota.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define MANY 12

static int dir; /* holds root and run */
static struct quota_refusal why;

static void value(const char *path, long long n)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%lld\n", n);

	put_file(dir, path, text, (size_t)len);
}

static void sandbox(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "root/vm/%s", name);
	mkdirat(dir, path, 0700);
	snprintf(path, sizeof(path), "root/vm/%s/cpus", name);
	value(path, 2);
	snprintf(path, sizeof(path), "root/vm/%s/memory", name);
	value(path, 1 << 20);
	snprintf(path, sizeof(path), "root/vm/%s/disk-size", name);
	value(path, 1 << 24);
}

static void fresh(const char *quota)
{
	char token[TOKEN_LEN + 1];

	remove_tree(dir, "root");
	remove_tree(dir, "run");
	mkdirat(dir, "root", 0700);
	mkdirat(dir, "root/vm", 0700);
	mkdirat(dir, "root/snap", 0700);
	if (auth_add("alice", "main", SCOPE_MANAGE, quota, false, token) < 0)
		exit(99);
}

/* A sandbox named so, or with NULL one of which nobody knows the name. */
static int claim(const char *name, struct quota_claim *c)
{
	const struct quota_ask ask = {
		.amount = {[QUOTA_SANDBOXES] = 1,
			   [QUOTA_CPUS] = 2,
			   [QUOTA_MEMORY] = 1 << 20,
			   [QUOTA_DISK] = 1 << 24},
		.sandbox = name,
	};

	return quota_claim("alice", &ask, c, &why);
}

static uint64_t used(enum quota kind)
{
	uint64_t n[QUOTA_KINDS];

	return quota_used("alice", n) < 0 ? QUOTA_NONE : n[kind];
}

/* ---- words -------------------------------------------------------------- */

static void test_parse(void)
{
	static const char *const bad[] = {
		"",	      "x",
		"x=1",	      "sandboxes",
		"sandboxes=", "sandboxes=-1",
		"cpus=1.5",   "memory=much",
		"rate=0",     "burst=0",
		"cpus=1,",    ",cpus=1",
		"cpus=1 ",    "rate=100001",
		"CPUS=1",     "cpus=2147483648",
	};
	struct quota_limits l = QUOTA_UNLIMITED;

	ok(!quota_parse("sandboxes=0,memory=2G,rate=5,cpus=none", &l),
	   "several");
	ok(l.limit[QUOTA_SANDBOXES] == 0 &&
		   l.limit[QUOTA_MEMORY] == 2ULL << 30 &&
		   l.limit[QUOTA_RATE] == 5 &&
		   l.limit[QUOTA_CPUS] == QUOTA_NONE &&
		   l.limit[QUOTA_DISK] == QUOTA_NONE,
	   "are what they say");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(quota_parse(bad[i], &l) != NULL, "bad '%s'", bad[i]);
}

static void test_limits(void)
{
	struct quota_limits l;

	fresh("sandboxes=3,disk=1G");
	is_num(quota_limits("alice", &l), 0, "read");
	ok(l.limit[QUOTA_SANDBOXES] == 3 && l.limit[QUOTA_DISK] == 1 << 30 &&
		   l.limit[QUOTA_CPUS] == QUOTA_NONE,
	   "what was written");
	put_file(dir, "root/auth/alice/quota/cpus", "x\n", 2);
	put_file(dir, "root/auth/alice/quota/memory", "-1\n", 3);
	quota_limits("alice", &l);
	ok(l.limit[QUOTA_CPUS] == 0 && l.limit[QUOTA_MEMORY] == 0,
	   "a damaged one is 0");
	quota_limits("nobody", &l);
	ok(l.limit[QUOTA_CPUS] == QUOTA_NONE, "of a tenant without any");
	ok(told_nothing(), "quietly");
}

/* ---- counting ----------------------------------------------------------- */

static void test_count(void)
{
	struct stat st;

	fresh(NULL);
	sandbox("alice.a");
	sandbox("alice.b");
	sandbox("alicex.c");
	sandbox("bob.alice.d");
	sandbox("alice");
	mkdirat(dir, "root/vm/alice.empty", 0700);
	mkdirat(dir, "root/snap/alice.s", 0700);
	put_file(dir, "root/snap/alice.s/ram", "x", 1);
	fstatat(dir, "root/snap/alice.s/ram", &st, 0);
	is_num((long long)used(QUOTA_SANDBOXES), 3, "sandboxes");
	is_num((long long)used(QUOTA_CPUS), 4, "cpus");
	is_num((long long)used(QUOTA_MEMORY), 2 << 20, "memory");
	is_num((long long)used(QUOTA_SNAPSHOTS), 1, "snapshots");
	is_num((long long)used(QUOTA_DISK), (2 << 24) + st.st_blocks * 512,
	       "disk");
	is_num((long long)used(QUOTA_EXECS), 0, "execs");
}

static void test_claims(void)
{
	struct quota_claim a = CLAIM_NONE, b = CLAIM_NONE, c = CLAIM_NONE;
	char text[128];

	fresh("sandboxes=2");
	is_num(claim("alice.a", &a), 0, "the first");
	is_num((long long)used(QUOTA_SANDBOXES), 1, "counts");
	is_num((long long)used(QUOTA_CPUS), 2, "with all it asks for");
	sandbox("alice.a");
	is_num((long long)used(QUOTA_SANDBOXES), 1,
	       "once, when what it makes is there");
	is_num(claim(NULL, &b), 0, "the second");
	is_num((long long)used(QUOTA_SANDBOXES), 2, "counts");
	is_num(claim("alice.c", &c), 1, "the third is refused");
	ok(c.fd < 0 && why.kind == QUOTA_SANDBOXES && why.limit == 2 &&
		   why.used == 2 && why.asked == 1 && why.retry_after > 0,
	   "with the numbers");
	quota_text(&why, text, sizeof(text));
	is_str(text, "quota of sandboxes: 2 of 2 used, 1 asked for",
	       "in a sentence");
	quota_release(&b);
	is_num(claim("alice.c", &c), 0, "a claim that was given back");
	quota_release(&c);
	quota_release(&a);
	quota_release(&a);
	is_num((long long)used(QUOTA_SANDBOXES), 1, "what was made stays");
	is_num(claim("alice.d", &c), 0, "one more fits");
	sandbox("alice.d");
	quota_release(&c);
	is_num(claim("alice.e", &c), 1, "and no more");
	remove_tree(dir, "root/vm/alice.a");
	is_num(claim("alice.e", &c), 0, "but for what was removed");
	quota_release(&c);
}

/* A limit that was lowered does not keep what takes nothing of it out. */
static void test_over(void)
{
	const struct quota_ask exec = {.amount = {[QUOTA_EXECS] = 1}};
	struct quota_claim c = CLAIM_NONE, d = CLAIM_NONE;

	fresh("sandboxes=1,execs=1");
	sandbox("alice.a");
	sandbox("alice.b");
	is_num(quota_claim("alice", &exec, &c, &why), 0, "an exec");
	is_num(quota_claim("alice", &exec, &d, &why), 1, "a second one");
	ok(why.kind == QUOTA_EXECS && why.retry_after == 1,
	   "may be tried soon");
	quota_release(&c);
	is_num(claim("alice.c", &c), 1, "a sandbox");
	ok(why.used == 2 && why.limit == 1, "more than allowed are used");
}

static void test_removed(void)
{
	struct quota_claim c = CLAIM_NONE;
	const struct quota_ask ask = {.amount = {[QUOTA_EXECS] = 1}};

	fresh(NULL);
	auth_remove("alice", NULL, false);
	is_num(claim("alice.a", &c), -EX_NOINPUT, "a removed tenant");
	ok(told("no such tenant 'alice'"), "told");
	is_num(quota_claim("host", &ask, &c, &why), 0,
	       "the host needs no directory");
	quota_release(&c);
}

/* ---- processes ---------------------------------------------------------- */

/* A child that claims, tells by its exit code or by holding on until it is
 * killed, and makes the sandbox or not. */
static pid_t claimant(const char *name, bool make, bool hold, int ready)
{
	pid_t pid = fork();
	struct quota_claim c = CLAIM_NONE;
	int r;

	if (pid != 0)
		return pid;
	r = claim(name, &c);
	if (r == 0 && make)
		sandbox(name);
	if (write(ready, &r, sizeof(r)) != sizeof(r))
		_exit(99);
	while (r == 0 && hold)
		pause();
	if (r == 0)
		quota_release(&c);
	_exit(r == 0 ? 0 : 1);
}

/* MANY at once where 5 fit: 5 are let in, whoever they are. */
static void test_parallel(void)
{
	pid_t pids[MANY];
	int pipes[2], in = 0, refused = 0;

	fresh("sandboxes=5");
	if (pipe2(pipes, O_CLOEXEC) < 0)
		exit(99);
	for (int i = 0; i < MANY; i++) {
		char name[32];

		snprintf(name, sizeof(name), "alice.p%d", i);
		pids[i] = claimant(name, i % 2, true, pipes[1]);
	}
	for (int i = 0; i < MANY; i++) {
		int r = -1;

		if (read(pipes[0], &r, sizeof(r)) == sizeof(r) && r == 0)
			in++;
		else if (r == 1)
			refused++;
	}
	is_num(in, 5, "five are let in");
	is_num(refused, MANY - 5, "the others are refused");
	is_num((long long)used(QUOTA_SANDBOXES), 5, "five count");
	for (int i = 0; i < MANY; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	in = 0;
	for (int i = 1; i < MANY; i += 2) {
		char path[64];

		snprintf(path, sizeof(path), "root/vm/alice.p%d", i);
		in += faccessat(dir, path, F_OK, 0) == 0;
	}
	is_num((long long)used(QUOTA_SANDBOXES), in,
	       "after kill -9 what they made counts, and nothing else");
	close(pipes[0]);
	close(pipes[1]);
}

/* Who has claimed is killed; the command that inherited it goes on. */
static void test_inherited(void)
{
	int ready[2], end[2];
	pid_t parent;
	int r;

	fresh("sandboxes=1");
	if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(end, 0) < 0)
		exit(99);
	parent = fork();
	if (parent == 0) {
		struct quota_claim c = CLAIM_NONE;

		r = claim("alice.a", &c);
		if (fork() == 0) {
			close(end[1]);
			dup2(end[0], STDIN_FILENO);
			execlp("cat", "cat", (char *)NULL);
			_exit(127);
		}
		close(end[0]);
		close(end[1]);
		if (write(ready[1], &r, sizeof(r)) != sizeof(r))
			_exit(99);
		pause();
	}
	close(end[0]);
	if (read(ready[0], &r, sizeof(r)) != sizeof(r))
		exit(99);
	is_num(r, 0, "claimed");
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	is_num((long long)used(QUOTA_SANDBOXES), 1,
	       "counts while the command runs");
	close(end[1]);
	for (int i = 0; i < 500 && used(QUOTA_SANDBOXES); i++)
		usleep(10000);
	is_num((long long)used(QUOTA_SANDBOXES), 0, "and then no longer");
	close(ready[0]);
	close(ready[1]);
}

/* Killed at any time, over and over: never too many, and nothing stays. */
static void test_killed(void)
{
	int pipes[2], over = 0, rounds = 60;

	fresh("sandboxes=3");
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
		exit(99);
	for (int round = 0; round < rounds; round++) {
		pid_t pids[6];

		for (int i = 0; i < 6; i++) {
			char name[32];

			snprintf(name, sizeof(name), "alice.k%d", i);
			pids[i] = claimant(name, true, true, pipes[1]);
		}
		usleep((useconds_t)(round * 100));
		over += used(QUOTA_SANDBOXES) > 3;
		for (int i = 0; i < 6; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < 6; i++) {
			char path[64];

			waitpid(pids[i], NULL, 0);
			snprintf(path, sizeof(path), "root/vm/alice.k%d", i);
			if (round % 3 == 0)
				remove_tree(dir, path);
		}
		over += used(QUOTA_SANDBOXES) > 3;
	}
	is_num(over, 0, "never more than the limit");
	remove_tree(dir, "root/vm");
	is_num((long long)used(QUOTA_SANDBOXES), 0, "no claim of a dead one");
	ok(told_nothing(), "quietly");
	close(pipes[0]);
	close(pipes[1]);
}

/* ---- rate --------------------------------------------------------------- */

static void test_bucket(void)
{
	const uint64_t second = 1000000000, now = 1000 * second;
	uint64_t at = 0, wait;
	int in = 0;

	while (in < 100 && quota_bucket(&at, now, 2, 5) == 0)
		in++;
	is_num(in, 5, "a burst of five");
	wait = quota_bucket(&at, now, 2, 5);
	is_num((long long)wait, (long long)second / 2, "then half a second");
	is_num((long long)quota_bucket(&at, now + wait, 2, 5), 0, "is right");
	ok(quota_bucket(&at, now + wait, 2, 5) > 0, "for one");
	in = 0;
	for (uint64_t t = 0; t < 100 * second; t += second / 10)
		in += quota_bucket(&at, now + second + t, 2, 5) == 0;
	ok(in >= 200 && in <= 205, "two per second in the long run: %d", in);
	in = 0;
	while (in < 100 && quota_bucket(&at, now * 100, 2, 5) == 0)
		in++;
	is_num(in, 5, "idle time is no more than a burst");
	at = UINT64_MAX / 2;
	quota_bucket(&at, now, 2, 5);
	ok(at <= now + 3 * second, "a time that cannot be is mended");
}

static void test_rate(void)
{
	int refused = 0;
	char text[128];

	fresh("rate=1,burst=3");
	for (int i = 0; i < 10; i++)
		refused += quota_rate("alice", &why) == 1;
	is_num(refused, 7, "three of ten at once");
	ok(why.kind == QUOTA_RATE && why.limit == 1 && why.retry_after == 1,
	   "with the numbers");
	quota_text(&why, text, sizeof(text));
	is_str(text, "quota of requests: more than 1 per second",
	       "in a sentence");
	put_file(dir, "run/tenant/alice/bucket", "garbage", 7);
	is_num(quota_rate("alice", &why), 0, "a damaged bucket is empty");
	fresh(NULL);
	is_num(quota_rate("alice", &why), 0, "no limit");
	ok(faccessat(dir, "run/tenant/alice/bucket", F_OK, 0) < 0, "no bucket");
}

/* All processes have one bucket. */
static void test_rate_parallel(void)
{
	int in = 0, status;

	fresh("rate=1,burst=10");
	for (int i = 0; i < MANY; i++)
		if (fork() == 0) {
			int n = 0;

			for (int j = 0; j < 5; j++)
				n += quota_rate("alice", &why) == 0;
			_exit(n);
		}
	while (wait(&status) > 0)
		in += WEXITSTATUS(status);
	/* A second may pass meanwhile. */
	ok(in >= 10 && in <= 13, "ten of sixty at once: %d", in);
}

int main(void)
{
	catch_stderr();
	dir = tap_ark();
	test_parse();
	test_limits();
	test_count();
	test_claims();
	test_over();
	test_removed();
	test_parallel();
	test_inherited();
	test_killed();
	test_bucket();
	test_rate();
	test_rate_parallel();
	return done();
}
