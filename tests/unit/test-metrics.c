/*
 * test-metrics - counters that are shared and survive, and what is read off
 * /proc.  With the word "print" it prints them, for tests/metrics.bats.
 */
#include "tap.h"

#include "metrics.h"
#include "usage.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define EACH 2000000

static int dir; /* holds root and run */
static char text[1 << 17];

static void print(void)
{
	FILE *out = fmemopen(text, sizeof(text), "w");

	if (!out || metrics_print(out, true) != 0)
		exit(99);
	fclose(out);
}

/* The value of a line that begins so. */
static double value(const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtod(at + strlen(name), NULL) : -1;
}

/* ---- counters ----------------------------------------------------------- */

static void test_counters(void)
{
	print();
	is_num((long long)value("\nark_requests_total{code=\"200\"} "), 0,
	       "nothing yet");
	metrics_request(200, 1500);
	metrics_request(200, 10);
	metrics_request(418, 400000000);
	metrics_count(COUNT_EXEC_OOM);
	metrics_time(TIME_EXEC, 1000);
	metrics_time(TIME_EXEC, 1001);
	print();
	is_num((long long)value("\nark_requests_total{code=\"200\"} "), 2,
	       "two");
	is_num((long long)value("\nark_requests_total{code=\"other\"} "), 1,
	       "one of a code that nobody knows");
	is_num((long long)value("\nark_execs_total{result=\"oom\"} "), 1,
	       "a count");
	is_num((long long)value("\nark_exec_seconds_bucket{le=\"0.001\"} "), 1,
	       "a bound belongs to its bucket");
	is_num((long long)value("\nark_exec_seconds_bucket{le=\"0.0025\"} "), 2,
	       "buckets are sums");
	is_num((long long)value("\nark_request_seconds_bucket{le=\"300\"} "), 2,
	       "what is too long is in no bucket");
	is_num((long long)value("\nark_request_seconds_bucket{le=\"+Inf\"} "),
	       3, "but the last");
	is_num((long long)value("\nark_request_seconds_count "), 3, "count");
	ok(strstr(text, "\nark_request_seconds_sum 400.001510\n") != NULL,
	   "sum");
}

/* Many processes at once, and some are killed at any time. */
static void test_shared(void)
{
	double before = value("\nark_execs_total{result=\"ok\"} "), last = 0;
	pid_t pids[4];
	int down = 0, begin[2];
	char byte;

	/* All begin when the pipe ends, and run long enough to meet. */
	if (pipe2(begin, O_CLOEXEC) < 0)
		exit(99);
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			close(begin[1]);
			read_full(begin[0], &byte, 1);
			for (int n = 0; n < EACH; n++)
				metrics_count(COUNT_EXEC_OK);
			_exit(0);
		}
	}
	close(begin[0]);
	close(begin[1]);
	for (int i = 0; i < 4; i++)
		waitpid(pids[i], NULL, 0);
	print();
	is_num((long long)(value("\nark_execs_total{result=\"ok\"} ") - before),
	       4LL * EACH, "none is lost");
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				metrics_time(TIME_FORK, 5);
		usleep(1000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		print();
		down += value("\nark_fork_seconds_count ") < last ||
			value("\nark_fork_seconds_count ") !=
				value("\nark_fork_seconds_bucket{le="
				      "\"+Inf\"} ");
		last = value("\nark_fork_seconds_count ");
	}
	is_num(down, 0, "nothing goes down when somebody is killed");
	ok(last > 20, "and all count");
}

