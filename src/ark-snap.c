/*
 * ark-snap - take, restore and fork snapshots of sandboxes.  ark-snap(1) is
 * the manual; snap.h does the work.
 *
 * A fork is N restores at once, each in a process of its own, of one memory
 * that is loaded before them.  All or none: when one fails, those that came
 * up are removed again, unless --partial says that some are better than none.
 */
#include "admit.h"
#include "life.h"
#include "snap.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <jansson.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define FORK_MAX 1000

static const char usage[] =
	"ark-snap take|restore|fork|ls|tree|inspect|verify|rm [OPTION...] "
	"[NAME...]";

static const char help[] =
	"Usage: ark-snap [take] [-v] SANDBOX [SNAPSHOT]\n"
	"       ark-snap restore SNAPSHOT [SANDBOX]\n"
	"       ark-snap fork [-c N] [--name PREFIX] [--partial] "
	"SNAPSHOT|SANDBOX\n"
	"       ark-snap ls [-q] [--json] | tree\n"
	"       ark-snap inspect|verify|rm SNAPSHOT...\n"
	"\n"
	"Take snapshots of sandboxes, go back to them, fork them.\n"
	"\n"
	"  -c, --count N      how many (fork; default 1)\n"
	"      --json         one JSON object per line (ls)\n"
	"      --name PREFIX  the clones are PREFIX-1, PREFIX-2 ... (fork)\n"
	"      --partial      keep what came up when one did not (fork)\n"
	"  -q, --quiet        names only (ls)\n"
	"  -v, --verbose      tell how long the sandbox stood still (take)\n"
	"  -h, --help         show this and exit\n"
	"      --version      show the version and exit\n";

struct options {
	unsigned count;
	const char *prefix;
	bool partial, quiet, json, verbose;
};

/* ---- take, restore ------------------------------------------------------ */

/* `name` may be empty: then one is made up and put there. */
static int take_of(const char *sandbox, char name[NAME_MAX_LEN + 1],
		   bool verbose)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct snap_times t;
	int r = sandbox_open(&s, sandbox);

	if (r == 0)
		r = snap_take(&s, name, &t);
	if (r == 0 && verbose)
		warn_line("'%s' stood still for %.1f ms, all took %.1f ms, "
			  "%.1f MB of memory",
			  sandbox, t.pause_ms, t.total_ms,
			  (double)t.memory_bytes / 1e6);
	return r;
}

/* A name that the user gave, checked, or "" when he gave none. */
static int given_name(const char *kind, const char *given,
		      char name[NAME_MAX_LEN + 1])
{
	int r = given ? check_name(kind, given) : 0;

	if (r == 0)
		snprintf(name, NAME_MAX_LEN + 1, "%s", given ? given : "");
	return r;
}

static int take(char **names, const struct options *o)
{
	char name[NAME_MAX_LEN + 1];
	int r = given_name("snapshot", names[1], name);

	if (r == 0)
		r = take_of(names[0], name, o->verbose);
	if (r == 0)
		puts(name);
	return r;
}

static int restore(char **names, const struct options *o)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	char name[NAME_MAX_LEN + 1];
	int r = given_name("sandbox", names[1], name);

	(void)o;
	if (r == 0)
		r = snap_open(&snap, names[0], true);
	if (r == 0)
		r = snap_restore(&snap, name, names[0], 1);
	if (r == 0)
		puts(name);
	return r;
}

/* ---- fork --------------------------------------------------------------- */

/* In memory that is shared with the children: each writes its name there. */
struct clone {
	char name[NAME_MAX_LEN + 1]; /* "" while it has none */
	pid_t pid;
	int code; /* of its restore */
};

/* All or none holds for whoever presses ^C as well: the children finish what
 * they have begun, a few seconds at most, and then it is taken back. */
static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
	interrupted = signal;
}

static void handle_signals(void (*handler)(int))
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	const struct sigaction action = {.sa_handler = handler};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &action, NULL);
}

static int start_clones(const struct snap *snap, const char *prefix,
			struct clone *clones, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			handle_signals(SIG_IGN);
			_exit(-snap_restore(snap, clones[i].name, prefix,
					    i + 1));
		}
		if (pid < 0)
			return fail_errno(EX_OSERR, "cannot fork");
		clones[i].pid = pid;
	}
	return 0;
}

