/*
 * ark-top - what the sandboxes take of the host, now and again and again.
 * ark-top(1) is the manual.
 *
 * The columns are those of ark-ps, but for processor time, which is that since
 * the last look.  Files and /proc, as there: it can be left running.
 */
#include "admit.h"
#include "columns.h"
#include "screen.h"

#include <getopt.h>

static const char usage[] = "ark-top [-b] [-d TIME] [-n COUNT] "
			    "[-o COLUMN,...] [-s COLUMN]";

/* What a VMM had used when it was last looked at. */
struct past {
	struct proc vmm;
	uint64_t cpu_ms, up_ms;
};

struct totals {
	size_t sandboxes, running, paused;
	uint64_t memory, private, permille;
};

struct top {
	bool batch;
	uint64_t delay_ms;
	long long count; /* 0: without end */
	struct table table;
	struct past *past, *now; /* owned */
	size_t n_past, n_now;
	struct totals totals;
};

/* ---- a look -------------------------------------------------------------- */

/* The share since the last look, or since it began. */
static uint64_t share(const struct top *top, const struct row *row)
{
	const struct proc *vmm = &row->s->vmm;
	const struct usage *u = &row->usage;

	for (size_t i = 0; i < top->n_past; i++) {
		const struct past *p = &top->past[i];

		if (p->vmm.pid == vmm->pid && p->vmm.start == vmm->start &&
		    p->up_ms < u->up_ms && p->cpu_ms <= u->cpu_ms)
			return usage_permille(u->cpu_ms - p->cpu_ms,
					      u->up_ms - p->up_ms);
	}
	return row->permille;
}

static int note(struct top *top, const struct row *row)
{
	struct past *more =
		reallocarray(top->now, top->n_now + 1, sizeof(*more));

	if (!more)
		return fail_errno(EX_OSERR, "cannot list");
	top->now = more;
	more[top->n_now++] = (struct past){
		.vmm = row->s->vmm,
		.cpu_ms = row->usage.cpu_ms,
		.up_ms = row->usage.up_ms,
	};
	return 0;
}

static void count(struct totals *t, const struct row *row)
{
	const struct sandbox *s = row->s;
	long long memory;

	t->sandboxes++;
	t->running += s->state == VM_RUNNING;
	t->paused += s->state == VM_PAUSED;
	t->private += row->usage.private;
	t->permille += row->permille;
	if ((s->state == VM_RUNNING || s->state == VM_PAUSED) &&
	    read_number(s->dir, "memory", 0, INT64_MAX, &memory) == 0)
		t->memory += (uint64_t)memory;
}

static int look_at(const char *name, void *data)
{
	struct top *top = data;
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct row row;
	int r = 0;

	if (!sandbox_find(&s, name))
		return 0;
	row_read(&row, &s,
		 table_usage(&top->table) | USAGE_CPU | USAGE_PRIVATE);
	if (row.usage.known & USAGE_CPU) {
		row.permille = share(top, &row);
		r = note(top, &row);
	} else {
		row.permille = 0;
	}
	count(&top->totals, &row);
	return r < 0 ? r : table_add(&top->table, &row);
}

static int look(struct top *top)
{
	int r;

	table_clear(&top->table);
	top->totals = (struct totals){0};
	top->n_now = 0;
	r = sandbox_each(look_at, top);
	table_sort(&top->table);
	free(top->past);
	top->past = top->now;
	top->n_past = top->n_now;
	top->now = NULL;
	return r;
}

/* ---- what is shown ------------------------------------------------------- */

static void print_totals(FILE *out, const struct totals *t)
{
	struct host host = admit_host();
	char memory[16], all[16], private[16], cpu[16], clock[16] = "";
	time_t now = time(NULL);
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	format_size(memory, sizeof(memory), t->memory);
	format_size(all, sizeof(all), host.memory);
	format_size(private, sizeof(private), t->private);
	format_permille(cpu, sizeof(cpu), t->permille);
	fprintf(out, "%s  %zu sandboxes, %zu running, %zu paused\n", clock,
		t->sandboxes, t->running, t->paused);
	fprintf(out,
		"memory: %s given of %s, %s private; processors: %s of %u00 %%"
		"\n\n",
		memory, all, private, cpu, host.cpus);
}

