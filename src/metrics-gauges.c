/*
 * metrics-gauges.c - what there is now, read off the files and /proc.
 *
 * The format wants all of a metric together: what was read is kept, a line of
 * text per metric and sandbox, until all have been looked at.  Names of
 * sandboxes have no character that a label would have to escape.
 */
#include "metrics.h"
#include "usage.h"

#include <fcntl.h>

enum gauge {
	GAUGE_CPU,
	GAUGE_VCPUS,
	GAUGE_MEMORY,
	GAUGE_RESIDENT,
	GAUGE_PRIVATE,
	GAUGE_DISK,
	GAUGE_RX,
	GAUGE_TX,
	GAUGES,
};

static const struct {
	const char *name, *type, *help;
} gauges[GAUGES] = {
	[GAUGE_CPU] = {"sandbox_cpu_seconds_total", "counter",
		       "Processor time of the VMM."},
	[GAUGE_VCPUS] = {"sandbox_cpus", "gauge", "Virtual processors."},
	[GAUGE_MEMORY] = {"sandbox_memory_bytes", "gauge",
			  "Memory that the guest was promised."},
	[GAUGE_RESIDENT] = {"sandbox_resident_bytes", "gauge",
			    "Memory of the VMM, with what clones share."},
	[GAUGE_PRIVATE] = {"sandbox_private_bytes", "gauge",
			   "Memory that only this VMM has."},
	[GAUGE_DISK] = {"sandbox_disk_bytes", "gauge",
			"What the writable disk occupies."},
	[GAUGE_RX] = {"sandbox_network_receive_bytes_total", "counter",
		      "Bytes to the sandbox."},
	[GAUGE_TX] = {"sandbox_network_transmit_bytes_total", "counter",
		      "Bytes from the sandbox."},
};

struct gauging {
	bool private;
	unsigned long long states[VM_DEAD + 1], snapshots;
	char *text[GAUGES]; /* owned */
	size_t size[GAUGES];
	FILE *line[GAUGES];
};

static void put(const struct gauging *g, enum gauge gauge, const char *name,
		uint64_t value)
{
	fprintf(g->line[gauge], "ark_%s{name=\"%s\"} %llu\n",
		gauges[gauge].name, name, (unsigned long long)value);
}

static void put_seconds(const struct gauging *g, enum gauge gauge,
			const char *name, uint64_t ms)
{
	fprintf(g->line[gauge], "ark_%s{name=\"%s\"} %llu.%03llu\n",
		gauges[gauge].name, name, (unsigned long long)(ms / 1000),
		(unsigned long long)(ms % 1000));
}

static int gauge_sandbox(const char *name, void *data)
{
	struct gauging *g = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct usage u;
	long long n;

	if (!sandbox_find(&s, name))
		return 0;
	g->states[s.state]++;
	usage_read(&s, USAGE_CHEAP | (g->private ? USAGE_PRIVATE : 0), &u);
	if (read_number(s.dir, "cpus", 0, INT32_MAX, &n) == 0)
		put(g, GAUGE_VCPUS, name, (uint64_t)n);
	if (read_number(s.dir, "memory", 0, INT64_MAX, &n) == 0)
		put(g, GAUGE_MEMORY, name, (uint64_t)n);
	if (u.known & USAGE_CPU)
		put_seconds(g, GAUGE_CPU, name, u.cpu_ms);
	if (u.known & USAGE_RESIDENT)
		put(g, GAUGE_RESIDENT, name, u.resident);
	if (u.known & USAGE_PRIVATE)
		put(g, GAUGE_PRIVATE, name, u.private);
	if (u.known & USAGE_DISK)
		put(g, GAUGE_DISK, name, u.disk);
	if (u.known & USAGE_NET) {
		put(g, GAUGE_RX, name, u.rx);
		put(g, GAUGE_TX, name, u.tx);
	}
	return 0;
}

static int count_one(const char *name, void *data)
{
	(void)name;
	(*(unsigned long long *)data)++;
	return 0;
}

static void print_totals(FILE *out, const struct gauging *g)
{
	fputs("# HELP ark_sandboxes Sandboxes, by state.\n"
	      "# TYPE ark_sandboxes gauge\n",
	      out);
	for (enum vm_state state = VM_CREATED; state <= VM_DEAD; state++) {
		const struct sandbox s = {.state = state};

		fprintf(out, "ark_sandboxes{state=\"%s\"} %llu\n",
			state_word(&s), g->states[state]);
	}
	fprintf(out,
		"# HELP ark_snapshots Snapshots.\n"
		"# TYPE ark_snapshots gauge\n"
		"ark_snapshots %llu\n",
		g->snapshots);
}

static int open_lines(struct gauging *g)
{
	for (int i = 0; i < GAUGES; i++) {
		g->line[i] = open_memstream(&g->text[i], &g->size[i]);
		if (!g->line[i])
			return fail_errno(EX_OSERR, "cannot print the metrics");
	}
	return 0;
}

/* A metric of which there is nothing is not mentioned. */
static void print_lines(FILE *out, struct gauging *g)
{
	for (int i = 0; i < GAUGES; i++) {
		if (g->line[i])
			fclose(g->line[i]);
		if (out && g->text[i] && *g->text[i])
			fprintf(out, "# HELP ark_%s %s\n# TYPE ark_%s %s\n%s",
				gauges[i].name, gauges[i].help, gauges[i].name,
				gauges[i].type, g->text[i]);
		free(g->text[i]);
	}
}

int metrics_gauges(FILE *out, bool private)
{
	struct gauging g = {.private = private};
	int r = open_lines(&g);

	if (r == 0)
		r = sandbox_each(gauge_sandbox, &g);
	if (r == 0)
		r = names_each("snap", count_one, &g.snapshots);
	if (r == 0)
		print_totals(out, &g);
	print_lines(r == 0 ? out : NULL, &g);
	return r;
}
