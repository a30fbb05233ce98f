/*
 * test-admit - when there is room for one more, and what is said when not; and
 * how much memory a VMM may take beside its guest's.
 */
#include "tap.h"

#include "admit.h"
#include "cgroup.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static void test_room(void)
{
	static const struct {
		const char *what;
		struct promised promised;
		struct demand demand;
		unsigned count;
		bool shared;
		const char *why; /* NULL: there is room */
	} rows[] = {
		{"an empty host", {0, 0, 0}, {GIB, 1, NULL}, 1, false, NULL},
		{"the last byte",
		 {14 * GIB, 1, 1},
		 {GIB, 1, NULL},
		 1,
		 false,
		 NULL},
		{"one more",
		 {14 * GIB + 1, 1, 1},
		 {GIB, 1, NULL},
		 1,
		 false,
		 "1 running have 14G of memory, 1G more exceeds 15G, which is "
		 "150% of 10G (memory_overcommit in ark.conf)"},
		{"many at once",
		 {0, 0, 0},
		 {GIB, 1, NULL},
		 16,
		 false,
		 "0 running have 0B of memory, 16G more exceeds 15G"},
		{"a snapshot's memory counts",
		 {13 * GIB, 1, 1},
		 {GIB, 1, "id"},
		 2,
		 false,
		 "3G more exceeds"},
		{"once", {13 * GIB, 1, 1}, {GIB, 1, "id"}, 2, true, NULL},
		{"the last processor",
		 {0, 31, 31},
		 {MIB, 1, NULL},
		 1,
		 false,
		 NULL},
		{"one more processor",
		 {0, 31, 30},
		 {MIB, 2, NULL},
		 1,
		 false,
		 "30 running have 31 vCPUs, 2 more exceeds 32, which is 1600% "
		 "of 2 (cpu_overcommit in ark.conf)"},
	};
	const struct conf conf = {.memory_overcommit = 150,
				  .cpu_overcommit = 1600};
	const struct host host = {.memory = 10 * GIB, .cpus = 2};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char why[256] = "";
		bool no = admit_refuses(&rows[i].promised, &rows[i].demand,
					rows[i].count, rows[i].shared, &host,
					&conf, why, sizeof(why));

		if (!rows[i].why)
			ok(!no, "%s", rows[i].what);
		else
			ok(no && strstr(why, rows[i].why), "%s: %s",
			   rows[i].what, why);
	}
}

static void test_memory(void)
{
	const struct vmm v = {.overhead_mib = {10, 20}};

	is_num((long long)cgroup_memory(&v, ACCEL_KVM, 64 * MIB), 75 * MIB,
	       "the guest's, 1/64 of it and the VMM's own");
	is_num((long long)cgroup_memory(&v, ACCEL_TCG, 64 * MIB), 85 * MIB,
	       "which the accelerator changes");
}

int main(void)
{
	test_room();
	test_memory();
	return done();
}
