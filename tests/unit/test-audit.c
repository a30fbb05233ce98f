/*
 * test-audit - the audit log: what is written, what is found when it was
 * changed, and that writers may be killed.
 *
 * With words it is a writer for tests/audit.bats:
 *	test-audit write COUNT ACTION [OBJECT]
 */
#include "tap.h"

#include "audit-line.h"

#include <jansson.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int dir; /* holds root and run */
static char text[1 << 20];

static void fresh(void)
{
	remove_tree(dir, "root");
	remove_tree(dir, "run");
	mkdirat(dir, "root", 0700);
}

/* One request that ends well. */
static int record(const char *action, const char *object)
{
	struct audit a = {
		.tenant = "alice",
		.token = "0123456789ab",
		.address = "127.0.0.1",
		.action = action,
		.object = object,
	};
	int r = audit_begin(&a);

	return r < 0 ? r : audit_end(&a, 200);
}

static size_t read_log(void)
{
	ssize_t len = read_file(dir, "root/audit.log", text, sizeof(text));

	return len < 0 ? 0 : (size_t)len;
}

static void write_log(size_t len)
{
	put_file(dir, "root/audit.log", text, len);
}

static long long lines(void)
{
	long long n = 0;

	read_log();
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

/* The line of that number, from 0. */
static char *line_at(int n)
{
	char *at = text;

	while (n-- > 0)
		at = strchr(at, '\n') + 1;
	return at;
}

static int verify(struct audit_check *c)
{
	*c = (struct audit_check){0};
	return audit_verify(NULL, 0, c);
}

static bool good(long long records)
{
	struct audit_check c;
	int r = verify(&c);

	if (r == 0 && c.last == records && c.lines == records && told_nothing())
		return true;
	printf("# verify: %d, last %lld of %lld lines\n", r, c.last, c.lines);
	told("");
	return false;
}

/* Exactly one fault, told with these words. */
static void found(const char *what, const char *words)
{
	struct audit_check c;
	int r = verify(&c);

	ok(r == -EX_DATAERR && c.faults == 1 && told(words), "%s", what);
	if (c.faults != 1)
		printf("# %u faults\n", c.faults);
}

/* ---- what is written ---------------------------------------------------- */

static void test_line(void)
{
	static const char *const keys[] = {
		"seq",	  "time",   "id",     "tenant", "token", "address",
		"action", "object", "result", "ms",	"prev",	 "hash"};
	struct audit_record r;
	const char *key;
	json_t *value, *object;
	size_t len, i = 0;

	fresh();
	ok(good(0), "no log is a good one");
	is_num(record("start", "alice.web"), 0, "a record");
	len = read_log();
	object = json_loadb(text, len, 0, NULL);
	json_object_foreach(object, key, value)
	{
		is_str(key, i < ARRAY_LEN(keys) ? keys[i] : "none", "key");
		i++;
	}
	ok(audit_parse(text, len - 1, &r) == NULL && r.seq == 1 &&
		   r.result == 200 && r.ms >= 0 && r.ms < 5000 &&
		   strcmp(r.object, "alice.web") == 0,
	   "as it was said");
	json_decref(object);
	ok(good(1), "good");
}

static void test_mode(void)
{
	struct stat st;

	fstatat(dir, "root/audit.log", &st, 0);
	is_num(st.st_mode & 07777, 0600, "mode of the log");
	fstatat(dir, "root/audit.head", &st, 0);
	is_num(st.st_mode & 07777, 0600, "mode of the head");
	ok(faccessat(dir, "run/audit", F_OK, 0) == 0 &&
		   unlinkat(dir, "run/audit", AT_REMOVEDIR) == 0,
	   "no note is left");
}

/* Whatever a client sends: one line of ASCII. */
static void test_hostile(void)
{
	char longest[4000];
	struct audit_record r;
	size_t len;

	fresh();
	memset(longest, '"', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	is_num(record("exec", "a\nb\"\\\x01\x7f\xff\xc3\x28"), 0, "bytes");
	is_num(record(longest, longest), 0, "much too long");
	is_num(record("\xe2\x82\xac\xf0\x9f\x98\x80", ""), 0, "UTF-8");
	is_num(record("x", NULL), 0, "nothing");
	len = read_log();
	is_num(lines(), 4, "a line each");
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] > 126 ||
		    (text[i] < 32 && text[i] != '\n'))
			ok(false, "byte %d", text[i]);
	ok(good(4), "good");
	len = (size_t)(line_at(1) - text);
	ok(audit_parse(text, len - 1, &r) == NULL &&
		   strcmp(r.object, "a?b\"\\\?\?\?\?(") == 0,
	   "control bytes are gone: %s", r.object);
}

/* ---- what is found ------------------------------------------------------ */

static void ten(void)
{
	char object[16];

	fresh();
	for (int i = 1; i <= 10; i++) {
		snprintf(object, sizeof(object), "alice.%02d", i);
		record("start", object);
	}
	read_log();
}

/* Take line n out. */
static void cut(int n)
{
	char *from = line_at(n), *next = strchr(from, '\n') + 1;

	memmove(from, next, strlen(next) + 1);
	write_log(strlen(text));
}

/* One more time the hash of a line that was changed, as its forger would. */
static void forge(int n)
{
	struct audit_record r;
	char line[AUDIT_LINE_MAX];
	char *at = line_at(n);
	size_t len = strcspn(at, "\n");
	int made;

	audit_parse(at, len, &r);
	snprintf(r.object, sizeof(r.object), "alice.xx");
	made = audit_format(&r, line);
	if ((size_t)made != len + 1)
		exit(99);
	memcpy(at, line, len + 1);
	write_log(strlen(text));
}

