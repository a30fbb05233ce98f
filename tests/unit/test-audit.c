/*
 * test-audit - the audit log: what is written, and what is found when it was
 * changed.
 */
#include "audit-log.h"

#include <jansson.h>

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

int main(void)
{
	setup();
	test_line();
	test_mode();
	test_hostile();
	test_edits();
	test_order();
	test_truncation();
	test_rotation();
	return done();
}
