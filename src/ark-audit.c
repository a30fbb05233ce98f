/*
 * ark-audit - read and verify the audit log.  ark-audit(8) is the manual,
 * audit.h says what can be found.
 *
 * It changes nothing, not even the lock: whoever may read the log may check
 * it, and a log that is being written to as well.
 */
#include "audit.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>

static const char usage[] = "ark-audit verify|show [OPTION...]";
static const char help[] =
	"Usage: ark-audit verify [--head SEQ:HASH] [OLDER-FILE...]\n"
	"       ark-audit show [--json] [-n COUNT] [--tenant TENANT]\n"
	"\n"
	"Read and verify the log of what requests have changed and run.\n"
	"\n"
	"      --head SEQ:HASH   what the system log says of one record\n"
	"      --json            the lines as they are (show)\n"
	"  -n, --lines COUNT     the last COUNT records (show)\n"
	"      --tenant TENANT   of this tenant only (show)\n"
	"  -h, --help            show this and exit\n"
	"      --version         show the version and exit\n";

struct options {
	struct audit_check check;
	bool json;
	long long lines; /* 0: all */
	const char *tenant;
};

/* ---- verify ------------------------------------------------------------- */

static int verify(struct options *o, int argc, char **argv)
{
	struct audit_check *c = &o->check;
	int r = audit_verify(argv, (size_t)argc, c);

	if (r == 0 && c->last)
		printf("%lld records, the last is %lld:%s\n", c->lines, c->last,
		       c->hash);
	else if (r == 0)
		puts("no records");
	return r;
}

/* ---- show --------------------------------------------------------------- */

struct lines {
	char **line; /* a ring of the last ones; owned */
	size_t size, n;
};

static void print_number(long long n, const char *unit)
{
	if (n < 0)
		printf(" -");
	else
		printf(" %lld%s", n, unit);
}

static void show_line(const struct options *o, const char *line)
{
	struct audit_record r;
	const char *why = audit_parse(line, strlen(line), &r);

	if (o->json) {
		puts(line);
		return;
	}
	printf("%lld %s %s %s %s %s %s", r.seq, r.time, r.tenant, r.token,
	       *r.address ? r.address : "-", r.action,
	       *r.object ? r.object : "-");
	print_number(r.result, "");
	print_number(r.ms, "ms");
	puts(why ? " CHANGED" : "");
}

/* Shown at once, or kept when only the last ones are asked for. */
static int take_line(const struct options *o, struct lines *kept, char *line)
{
	struct audit_record r;

	/* What is no record is verify's to tell. */
	audit_parse(line, strlen(line), &r);
	if (r.seq == 0 || (o->tenant && strcmp(r.tenant, o->tenant) != 0))
		return 0;
	if (!kept->line) {
		show_line(o, line);
		return 0;
	}
	free(kept->line[kept->n % kept->size]);
	kept->line[kept->n % kept->size] = strdup(line);
	if (!kept->line[kept->n++ % kept->size])
		return fail_errno(EX_OSERR, "cannot read the audit log");
	return 0;
}

static void show_kept(const struct options *o, struct lines *kept)
{
	size_t n = kept->n < kept->size ? kept->n : kept->size;

	for (size_t i = kept->n - n; i < kept->n; i++)
		show_line(o, kept->line[i % kept->size]);
	for (size_t i = 0; i < kept->size; i++)
		free(kept->line[i]);
	free(kept->line);
}

static FILE *open_log(void)
{
	AUTO_CLOSE int root = root_open(NULL);
	int fd = root < 0 ? -1
			  : openat(root, "audit.log",
				   O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? NULL : fdopen(fd, "r");
}

static int show(const struct options *o)
{
	struct lines kept = {.size = (size_t)o->lines};
	FILE *in = open_log();
	AUTO_FREE char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int r = 0;

	if (!in)
		return errno == ENOENT ? 0
				       : fail_errno(EX_NOINPUT,
						    "cannot read audit.log");
	if (kept.size)
		kept.line = calloc(kept.size, sizeof(char *));
	if (kept.size && !kept.line)
		r = fail_errno(EX_OSERR, "cannot read the audit log");
	while (r == 0 && (len = getline(&line, &size, in)) > 0) {
		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		r = take_line(o, &kept, line);
	}
	fclose(in);
	if (kept.line)
		show_kept(o, &kept);
	return r;
}

/* ---- options ------------------------------------------------------------ */

static void parse_head(struct audit_check *c, const char *text)
{
	const char *colon = strchr(text, ':'), *why = "not SEQ:HASH";
	char number[24];
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!colon || len >= sizeof(number) || strlen(colon + 1) != 64 ||
	    strspn(colon + 1, "0123456789abcdef") != 64)
		die(EX_USAGE, "bad head '%s': %s", text, why);
	memcpy(number, text, len);
	number[len] = '\0';
	if (!parse_num(number, 1, INT64_MAX, &c->head_seq, &why))
		die(EX_USAGE, "bad head '%s': %s", text, why);
	memcpy(c->head_hash, colon + 1, 65);
}

enum { OPT_HEAD = 256, OPT_JSON, OPT_TENANT, OPT_VERSION };

static void set_option(struct options *o, int option)
{
	const char *why;

	switch (option) {
	case OPT_HEAD:
		parse_head(&o->check, optarg);
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_TENANT:
		if (!tenant_ok(optarg))
			die(EX_USAGE, "bad tenant '%.40s'", optarg);
		o->tenant = optarg;
		break;
	case 'n':
		if (!parse_num(optarg, 1, 1000000, &o->lines, &why))
			die(EX_USAGE, "bad count '%s': %s", optarg, why);
		break;
	case OPT_VERSION:
		puts("ark-audit " ARK_VERSION);
		exit(finish(0));
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	default:
		die_usage(usage);
	}
}

static const struct option long_options[] = {
	{"head", required_argument, NULL, OPT_HEAD},
	{"json", no_argument, NULL, OPT_JSON},
	{"lines", required_argument, NULL, 'n'},
	{"tenant", required_argument, NULL, OPT_TENANT},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

int main(int argc, char **argv)
{
	struct options o = {0};
	const char *verb;
	int option;

	progname = "ark-audit";
	opterr = 0;
	while ((option = getopt_long(argc, argv, "hn:", long_options, NULL)) !=
	       -1) {
		if (option == '?')
			die_option(argv);
		set_option(&o, option);
	}
	verb = argv[optind];
	if (!verb)
		die_usage(usage);
	argc -= optind + 1;
	argv += optind + 1;
	if (strcmp(verb, "verify") == 0) {
		if (o.json || o.lines || o.tenant)
			die(EX_USAGE, "verify takes --head only");
		return finish(verify(&o, argc, argv));
	}
	if (strcmp(verb, "show") != 0)
		die(EX_USAGE, "no command '%s' (try --help)", verb);
	if (argc > 0)
		die(EX_USAGE, "unexpected '%s' (try --help)", argv[0]);
	if (o.check.head_seq)
		die(EX_USAGE, "--head is an option of verify");
	return finish(show(&o));
}
