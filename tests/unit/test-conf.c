/*
 * test-conf - ark.conf: what is taken, what is refused and how it is told.
 */
#include "tap.h"

#include "state.h"

#include <sys/stat.h>

static int dir;
static char path[128];
static struct conf c;

static int load(const char *text)
{
	put_file(dir, "ark.conf", text, strlen(text));
	return conf_load(&c);
}

static void test_defaults(void)
{
	is_num(load(""), 0, "an empty file");
	is_num((long long)c.memory, 512LL << 20, "memory");
	is_num((long long)c.disk_size, 8LL << 30, "disk");
	is_num(c.cpus, 1, "cpus");
	is_str(c.image, "base", "image");
	ok(c.uid_base >= 65536, "uids that nobody else has");
	is_num(c.net, 0x0a140000, "net");
	is_str(c.policy, "open", "policy");
	is_num(c.memory_overcommit, 150, "memory_overcommit");
	is_num(c.cpu_overcommit, 1600, "cpu_overcommit");
	is_num(load("\n# comment\n   \n\t# another\n\n"), 0, "comments");
	is_num(c.cpus, 1, "change nothing");
}

static void test_values(void)
{
	is_num(load("memory = 256M\ndisk=4G\n  cpus\t=  2  # two\n"
		    "image = my.image-1\r\nuid_base = 100000"),
	       0, "all the keys");
	is_num((long long)c.memory, 256LL << 20, "memory");
	is_num((long long)c.disk_size, 4LL << 30, "disk");
	is_num(c.cpus, 2, "cpus");
	is_str(c.image, "my.image-1", "image");
	is_num(c.uid_base, 100000, "uid_base");
	is_num(load("cpus = 2\ncpus = 3\n"), 0, "twice");
	is_num(c.cpus, 3, "the last one counts");
	is_num(load("net = 172.30.0.0/16\npolicy = none\n"), 0, "network");
	is_num(c.net, 0xac1e0000, "net");
	is_str(c.policy, "none", "policy");
	is_num(load("memory_overcommit = 1%\ncpu_overcommit = 100000%\n"), 0,
	       "over-commit");
	is_num(c.memory_overcommit, 1, "memory_overcommit");
	is_num(c.cpu_overcommit, 100000, "cpu_overcommit");
	ok(!c.no_auth, "tokens are needed");
	is_num(load("auth = none\n"), 0, "auth");
	ok(c.no_auth, "none");
	is_num(load("auth = none\nauth = token\n"), 0, "auth");
	ok(!c.no_auth, "tokens");
	ok(told_nothing(), "and nothing is told");
}

