/*
 * ark-vm - the virtual machines of sandboxes: create, start, stop ...
 * ark-vm(1) is the manual; life.h does the work, keeper.h what stays behind.
 */
#include "info.h"
#include "keeper.h"
#include "life.h"
#include "spec.h"
#include "usage.h"

#include <getopt.h>

static const char usage[] = "ark-vm create|start|stop|kill|pause|resume|wait|"
			    "logs|inspect|rm [OPTION...] [NAME...]";

static const char help[] =
	"Usage: ark-vm create [--image IMAGE] [-m SIZE] [--cpus N] "
	"[--disk SIZE]\n"
	"                     [-p PORTS] [--policy P] [--net-rate RATE]\n"
	"                     [--io-rate RATE] [--ttl TIME] [--rm] [NAME]\n"
	"       ark-vm start|kill|pause|resume|wait|inspect NAME...\n"
	"       ark-vm stop [-t SECONDS] NAME...\n"
	"       ark-vm logs [-f] NAME\n"
	"       ark-vm rm [-f] NAME...\n"
	"\n"
	"Create, start and end the virtual machines of sandboxes.\n"
	"\n"
	"  -c, --cpus N        vCPUs (create)\n"
	"      --disk SIZE     size of the writable disk (create)\n"
	"  -f, --force         remove a running one; nothing there is fine "
	"(rm)\n"
	"  -f, --follow        go on until the VM ends (logs)\n"
	"      --image IMAGE   what it is made from (create)\n"
	"      --io-rate RATE  bytes per second of its disk, each way, 20M "
	"(create)\n"
	"  -m, --memory SIZE   memory of the guest (create)\n"
	"      --net-rate RATE bits per second each way, 10M (create)\n"
	"  -p, --publish PORTS [ADDRESS:]HOST:GUEST[/udp][=WHAT], or GUEST "
	"(create)\n"
	"      --policy P      open (the internet) or none (create)\n"
	"      --rm            remove it when its VM ends (create)\n"
	"  -t, --time SECONDS  how long the guest may take to power off; 0 "
	"kills (stop)\n"
	"      --ttl TIME      end its VM after this time, 30m (create)\n"
	"  -h, --help          show this and exit\n"
	"      --version       show the version and exit\n";

struct options {
	struct sandbox_spec spec;
	bool force_or_follow;
	uint64_t stop_ms;
	bool many; /* more than one sandbox is named */
};

/* ---- verbs over one sandbox --------------------------------------------- */

static int start(struct sandbox *s, const struct options *o)
{
	(void)o;
	return vm_start(s);
}

static int stop(struct sandbox *s, const struct options *o)
{
	return vm_stop(s, o->stop_ms);
}

static int kill_it(struct sandbox *s, const struct options *o)
{
	(void)o;
	return vm_kill(s);
}

static int pause_it(struct sandbox *s, const struct options *o)
{
	(void)o;
	return vm_pause(s);
}

static int resume(struct sandbox *s, const struct options *o)
{
	(void)o;
	return vm_resume(s);
}

static int wait_for(struct sandbox *s, const struct options *o)
{
	int r = vm_wait(s);

	if (r == 0 && o->many)
		printf("%s: ", s->name);
	if (r == 0)
		printf("%s%s%s\n", state_word(s), s->reason[0] ? ": " : "",
		       s->reason);
	return r;
}

static int logs(struct sandbox *s, const struct options *o)
{
	return vm_logs(s, o->force_or_follow);
}

static int inspect(struct sandbox *s, const struct options *o)
{
	json_t *object = info_json(s, USAGE_CHEAP | USAGE_PRIVATE);
	json_t *jail = info_jail(s);
	json_t *counters = info_counters(s);

	(void)o;
	if (object && jail)
		json_object_set_new(object, "jail", jail);
	if (object && counters)
		json_object_set_new(object, "counters", counters);
	if (!object || json_dumpf(object, stdout, JSON_COMPACT) < 0)
		return fail(EX_OSERR, "cannot print '%s'", s->name);
	json_decref(object);
	putchar('\n');
	return 0;
}

static int remove_it(struct sandbox *s, const struct options *o)
{
	return vm_remove(s, o->force_or_follow);
}

/* A command that finds a VM without a keeper runs this; users need not. */
static int adopt(struct sandbox *s, const struct options *o)
{
	(void)o;
	return keeper_adopt(s);
}

static const struct verb {
	const char *name;
	int (*run)(struct sandbox *s, const struct options *o);
	const char *options; /* short options that it takes */
	bool one;	     /* exactly one name */
} verbs[] = {
	{"start", start, "", false},   {"stop", stop, "t", false},
	{"kill", kill_it, "", false},  {"pause", pause_it, "", false},
	{"resume", resume, "", false}, {"wait", wait_for, "", false},
	{"logs", logs, "f", true},     {"inspect", inspect, "", false},
	{"rm", remove_it, "f", false}, {"adopt", adopt, "", true},
};

/* ---- options ------------------------------------------------------------ */

