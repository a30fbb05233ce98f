/*
 * ark-cgi - answer one HTTP request, as a CGI or SCGI program; or listen, and
 * run itself for each.  ark-cgi(8) is the manual.
 *
 * 1. Tokens are read first, before the parser is started: it can check them in
 *    its cage and cannot read a file any more.
 * 2. The environment is the web server's (in CGI even the client's, HTTP_...):
 *    the parser reads it, and no command that is run gets any of it but what
 *    is kept by name.
 * 3. In this order, each before the next one costs anything: token, scope,
 *    rate, audit, quota, the deed, audit again.  What was refused for its
 *    token is not on record, so that nobody can fill the disk without one.
 * 4. SIGPIPE and SIGTERM do not end a request that changes something: a client
 *    that goes away, or a server that is stopped, leaves nothing half done and
 *    no virtual machine paused.
 */
#include "audit.h"
#include "metrics.h"
#include "rest.h"
#include "session.h"

#include <getopt.h>
#include <signal.h>

#define LIMIT 256

static const char help[] =
	"Usage: ark-cgi [--scgi]\n"
	"       ark-cgi --listen PATH | FD [--group GROUP] [--limit N]\n"
	"\n"
	"Answers one HTTP request: a CGI program by its environment, or with\n"
	"--scgi by SCGI on stdin and stdout.\n"
	"\n"
	"      --scgi          stdin is the connection of a SCGI request\n"
	"      --listen WHERE  accept SCGI on a socket that is made, or on an\n"
	"                      open descriptor\n"
	"      --group GROUP   who may connect to the socket that is made\n"
	"      --limit N       requests at once (256)\n"
	"  -h, --help          show this and exit\n"
	"      --version       show the version and exit\n";

static struct auth_table table;

static bool known(const char *creds)
{
	const char *why;

	return auth_check(&table, creds, &why);
}

/* ---- one request --------------------------------------------------------- */

/* Argument 2. */
static int clean_environment(void)
{
	static const char *const kept[] = {"PATH",     "ARK_ROOT", "ARK_RUN",
					   "ARK_CONF", "ARK_VMM",  "ARK_ACCEL",
					   "LANG",     "TZ"};
	char *values[ARRAY_LEN(kept)];
	int bad = 0;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		const char *value = getenv(kept[i]);

		values[i] = value ? strdup(value) : NULL;
	}
	clearenv();
	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		if (values[i])
			bad |= setenv(kept[i], values[i], 1);
		free(values[i]);
	}
	return bad;
}

static void nothing(int sig)
{
	(void)sig;
}

/* A handler and not SIG_IGN: a command that is run does not inherit it. */
static void ignore(int sig)
{
	const struct sigaction action = {.sa_handler = nothing,
					 .sa_flags = SA_RESTART};

	sigaction(sig, &action, NULL);
}

static bool on_loopback(const char *address)
{
	return !*address || strncmp(address, "127.", 4) == 0 ||
	       strcmp(address, "::1") == 0 ||
	       strncmp(address, "::ffff:127.", 11) == 0;
}

/* Whose is it, and may he: 0, or the status that was answered. */
static int admit(struct call *c, bool open)
{
	const char *why = "";

	if (open && !on_loopback(c->remote))
		return answer_error(403, NULL,
				    "without authentication only "
				    "this host is served");
	c->token = open ? &auth_anyone : auth_check(&table, c->creds, &why);
	if (!c->token) {
		metrics_count(COUNT_UNAUTHORIZED);
		return answer_error(401, NULL, "%s", why);
	}
	if (c->token->scope < c->route->scope)
		return answer_error(403, NULL, "needs the scope %s",
				    scope_word(c->route->scope));
	return 0;
}

static int run_route(struct call *c)
{
	int r = check_rate(c);

	if (r == 0 && c->name)
		r = full_name(c, "name", c->name, c->full);
	return r ? r : c->route->run(c);
}

/* Argument 3. */
static int run_audited(struct call *c)
{
	struct audit a = {
		.tenant = c->token->tenant,
		.token = c->token->id,
		.address = c->remote,
		.action = c->route->action,
		.object = c->full,
	};
	int r = audit_begin(&a);

	if (r < 0)
		return answer_error(503, NULL,
				    "the audit log cannot be "
				    "written");
	ignore(SIGTERM);
	answer_header("X-Request-Id: %s", a.id);
	r = run_route(c);
	audit_end(&a, r);
	return r;
}

static int serve(struct call *c, bool open)
{
	int r;

	if (c->route->scope == SCOPE_NONE)
		return c->route->run(c);
	r = admit(c, open);
	if (r)
		return r;
	if (c->route->flags & ROUTE_CHANGES)
		return run_audited(c);
	return run_route(c);
}

/* Read, answer, count. */
static int one_request(bool scgi)
{
	struct call c = {.began = now_us(), .claim = CLAIM_NONE};
	struct parser p = {.in = STDIN_FILENO, .scgi = scgi, .caged = true};
	struct conf conf;
	int r = conf_load(&conf);

	ignore(SIGPIPE);
	if (r == 0 && !conf.no_auth)
		r = auth_load(&table);
	if (r < 0)
		return answer_error(503, NULL, "the configuration is broken");
	p.open = conf.no_auth;
	p.known = known;
	r = request_read(&c, &p);
	if (clean_environment())
		r = answer_error(503, NULL, "out of memory");
	if (r == 0)
		r = serve(&c, p.open);
	quota_release(&c.claim);
	metrics_request(r, now_us() - c.began);
	call_free(&c);
	auth_free(&table);
	return 0;
}

/* ---- listen -------------------------------------------------------------- */

static int listen_at(const char *where, const char *group, const char *most)
{
	const char *why;
	long long limit = LIMIT;

	if (most && !parse_num(most, 1, 4096, &limit, &why))
		return fail(EX_USAGE, "bad --limit '%s': %s", most, why);
	return cgi_listen(where, group, (unsigned)limit);
}

/* ---- main ---------------------------------------------------------------- */

int main(int argc, char **argv)
{
	static const struct option known_options[] = {
		{"scgi", no_argument, NULL, 's'},
		{"listen", required_argument, NULL, 'l'},
		{"group", required_argument, NULL, 'g'},
		{"limit", required_argument, NULL, 'n'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	const char *listen_where = NULL, *group = NULL, *limit = NULL;
	bool scgi = false;
	int c;

	progname = "ark-cgi";
	client_stdio();
	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", known_options, NULL)) != -1) {
		switch (c) {
		case 's':
			scgi = true;
			break;
		case 'l':
			listen_where = optarg;
			break;
		case 'g':
			group = optarg;
			break;
		case 'n':
			limit = optarg;
			break;
		case 'h':
			fputs(help, stdout);
			return finish(0);
		case 'V':
			puts("ark-cgi " ARK_VERSION);
			return finish(0);
		default:
			die_option(argv);
		}
	}
	if (optind < argc)
		die(EX_USAGE, "unexpected '%s' (try --help)", argv[optind]);
	if (listen_where)
		return finish(listen_at(listen_where, group, limit));
	return one_request(scgi);
}
