/*
 * metrics.c - counters that all processes of a boot share.
 *
 * An addition is one atomic instruction in memory that the kernel keeps:
 * whoever is killed has added or not.  A histogram keeps its buckets apart and
 * sums them up when it is printed, so that its count is always what its
 * buckets say; between bucket and sum a kill costs the sum one observation.
 */
#include "metrics.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FILE_NAME "metrics-1"
#define BOUNDS 16
#define CODES_MAX 24

/* Microseconds; what is longer is in the last bucket, +Inf. */
static const uint64_t bounds[BOUNDS] = {
	1000,	  2500,	    5000,     10000,	 25000,	  50000,
	100000,	  250000,   500000,   1000000,	 2500000, 5000000,
	10000000, 30000000, 60000000, 300000000,
};
static const char *const bound_words[BOUNDS] = {
	"0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25",
	"0.5",	 "1",	   "2.5",   "5",    "10",    "30",   "60",  "300",
};

/* What ark answers with; another one is counted as "other", the last. */
static const short codes[] = {
	200, 201, 204, 400, 401, 403, 404, 405, 408, 409, 411, 413,
	414, 415, 422, 429, 431, 500, 501, 503, 504, 507, 0,
};

_Static_assert(ARRAY_LEN(codes) <= CODES_MAX, "room for all codes");

struct histogram {
	uint64_t bucket[BOUNDS + 1];
	uint64_t sum; /* us */
};

/* The file.  All of it is there from the beginning, as zeros. */
struct metrics {
	uint64_t code[CODES_MAX];
	struct histogram time[METRIC_TIMES];
	uint64_t count[METRIC_COUNTS];
};

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- the file ----------------------------------------------------------- */

/* Mapped once per process; NULL: nothing is counted. */
static struct metrics *map(void)
{
	static struct metrics *shared;
	AUTO_CLOSE int run = -1;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	void *memory;

	if (shared)
		return shared;
	run = run_open(true);
	if (run < 0)
		return NULL;
	fd = openat(run, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	/* Two that make it longer at once do the same. */
	if (fd < 0 || fstat(fd, &st) < 0 ||
	    (st.st_size < (off_t)sizeof(*shared) &&
	     ftruncate(fd, sizeof(*shared)) < 0))
		return NULL;
	memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED,
		      fd, 0);
	if (memory == MAP_FAILED)
		return NULL;
	shared = memory;
	return shared;
}

static void add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void metrics_time(enum metric_time which, uint64_t us)
{
	struct metrics *m = map();
	size_t bucket = 0;

	if (!m)
		return;
	while (bucket < BOUNDS && us > bounds[bucket])
		bucket++;
	add(&m->time[which].bucket[bucket], 1);
	add(&m->time[which].sum, us);
}

void metrics_count(enum metric_count which)
{
	struct metrics *m = map();

	if (m)
		add(&m->count[which], 1);
}

void metrics_request(int status, uint64_t us)
{
	struct metrics *m = map();
	size_t i = 0;

	if (!m)
		return;
	while (codes[i] && codes[i] != status)
		i++;
	add(&m->code[i], 1);
	metrics_time(TIME_REQUEST, us);
}

/* ---- counters as text --------------------------------------------------- */

static void print_head(FILE *out, const char *name, const char *type,
		       const char *help)
{
	fprintf(out, "# HELP ark_%s %s\n# TYPE ark_%s %s\n", name, help, name,
		type);
}

static void print_time(FILE *out, const struct histogram *h, const char *name,
		       const char *help)
{
	uint64_t n = 0, sum = get(&h->sum);

	print_head(out, name, "histogram", help);
	for (size_t i = 0; i < BOUNDS; i++) {
		n += get(&h->bucket[i]);
		fprintf(out, "ark_%s_bucket{le=\"%s\"} %llu\n", name,
			bound_words[i], (unsigned long long)n);
	}
	n += get(&h->bucket[BOUNDS]);
	fprintf(out,
		"ark_%s_bucket{le=\"+Inf\"} %llu\n"
		"ark_%s_sum %llu.%06llu\n"
		"ark_%s_count %llu\n",
		name, (unsigned long long)n, name,
		(unsigned long long)(sum / 1000000),
		(unsigned long long)(sum % 1000000), name,
		(unsigned long long)n);
}

static void print_codes(FILE *out, const struct metrics *m)
{
	print_head(out, "requests_total", "counter",
		   "Requests answered, by HTTP status.");
	for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
		char code[8] = "other";

		if (codes[i])
			snprintf(code, sizeof(code), "%d", codes[i]);
		fprintf(out, "ark_requests_total{code=\"%s\"} %llu\n", code,
			(unsigned long long)get(&m->code[i]));
	}
}

static void print_counts(FILE *out, const struct metrics *m)
{
	static const char *const results[] = {
		[COUNT_EXEC_OK] = "ok",
		[COUNT_EXEC_FAILED] = "failed",
		[COUNT_EXEC_TIMEOUT] = "timeout",
		[COUNT_EXEC_OOM] = "oom",
		[COUNT_EXEC_DETACHED] = "detached",
		[COUNT_EXEC_ERROR] = "error",
	};
	static const struct {
		enum metric_count which;
		const char *name, *help;
	} others[] = {
		{COUNT_UNAUTHORIZED, "unauthorized_total",
		 "Requests without a token or with a wrong one."},
		{COUNT_QUOTA, "quota_refusals_total",
		 "Requests refused by a quota or the request rate."},
		{COUNT_BUSY, "busy_total",
		 "Requests refused because too many ran at once."},
	};

	print_head(out, "execs_total", "counter",
		   "Commands run in guests, by how they ended.");
	for (size_t i = 0; i < ARRAY_LEN(results); i++)
		fprintf(out, "ark_execs_total{result=\"%s\"} %llu\n",
			results[i], (unsigned long long)get(&m->count[i]));
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		print_head(out, others[i].name, "counter", others[i].help);
		fprintf(out, "ark_%s %llu\n", others[i].name,
			(unsigned long long)get(&m->count[others[i].which]));
	}
}

static void print_times(FILE *out, const struct metrics *m)
{
	static const struct {
		const char *name, *help;
	} times[METRIC_TIMES] = {
		[TIME_REQUEST] = {"request_seconds",
				  "Time to answer a request."},
		[TIME_START] = {"start_seconds",
				"Time to boot a sandbox until it takes "
				"commands."},
		[TIME_EXEC] = {"exec_seconds",
			       "Time of commands that were waited for."},
		[TIME_SNAPSHOT] = {"snapshot_seconds",
				   "Time to take a snapshot."},
		[TIME_RESTORE] = {"restore_seconds",
				  "Time to restore a snapshot until it takes "
				  "commands."},
		[TIME_FORK] = {"fork_seconds",
			       "Time of a fork, all its clones."},
	};

	for (size_t i = 0; i < METRIC_TIMES; i++)
		print_time(out, &m->time[i], times[i].name, times[i].help);
}

int metrics_print(FILE *out, bool private)
{
	static const struct metrics none;
	const struct metrics *m = map();

	if (!m)
		m = &none;
	print_head(out, "build_info", "gauge", "Version of ark; always 1.");
	fprintf(out, "ark_build_info{version=\"" ARK_VERSION "\"} 1\n");
	print_codes(out, m);
	print_times(out, m);
	print_counts(out, m);
	return metrics_gauges(out, private);
}