/* A process of its own: the file is mapped once in each. */
static long long of_another(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char *args[] = {(char *)(uintptr_t) "test-metrics",
				(char *)(uintptr_t) "requests", NULL};

		execv("/proc/self/exe", args);
		_exit(99);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void test_boot(void)
{
	static const char other[] = "00000000-0000-0000-0000-000000000000\n";

	is_num(of_another(), 2, "another process sees the same");
	put_file(dir, "run/boot_id", other, strlen(other));
	is_num(of_another(), 0, "after a boot all is 0");
	ok(told_nothing(), "quietly");
}

/* ---- usage -------------------------------------------------------------- */

static void test_parsers(void)
{
	static const char stat[] =
		"42 (a) b (c)) R 1 42 42 0 -1 4194560 1 2 3 4 150 50 6 7 20 0 "
		"1 0 100 2000 300\n";
	static const char net[] =
		"Inter-|   Receive |  Transmit\n face |bytes |bytes\n"
		"    lo:  1 2 3 4 5 6 7 8  9 10 11 12 13 14 15 16\n"
		"xeth0:  7 2 3 4 5 6 7 8  7 10 11 12 13 14 15 16\n"
		"  eth0: 123456789012 2 3 4 5 6 7 8 99 10 11 12 13 14 15 16\n";
	static const char smaps[] =
		"55 ---p 00000000 00:00 0    [rollup]\nRss:  9 kB\n"
		"Private_Clean:   4 kB\nPrivate_Dirty:  16 kB\nSwap:  1 kB\n"
		"SwapPss: 7 kB\n";
	uint64_t a = 0, b = 0;

	ok(usage_parse_stat(stat, &a) && a == 200, "stat, a hostile name");
	ok(!usage_parse_stat("42 (x", &a) && !usage_parse_stat("", &a) &&
		   !usage_parse_stat("42 (x) R 1", &a),
	   "no stat");
	ok(usage_parse_net(net, "eth0", &a, &b) && a == 123456789012 && b == 99,
	   "net/dev");
	ok(!usage_parse_net(net, "eth1", &a, &b) &&
		   !usage_parse_net("", "eth0", &a, &b) &&
		   !usage_parse_net("eth0: x", "eth0", &a, &b),
	   "no net/dev");
	is_num((long long)usage_permille(500, 2000), 250, "a quarter");
	is_num((long long)usage_permille(6000, 2000), 3000, "three of them");
	is_num((long long)usage_permille(10, 0), 0, "no time, no share");
	ok(usage_parse_smaps(smaps, &a) && a == 21 * 1024, "smaps_rollup");
	ok(!usage_parse_smaps("\nSwap: 1 kB\n", &a), "no smaps_rollup");
}

static void test_usage(void)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct usage u;
	char disk[8192] = {1};
	volatile unsigned spin = 0;
	uint64_t begin, us = UINT64_MAX;

	mkdirat(dir, "root/vm", 0700);
	mkdirat(dir, "root/vm/v", 0700);
	put_file(dir, "root/vm/v/disk", disk, sizeof(disk));
	sandbox_open(&s, "v");
	usage_read(&s, USAGE_CHEAP | USAGE_PRIVATE, &u);
	ok(u.known == USAGE_DISK && u.disk >= 8192 && u.cpu_ms == 0,
	   "of what does not run only the disk");
	proc_of(getpid(), &s.vmm);
	while (clock() < CLOCKS_PER_SEC / 20)
		spin++;
	usage_read(&s, USAGE_CHEAP | USAGE_PRIVATE, &u);
	ok(u.known & USAGE_CPU && u.cpu_ms >= 30 && u.cpu_ms < 60000,
	   "processor time: %llu ms", (unsigned long long)u.cpu_ms);
	ok(u.known & USAGE_RESIDENT && u.resident > 100000, "resident: %llu",
	   (unsigned long long)u.resident);
	ok(u.known & USAGE_PRIVATE && u.private > 10000 &&
		   u.private < u.resident,
	   "private: %llu", (unsigned long long)u.private);
	/* The best of many: others use this processor too. */
	for (int i = 0; i < 200; i++) {
		begin = now_us();
		usage_read(&s, USAGE_CHEAP, &u);
		if (now_us() - begin < us)
			us = now_us() - begin;
	}
	ok(us < 300, "cheap: %llu us", (unsigned long long)us);
	s.vmm.start++;
	usage_read(&s, USAGE_CHEAP, &u);
	is_num(u.known, USAGE_DISK, "another process of that number");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "print") == 0)
		return metrics_print(stdout, true) < 0;
	if (argc > 1) {
		print();
		return (int)value("\nark_requests_total{code=\"200\"} ");
	}
	catch_stderr();
	dir = tap_ark();
	test_counters();
	test_shared();
	test_boot();
	test_parsers();
	test_usage();
	return done();
}