static void await_clones(struct clone *clones, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		int status = 0;

		clones[i].code = EX_OSERR;
		while (clones[i].pid > 0 &&
		       waitpid(clones[i].pid, &status, 0) < 0 && errno == EINTR)
			;
		if (clones[i].pid > 0 && WIFEXITED(status))
			clones[i].code = WEXITSTATUS(status);
	}
}

static void remove_clone(const struct clone *clone)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	if (sandbox_exists(clone->name) && sandbox_open(&s, clone->name) == 0)
		vm_remove(&s, true);
}

/* The first failure's code.  What a failed restore has made it has removed. */
static int judge(const struct clone *clones, unsigned count, bool partial)
{
	unsigned failed = 0;
	int code = 0;

	for (unsigned i = 0; i < count; i++) {
		if (clones[i].code == 0)
			continue;
		failed++;
		code = code ? code : clones[i].code;
	}
	if (interrupted) {
		code = 128 + interrupted;
		failed = count;
		partial = false;
	} else if (failed)
		warn_line("%u of %u clones failed%s", failed, count,
			  partial ? "" : ", the others are removed");
	for (unsigned i = 0; i < count; i++) {
		if (clones[i].code == 0 && failed && !partial)
			remove_clone(&clones[i]);
		else if (clones[i].code == 0)
			puts(clones[i].name);
	}
	return -code;
}

/* One line here, not one of every clone. */
static int check_prefix(const char *prefix, unsigned count)
{
	char name[NAME_MAX_LEN + 1];
	unsigned number;

	return free_name("vm", prefix, count, name, &number);
}

/* Without this the first ones come up only to be removed again.  That there is
 * room is a guess, each start finds out for itself. */
static int check_room(const struct snap *snap, unsigned count)
{
	const struct demand demand = {
		.memory = snap->manifest.memory_size,
		.cpus = snap->manifest.cpus,
		.snapshot_id = snap->ram >= 0 ? snap->manifest.id : NULL,
	};
	AUTO_CLOSE int run = run_open(true);
	struct conf conf;
	char what[NAME_MAX_LEN + 32];
	int r = run < 0 ? run : conf_load(&conf);

	snprintf(what, sizeof(what), "%u of snapshot '%s'", count,
		 snap->manifest.name);
	return r < 0 ? r : admit_check(run, &conf, &demand, count, what);
}

static int fork_snapshot(const char *name, const struct options *o)
{
	const char *prefix = o->prefix ? o->prefix : name;
	size_t size = o->count * sizeof(struct clone);
	AUTO_SNAP struct snap snap = SNAP_NONE;
	struct clone *clones = mmap(NULL, size, PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r, started;

	if (clones == MAP_FAILED)
		return fail_errno(EX_OSERR, "no memory");
	r = snap_open(&snap, name, true);
	if (r == 0)
		r = check_prefix(prefix, o->count);
	if (r == 0 && !o->partial)
		r = check_room(&snap, o->count);
	if (r < 0)
		return r;
	handle_signals(on_signal);
	started = start_clones(&snap, prefix, clones, o->count);
	await_clones(clones, o->count);
	r = judge(clones, o->count, o->partial);
	munmap(clones, size);
	return started < 0 ? started : r;
}

/* A sandbox is taken a snapshot of first; that stays. */
static int fork_it(char **names, const struct options *o)
{
	char snapshot[NAME_MAX_LEN + 1] = "";
	int r = check_name("snapshot", names[0]);

	if (r == 0 && o->prefix)
		r = check_name("sandbox", o->prefix);
	if (r < 0)
		return r;
	if (snap_exists(names[0]) || !sandbox_exists(names[0]))
		return fork_snapshot(names[0], o);
	r = take_of(names[0], snapshot, false);
	return r < 0 ? r : fork_snapshot(snapshot, o);
}

/* ---- ls, tree, inspect -------------------------------------------------- */

static int print_json(const char *name)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	AUTO_FREE char *text = NULL;
	int r = snap_open(&snap, name, false);
	json_t *object;

	if (r < 0)
		return r;
	text = snapfile_format(&snap.manifest);
	object = text ? json_loads(text, 0, NULL) : NULL;
	if (!object || json_dumpf(object, stdout, JSON_COMPACT) < 0)
		return fail(EX_OSERR, "cannot print snapshot '%s'", name);
	json_decref(object);
	putchar('\n');
	return 0;
}

