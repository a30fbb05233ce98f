/*
 * test-audit-crash - writers of the audit log that are killed, and disks that
 * are full.
 *
 * With words it is a writer for tests/audit.bats:
 *	test-audit-crash write COUNT ACTION [OBJECT]
 */
#include "audit-log.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The state between any two steps of a writer, put there. */
static void test_between(void)
{
	char head[256];
	ssize_t len;

	ten();
	len = read_file(dir, "root/audit.head", head, sizeof(head));
	record("stop", "alice.01");
	record("stop", "alice.02");
	put_file(dir, "root/audit.head", head, (size_t)len);
	ok(good(12), "lines behind the head are good");
	record("stop", "alice.03");
	ok(good(13), "and are joined");
	read_log();
	len = (ssize_t)strlen(text);
	memcpy(text + len, "{\"seq\":14,\"ti", 13);
	write_log((size_t)len + 13);
	found("a torn line", "audit.log:14: ends within a line");
	record("stop", "alice.04");
	ok(good(14), "is cut off by the next writer");
	unlinkat(dir, "root/audit.head", 0);
	record("stop", "alice.05");
	ok(good(15), "a lost head is found again");
	put_file(dir, "root/audit.head", "garbage", 7);
	record("stop", "alice.06");
	ok(good(16), "and a damaged one");
}

/* Somebody cut the log: what comes after does not hide it. */
static void test_goes_on(void)
{
	ten();
	write_log((size_t)(line_at(7) - text));
	record("stop", "alice.01");
	found("cut, then written to", "audit.log:8: record 11 after 7: those "
				      "between are missing");
}

static void test_notes(void)
{
	struct audit a = {.tenant = "alice",
			  .token = "t",
			  .address = "::1",
			  .action = "fork",
			  .object = "alice.x"};
	struct audit_record r;
	pid_t pid;

	fresh();
	record("start", "alice.01");
	pid = fork();
	if (pid == 0) {
		audit_begin(&a);
		raise(SIGKILL);
	}
	waitpid(pid, NULL, 0);
	is_num(lines(), 1, "no line of a request that was killed, yet");
	record("start", "alice.02");
	is_num(lines(), 3, "the next writer makes it");
	ok(audit_parse(line_at(1), strcspn(line_at(1), "\n"), &r) == NULL &&
		   r.result == -1 && r.ms == -1 &&
		   strcmp(r.action, "fork") == 0 &&
		   strcmp(r.object, "alice.x") == 0,
	   "with result null");
	ok(good(3), "good");
	record("start", "alice.03");
	is_num(lines(), 4, "once");
	/* Killed after its line, before its note was gone. */
	read_log();
	audit_parse(line_at(3), strcspn(line_at(3), "\n"), &r);
	{
		char path[64];

		snprintf(path, sizeof(path), "run/audit/%s", r.id);
		put_file(dir, path, "t\na\nb\nc\nd\ne\n", 12);
		put_file(dir, "run/audit/0123456789abcdef", "half", 4);
		record("start", "alice.04");
		is_num(lines(), 5, "a note whose line is there makes none");
		ok(faccessat(dir, path, F_OK, 0) < 0, "and goes");
	}
	ok(good(5), "good");
	ok(unlinkat(dir, "run/audit", AT_REMOVEDIR) == 0, "no note is left");
}

/* A request in flight is not taken for a dead one. */
static void test_flight(void)
{
	struct audit a = {.tenant = "alice", .action = "slow"};

	fresh();
	is_num(audit_begin(&a), 0, "one begins");
	record("start", "alice.01");
	record("start", "alice.02");
	is_num(lines(), 2, "others come and go");
	is_num(audit_end(&a, 201), 0, "it ends");
	is_num(lines(), 3, "one line");
	ok(good(3), "good");
}

/* Writers at once, killed at any time. */
static void test_killed(void)
{
	struct audit_check c;
	int bad = 0;

	fresh();
	for (int round = 0; round < 40; round++) {
		pid_t pids[4];

		for (int i = 0; i < 4; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				for (;;)
					record("exec", "alice.x");
		}
		usleep((useconds_t)(2000 + round * 300));
		for (int i = 0; i < 4; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < 4; i++)
			waitpid(pids[i], NULL, 0);
		bad += verify(&c) != 0;
	}
	is_num(bad, 0, "the log is good after each kill");
	record("end", "");
	verify(&c);
	ok(c.last == lines() && c.last > 40, "no line is missing: %lld",
	   c.last);
	ok(unlinkat(dir, "run/audit", AT_REMOVEDIR) == 0, "no note is left");
	ok(told_nothing(), "and nothing is told");
}

/* A disk that is full: told, and the log as it was. */
static void test_full(void)
{
	struct rlimit small;
	int status = 0;
	pid_t pid;

	ten();
	/* Half a line fits. */
	small.rlim_cur = small.rlim_max = strlen(text) + 100;
	pid = fork();
	if (pid == 0) {
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &small);
		_exit(-record("start", "alice.full"));
	}
	waitpid(pid, &status, 0);
	is_num(WEXITSTATUS(status), EX_IOERR, "no room for the line");
	ok(told("cannot write the audit log"), "told");
	ok(good(10), "nothing torn is left");
	record("start", "alice.11");
	ok(good(12), "later it is written, and that one too");
}

static int writer(int argc, char **argv)
{
	long long count;
	const char *why;
	int r = 0;

	progname = "test-audit-crash";
	if (argc < 4 || !parse_num(argv[2], 1, 1000000, &count, &why))
		return EX_USAGE;
	while (r == 0 && count-- > 0)
		r = record(argv[3], argc > 4 ? argv[4] : "");
	return -r;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return writer(argc, argv);
	setup();
	test_between();
	test_goes_on();
	test_notes();
	test_flight();
	test_killed();
	test_full();
	return done();
}