static void test_bad(void)
{
	static const struct {
		const char *text, *told;
	} rows[] = {
		{"nonsense\n", ":1: "},
		{"\n\nkey\n", ":3: "},
		{"colour = red\n", ":1: colour: unknown key"},
		{"= 5\n", ":1: "},
		{"auth = no\n", ":1: auth: neither token nor none"},
		{"auth =\n", ":1: auth: "},
		{"memory\n", ":1: "},
		{"memory =\n", ":1: memory: "},
		{"memory = much\n", ":1: memory: "},
		{"memory = 1 \n#\nmemory = 5 5\n", ":3: memory: "},
		{"cpus = 0\n", ":1: cpus: "},
		{"cpus = 256\n", ":1: cpus: "},
		{"cpus = -1\n", ":1: cpus: "},
		{"cpus = 1x\n", ":1: cpus: "},
		{"disk = -8G\n", ":1: disk: "},
		{"uid_base = 0\n", ":1: uid_base: "},
		{"uid_base = 1000\n", ":1: uid_base: "},
		{"uid_base = 2147483647\n", ":1: uid_base: "},
		{"uid_base = 4294967295\n", ":1: uid_base: "},
		{"net = 10.20.0.0\n", ":1: net: "},
		{"net = 10.20.0.0/8\n", ":1: net: "},
		{"net = 10.20.1.0/16\n", ":1: net: "},
		{"net = 10.0.0.0/16\n", ":1: net: "},
		{"net = 127.0.0.0/16\n", ":1: net: "},
		{"net = 224.0.0.0/16\n", ":1: net: "},
		{"net = 0.0.0.0/16\n", ":1: net: "},
		{"net = 300.1.0.0/16\n", ":1: net: "},
		{"net = fd00::/16\n", ":1: net: "},
		{"net =\n", ":1: net: "},
		{"memory_overcommit = 150\n", ":1: memory_overcommit: "},
		{"memory_overcommit = %\n", ":1: memory_overcommit: "},
		{"memory_overcommit = 0%\n", ":1: memory_overcommit: "},
		{"memory_overcommit = 100001%\n", ":1: memory_overcommit: "},
		{"cpu_overcommit = 1.5%\n", ":1: cpu_overcommit: "},
		{"cpu_overcommit = -5%\n", ":1: cpu_overcommit: "},
		{"cpu_overcommit = 5%%\n", ":1: cpu_overcommit: "},
		{"cpu_overcommit = 0000000000000000005%\n",
		 ":1: cpu_overcommit: "},
		{"policy = some\n", ":1: policy: "},
		{"policy = Open\n", ":1: policy: "},
		{"policy =\n", ":1: policy: "},
		{"image = ../x\n", ":1: image: "},
		{"image = a/b\n", ":1: image: "},
		{"image =\n", ":1: image: "},
		{"image = a b\n", ":1: image: "},
		{"cpus = 1\nCPUS = 2\n", ":2: "},
		{"\x1b[31m = 1\n", ":1: "},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		ok(load(rows[i].text) == -EX_CONFIG, "refused: %s",
		   rows[i].text);
		ok(told(rows[i].told), "told with its line");
	}
}

static void test_files(void)
{
	static char big[20000];

	is_num(load("cpus = 2\n"), 0, "good again");
	chmod(path, 0620);
	is_num(conf_load(&c), -EX_CONFIG, "writable by the group");
	ok(told("ark.conf"), "told");
	chmod(path, 0602);
	is_num(conf_load(&c), -EX_CONFIG, "writable by others");
	ok(told("ark.conf"), "told");
	chmod(path, 0644);
	is_num(conf_load(&c), 0, "readable by all is fine");
	if (chown(path, 1234, 0) < 0)
		exit(99);
	is_num(conf_load(&c), -EX_CONFIG, "somebody else's");
	ok(told("ark.conf"), "told");
	unlinkat(dir, "ark.conf", 0);
	is_num(conf_load(&c), -EX_CONFIG, "named but absent");
	ok(told("ark.conf"), "told");
	mkdirat(dir, "ark.conf", 0700);
	is_num(conf_load(&c), -EX_CONFIG, "a directory");
	ok(told("ark.conf"), "told");
	unlinkat(dir, "ark.conf", AT_REMOVEDIR);
	mkfifoat(dir, "ark.conf", 0600);
	conf_load(&c); /* hangs when it waits for a writer */
	forget();
	ok(true, "a FIFO does not block");
	unlinkat(dir, "ark.conf", 0);
	memset(big, '#', sizeof(big) - 1);
	is_num(load(big), -EX_CONFIG, "too large a file");
	ok(told("ark.conf"), "told");
	put_file(dir, "ark.conf", "cpus = 2\n\0memory = 1T\n", 22);
	ok(conf_load(&c) != 0 || c.memory == 512ULL << 20,
	   "what is behind a NUL is not taken");
	forget();
}

int main(void)
{
	dir = tap_dir();
	snprintf(path, sizeof(path), "%s/ark.conf", tap_dir_path);
	setenv("ARK_CONF", path, 1);
	catch_stderr();
	test_defaults();
	test_values();
	test_bad();
	test_files();
	return done();
}