static int list_one(const char *name, void *data)
{
	const struct options *o = data;
	AUTO_SNAP struct snap snap = SNAP_NONE;
	const struct snap_manifest *m = &snap.manifest;
	char memory[16] = "-";

	if (o->quiet) {
		puts(name);
		return 0;
	}
	if (o->json)
		return print_json(name);
	if (snap_open(&snap, name, false) < 0)
		return 0;
	if (m->memory)
		format_size(memory, sizeof(memory), m->memory_size);
	printf("%-24s  %-20s  %-20s  %-12s  %6s  %s\n", name, m->source,
	       m->parent[0] ? m->parent : "-", m->image, memory, m->created);
	return 0;
}

static int list(char **names, const struct options *o)
{
	struct options copy = *o;

	(void)names;
	if (!o->quiet && !o->json)
		printf("%-24s  %-20s  %-20s  %-12s  %6s  %s\n", "NAME",
		       "SOURCE", "PARENT", "IMAGE", "MEMORY", "CREATED");
	return names_each("snap", list_one, &copy);
}

static int tree(char **names, const struct options *o)
{
	(void)names;
	(void)o;
	return snap_tree();
}

/* ---- inspect, verify, rm ------------------------------------------------ */

static int verify_one(const char *name)
{
	AUTO_SNAP struct snap snap = SNAP_NONE;
	int r = snap_open(&snap, name, false);

	return r < 0 ? r : snapfile_verify(snap.dir, &snap.manifest);
}

/* Go on after a failure, end with the first one's code. */
static int for_all(char **names, int (*each)(const char *name))
{
	int result = 0;

	for (; *names; names++) {
		int r = each(*names);

		if (result == 0)
			result = r;
	}
	return result;
}

static int inspect(char **names, const struct options *o)
{
	(void)o;
	return for_all(names, print_json);
}

static int verify(char **names, const struct options *o)
{
	(void)o;
	return for_all(names, verify_one);
}

static int remove_all(char **names, const struct options *o)
{
	(void)o;
	return for_all(names, snap_remove);
}

/* ---- main --------------------------------------------------------------- */

static const struct verb {
	const char *name;
	int (*run)(char **names, const struct options *o);
	const char *options;
	int min, max; /* names */
} verbs[] = {
	{"take", take, "v", 1, 2},
	{"restore", restore, "", 1, 2},
	{"fork", fork_it, "cNp", 1, 1},
	{"ls", list, "qj", 0, 0},
	{"tree", tree, "", 0, 0},
	{"inspect", inspect, "", 1, INT32_MAX},
	{"verify", verify, "", 1, INT32_MAX},
	{"rm", remove_all, "", 1, INT32_MAX},
};

static const struct option long_options[] = {
	{"count", required_argument, NULL, 'c'},
	{"json", no_argument, NULL, 'j'},
	{"name", required_argument, NULL, 'N'},
	{"partial", no_argument, NULL, 'p'},
	{"quiet", no_argument, NULL, 'q'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{0},
};

static void set_option(struct options *o, int option)
{
	const char *why;
	long long number;

	switch (option) {
	case 'c':
		if (!parse_num(optarg, 1, FORK_MAX, &number, &why))
			die(EX_USAGE, "bad --count '%s': %s", optarg, why);
		o->count = (unsigned)number;
		break;
	case 'N':
		o->prefix = optarg;
		break;
	case 'p':
		o->partial = true;
		break;
	case 'j':
		o->json = true;
		break;
	case 'q':
		o->quiet = true;
		break;
	case 'v':
		o->verbose = true;
		break;
	case 'V':
		printf("ark-snap %s\n", ARK_VERSION);
		exit(finish(0));
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

static void parse_options(const struct verb *verb, int argc, char **argv,
			  struct options *o)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "c:hqv", long_options,
				     NULL)) != -1) {
		bool always = option == 'h' || option == 'V';

		if (option == '?' ||
		    (!always && !strchr(verb->options, option)))
			die(EX_USAGE, "bad option '%s' (try --help)",
			    argv[optind - 1]);
		set_option(o, option);
	}
}

int main(int argc, char **argv)
{
	struct options o = {.count = 1};
	const struct verb *verb = &verbs[0];

	progname = "ark-snap";
	if (argc < 2)
		die_usage(usage);
	/* `ark snap SANDBOX` takes one: the word is for what is done most. */
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			verb = &verbs[i];
	if (strcmp(argv[1], verb->name) == 0) {
		argc--;
		argv++;
	}
	parse_options(verb, argc, argv, &o);
	argc -= optind;
	argv += optind;
	if (argc < verb->min || argc > verb->max)
		die_usage(usage);
	return finish(verb->run(argv, &o));
}