static void test_edits(void)
{
	char line[AUDIT_LINE_MAX];
	size_t len;

	ten();
	ok(good(10), "ten are good");
	memcpy(strstr(line_at(4), "alice.05"), "alice.50", 8);
	write_log(strlen(text));
	found("an edited line", "audit.log:5: was changed");
	ten();
	forge(4);
	found("one with its hash made again",
	      "audit.log:6: record 6 does not go on");
	ten();
	forge(9);
	found("the last one so", "audit.log:10: record 10 is not the one of "
				 "audit.head");
	ten();
	cut(4);
	found("a line taken out",
	      "audit.log:5: record 6 after 4: those between "
	      "are missing");
	ten();
	cut(0);
	found("the first taken out",
	      "audit.log:1: begins with record 2: those before are missing");
	ten();
	len = strcspn(line_at(4), "\n") + 1;
	memcpy(line, line_at(4), len);
	memmove(line_at(4) + len, line_at(4), strlen(line_at(4)) + 1);
	write_log(strlen(text));
	found("a line twice", "audit.log:6: record 5 after 5: put in or moved");
	ten();
	memcpy(strstr(line_at(4), "\"ms\":"), "\"xx\":", 5);
	write_log(strlen(text));
	{
		struct audit_check c;

		is_num(verify(&c), -EX_DATAERR, "a line that is no record");
		is_num(c.faults, 2, "is found, and the gap");
		forget();
	}
}

static void test_order(void)
{
	struct audit_check c;
	char line[AUDIT_LINE_MAX];
	size_t len, next;

	ten();
	len = strcspn(line_at(4), "\n") + 1;
	next = strcspn(line_at(5), "\n") + 1;
	memcpy(line, line_at(4), len);
	memmove(line_at(4), line_at(5), next);
	memcpy(line_at(4) + next, line, len);
	write_log(strlen(text));
	is_num(verify(&c), -EX_DATAERR, "two lines in another order");
	ok(c.faults == 3, "at both and behind");
	forget();
}

static void test_truncation(void)
{
	struct audit_check c;
	size_t len;

	ten();
	for (int n = 9; n >= 0; n--) {
		write_log((size_t)(line_at(n) - text));
		is_num(verify(&c), -EX_DATAERR, "cut off at the end");
		ok(c.faults == 1 && told("audit.head says 10: those behind"),
		   "and told, %d lines", n);
	}
	unlinkat(dir, "root/audit.log", 0);
	is_num(verify(&c), -EX_DATAERR, "no log at all");
	ok(told("audit.head says 10"), "told");
	ten();
	len = strlen(text);
	write_log(len - 20);
	is_num(verify(&c), -EX_DATAERR, "cut within the last line");
	is_num(c.faults, 2, "two faults: the line, and what is missing");
	forget();
	/* With the head made again only the system log can tell. */
	ten();
	write_log((size_t)(line_at(9) - text));
	unlinkat(dir, "root/audit.head", 0);
	ok(good(9), "with no head it looks good");
	c = (struct audit_check){.head_seq = 10};
	memset(c.head_hash, 'a', 64);
	is_num(audit_verify(NULL, 0, &c), -EX_DATAERR,
	       "but not beside what went elsewhere");
	ok(told("10 of --head is missing"), "told");
	c = (struct audit_check){.head_seq = 5};
	memset(c.head_hash, 'a', 64);
	is_num(audit_verify(NULL, 0, &c), -EX_DATAERR,
	       "nor a chain made again");
	ok(told("record 5 is not the one of --head"), "told");
}

/* The log is put aside: the chain goes on in a new file. */
static void test_rotation(void)
{
	struct audit_check c = {0};
	char path[128];
	char *older[] = {path};

	ten();
	snprintf(path, sizeof(path), "%s/root/audit.log.1", tap_dir_path);
	renameat(dir, "root/audit.log", dir, "root/audit.log.1");
	record("stop", "alice.01");
	record("stop", "alice.02");
	is_num(audit_verify(older, 1, &c), 0, "both together are good");
	is_num(c.last, 12, "and are twelve");
	is_num(verify(&c), -EX_DATAERR, "the new one alone");
	ok(told("begins with record 11"), "begins late");
	c = (struct audit_check){0};
	snprintf(path, sizeof(path), "%s/root/none", tap_dir_path);
	is_num(audit_verify(older, 1, &c), -EX_NOINPUT, "a file that is not");
	ok(told("none"), "told");
}

/* ---- crashes ------------------------------------------------------------ */

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

	progname = "test-audit";
	if (argc < 4 || !parse_num(argv[2], 1, 1000000, &count, &why))
		return EX_USAGE;
	while (r == 0 && count-- > 0)
		r = record(argv[3], argc > 4 ? argv[4] : "");
	return -r;
}

int main(int argc, char **argv)
{
	char path[128];

	if (argc > 1)
		return writer(argc, argv);
	catch_stderr();
	dir = tap_dir();
	snprintf(path, sizeof(path), "%s/root", tap_dir_path);
	setenv("ARK_ROOT", path, 1);
	snprintf(path, sizeof(path), "%s/run", tap_dir_path);
	setenv("ARK_RUN", path, 1);
	test_line();
	test_mode();
	test_hostile();
	test_edits();
	test_order();
	test_truncation();
	test_rotation();
	test_between();
	test_goes_on();
	test_notes();
	test_flight();
	test_killed();
	test_full();
	return done();
}