static int print(const struct top *top)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return fail_errno(EX_OSERR, "cannot list");
	print_totals(out, &top->totals);
	table_print(&top->table, out, true);
	if (fclose(out) != 0)
		return fail_errno(EX_OSERR, "cannot list");
	if (!top->batch) {
		screen_show(text);
		return 0;
	}
	/* Why it cannot be written is told at the end. */
	return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? -EX_IOERR : 0;
}

static bool wait_until(const struct top *top, uint64_t until)
{
	uint64_t now = now_ms();

	if (!top->batch)
		return screen_wait(until);
	if (now < until)
		usleep((useconds_t)(until - now) * 1000);
	return true;
}

static int run(struct top *top)
{
	uint64_t next = now_ms();

	for (long long i = 0;; i++) {
		int r = look(top);

		if (r == 0 && top->batch && i > 0)
			putchar('\n');
		if (r == 0)
			r = print(top);
		if (r < 0 || i + 1 == top->count)
			return r;
		/* Not later and later by what a look takes, and not in a hurry
		 * after a stop. */
		next += top->delay_ms;
		if (next < now_ms())
			next = now_ms() + top->delay_ms;
		if (!wait_until(top, next))
			return 0;
	}
}

/* ---- options ------------------------------------------------------------- */

static void print_help(void)
{
	printf("Usage: %s\n\n"
	       "Show what the sandboxes take of the host, again and again; q "
	       "ends it.\n\n"
	       "  -b, --batch          one after the other, as for a file\n"
	       "  -d, --delay TIME     from one to the next (2s)\n"
	       "  -n, --count COUNT    end after so many\n"
	       "  -o, --columns LIST   columns to show\n"
	       "  -s, --sort COLUMN    the largest first, or by the alphabet\n"
	       "  -h, --help           show this and exit\n"
	       "      --version        show the version and exit\n\n"
	       "Columns:",
	       usage);
	columns_list(stdout);
	putchar('\n');
}

enum { OPT_VERSION = 256 };

static const struct option long_options[] = {
	{"batch", no_argument, NULL, 'b'},
	{"columns", required_argument, NULL, 'o'},
	{"count", required_argument, NULL, 'n'},
	{"delay", required_argument, NULL, 'd'},
	{"sort", required_argument, NULL, 's'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void set_delay(struct top *top)
{
	const char *why;

	if (!parse_duration(optarg, &top->delay_ms, &why))
		die(EX_USAGE, "bad --delay '%s': %s", optarg, why);
	if (top->delay_ms < 100 || top->delay_ms > 3600 * 1000)
		die(EX_USAGE, "bad --delay '%s': between 100ms and 1h", optarg);
}

static void set_count(struct top *top)
{
	const char *why;

	if (!parse_num(optarg, 1, INT32_MAX, &top->count, &why))
		die(EX_USAGE, "bad --count '%s': %s", optarg, why);
}

static void set_sort(struct top *top, const char *column)
{
	top->table.sort[0] = column_named(column, strlen(column));
	top->table.sort[1] = column_named("cpu", strlen("cpu"));
	top->table.sort[2] = column_named("private", strlen("private"));
}

static void set_option(struct top *top, int option)
{
	switch (option) {
	case 'b':
		top->batch = true;
		break;
	case 'd':
		set_delay(top);
		break;
	case 'n':
		set_count(top);
		break;
	case 'o':
		table_choose(&top->table, optarg);
		break;
	case 's':
		set_sort(top, optarg);
		break;
	case OPT_VERSION:
		printf("ark-top %s\n", ARK_VERSION);
		exit(finish(0));
	case 'h':
		print_help();
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

int main(int argc, char **argv)
{
	struct top top = {.delay_ms = 2000};
	int option, r;

	progname = "ark-top";
	table_choose(&top.table, "name,cpu,memory,private,resident,disk,rx,tx,"
				 "age,expires,parent,state");
	set_sort(&top, "cpu");
	opterr = 0;
	while ((option = getopt_long(argc, argv, "bd:hn:o:s:", long_options,
				     NULL)) != -1) {
		if (option == '?')
			die_option(argv);
		set_option(&top, option);
	}
	if (optind < argc)
		die(EX_USAGE, "unexpected '%s' (try --help)", argv[optind]);
	top.batch |= !isatty(STDOUT_FILENO);
	if (!top.batch && screen_open() < 0)
		die(EX_OSERR, "cannot use the terminal");
	r = run(&top);
	/* What it said is on a screen that goes now. */
	screen_close();
	if (r < 0 && !top.batch)
		warn_line("%s", last_message());
	table_clear(&top.table);
	free(top.past);
	return finish(r);
}