enum {
	OPT_IMAGE = 256,
	OPT_DISK,
	OPT_IO_RATE,
	OPT_NET_RATE,
	OPT_POLICY,
	OPT_RM,
	OPT_TTL,
	OPT_VERSION
};

static const struct option long_options[] = {
	{"cpus", required_argument, NULL, 'c'},
	{"disk", required_argument, NULL, OPT_DISK},
	{"force", no_argument, NULL, 'f'},
	{"follow", no_argument, NULL, 'f'},
	{"image", required_argument, NULL, OPT_IMAGE},
	{"io-rate", required_argument, NULL, OPT_IO_RATE},
	{"memory", required_argument, NULL, 'm'},
	{"net-rate", required_argument, NULL, OPT_NET_RATE},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"publish", required_argument, NULL, 'p'},
	{"rm", no_argument, NULL, OPT_RM},
	{"time", required_argument, NULL, 't'},
	{"ttl", required_argument, NULL, OPT_TTL},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

static void set_option(struct options *o, int option)
{
	const char *why;

	switch (option) {
	case 'c':
		spec_cpus(&o->spec, optarg);
		break;
	case 'f':
		o->force_or_follow = true;
		break;
	case 'm':
		spec_memory(&o->spec, optarg);
		break;
	case 'p':
		spec_publish(&o->spec, optarg);
		break;
	case 't':
		if (!parse_duration(optarg, &o->stop_ms, &why))
			die(EX_USAGE, "bad --time '%s': %s", optarg, why);
		break;
	case OPT_DISK:
		spec_disk(&o->spec, optarg);
		break;
	case OPT_IMAGE:
		o->spec.image = optarg;
		break;
	case OPT_IO_RATE:
		spec_io_rate(&o->spec, optarg);
		break;
	case OPT_NET_RATE:
		spec_net_rate(&o->spec, optarg);
		break;
	case OPT_POLICY:
		spec_policy(&o->spec, optarg);
		break;
	case OPT_RM:
		o->spec.rm = true;
		break;
	case OPT_TTL:
		spec_ttl(&o->spec, optarg);
		break;
	case OPT_VERSION:
		printf("ark-vm %s\n", ARK_VERSION);
		exit(finish(0));
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

/* Is the option one of this verb's?  `create` has all the long ones. */
static bool takes(const struct verb *verb, int option)
{
	if (option == 'h' || option == OPT_VERSION || option == '?')
		return true;
	if (!verb)
		return option != 'f' && option != 't';
	return option < 256 && strchr(verb->options, option);
}

static void parse_options(const struct verb *verb, int argc, char **argv,
			  struct options *o)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "c:fhm:p:t:", long_options,
				     NULL)) != -1) {
		if (option == '?')
			die_option(argv);
		if (!takes(verb, option))
			die(EX_USAGE, "%s does not take '%s' (try --help)",
			    verb ? verb->name : "create", argv[optind - 1]);
		set_option(o, option);
	}
}

/* ---- main --------------------------------------------------------------- */

static int create(int argc, char **argv, const struct options *o)
{
	char name[NAME_MAX_LEN + 1];
	int r = 0;

	if (argc > 1)
		die(EX_USAGE, "create takes one name");
	if (argc == 1) {
		r = sandbox_create(argv[0], &o->spec);
		if (r == 0)
			puts(argv[0]);
		return r;
	}
	generate_name(name, sizeof(name));
	r = sandbox_create(name, &o->spec);
	if (r == 0)
		puts(name);
	return r;
}

static int run_one(const struct verb *verb, const char *name,
		   const struct options *o)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_CLOSE int vms = root_open("vm");
	int r;

	if (vms < 0)
		return vms;
	if (verb->run == remove_it && o->force_or_follow &&
	    !sandbox_exists(name))
		return check_name("sandbox", name);
	r = sandbox_open(&s, name);
	return r < 0 ? r : verb->run(&s, o);
}

/* Many names: go on after a failure, end with the first one's code. */
static int run_all(const struct verb *verb, int argc, char **argv,
		   const struct options *o)
{
	int result = 0;

	if (argc == 0)
		die(EX_USAGE, "%s: no sandbox named (try --help)", verb->name);
	if (verb->one && argc > 1)
		die(EX_USAGE, "%s takes one sandbox", verb->name);
	for (int i = 0; i < argc; i++) {
		int r = run_one(verb, argv[i], o);

		if (result == 0)
			result = r;
	}
	return result;
}

int main(int argc, char **argv)
{
	struct options o = {.stop_ms = 10000};
	const struct verb *verb = NULL;

	progname = "ark-vm";
	if (argc < 2)
		die_usage(usage);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			verb = &verbs[i];
	if (argv[1][0] != '-' && !verb && strcmp(argv[1], "create") != 0)
		die(EX_USAGE, "no such command '%s' (try --help)", argv[1]);
	if (argv[1][0] == '-') {
		parse_options(NULL, argc, argv, &o);
		die_usage(usage);
	}
	argc--;
	argv++;
	parse_options(verb, argc, argv, &o);
	o.many = argc - optind > 1;
	if (verb)
		return finish(run_all(verb, argc - optind, argv + optind, &o));
	return finish(create(argc - optind, argv + optind, &o));
}
