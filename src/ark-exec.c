/*
 * ark-exec - run a command in a sandbox, as if it ran here: its streams, its
 * signals, its exit code.
 *
 * 1. The exit code is the command's own.  So that it can be told from ours,
 *    ours are few: 125 when ark, the VMM or the agent failed, 126 and 127 when
 *    the command could not be run, 124 after --timeout, 64 and 66 for what is
 *    wrong before anything runs.  --status-fd tells exactly.
 * 2. The descriptors 0, 1 and 2 are made sure of first: on a closed one the
 *    connection would be opened, and the output of a guest written into it.
 * 3. When the connection ends, so does the command: the agent kills the tree.
 *    Nothing has to be cleaned up here, whatever ends us.
 */
#include "execs.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>

static const char usage[] = "ark-exec [OPTION]... NAME [--] COMMAND [ARG]...";
static const char help[] =
	"Usage: ark-exec [OPTION]... NAME [--] COMMAND [ARG]...\n"
	"       ark-exec --shell [OPTION]... NAME\n"
	"       ark-exec ls [-q] [--json] NAME\n"
	"       ark-exec logs|attach|wait NAME ID\n"
	"       ark-exec kill [-s SIGNAL] NAME ID\n"
	"\n"
	"  -t, --tty           a terminal, even when stdin or stdout is none\n"
	"  -T, --no-tty        no terminal\n"
	"  -n, --no-stdin      stdin is /dev/null\n"
	"  -i, --interactive   ignored: stdin is always attached\n"
	"  -d, --detach        print the exec's id and leave it running\n"
	"  -e, --env K=V       set a variable; K alone: as it is here\n"
	"  -u, --user U[:G]    run as this user and group\n"
	"  -w, --workdir DIR   run in this directory\n"
	"      --timeout D     kill it and exit with 124 after 30s, 5m, 1h "
	"...\n"
	"      --shell         no command: the user's shell, as at a login\n"
	"      --status-fd N   write how it ended to descriptor N, as JSON\n"
	"  -h, --help          show this and exit\n"
	"      --version       show the version and exit\n"
	"\n"
	"The exit code is the command's; 124 timeout, 125 the sandbox failed,\n"
	"126 not executable, 127 not found, 128+N killed by signal N.\n";

enum { OPT_TIMEOUT = 256, OPT_SHELL, OPT_STATUS, OPT_VERSION };

enum tty_choice { TTY_AUTO, TTY_FORCE, TTY_NEVER };

struct options {
	enum tty_choice tty;
	bool no_stdin, detach, shell;
	bool term; /* -e TERM was given */
	const char *user, *dir;
	uint64_t timeout;
	int status_fd;
	struct request request;
};

/* ---- how it ended -------------------------------------------------------- */

static void write_status(int fd, const struct session *s, int result)
{
	char line[6000];
	FILE *out;
	bool told = result < 0;

	if (fd < 0)
		return;
	out = fmemopen(line, sizeof(line), "w");
	if (!out)
		return;
	if (told || s->signal)
		fputs("{\"exit\":null", out);
	else
		fprintf(out, "{\"exit\":%d", result);
	if (s->signal)
		fprintf(out, ",\"signal\":%d", s->signal);
	else
		fputs(",\"signal\":null", out);
	fprintf(out, ",\"timeout\":%s,\"oom\":%s,\"error\":",
		s->timeout ? "true" : "false", s->oom ? "true" : "false");
	if (told)
		json_text(out, s->text);
	else
		fputs("null", out);
	fputs("}\n", out);
	fclose(out);
	if (write_full(fd, line, strlen(line)) < 0)
		warn_line("cannot write to --status-fd: %s", strerror(errno));
}

/* ---- run it -------------------------------------------------------------- */

static bool want_tty(const struct options *o)
{
	if (o->tty == TTY_AUTO)
		return !o->detach && !o->no_stdin && isatty(STDIN_FILENO) &&
		       isatty(STDOUT_FILENO);
	return o->tty == TTY_FORCE;
}

static int add_tty(struct request *r, const struct options *o)
{
	const char *term = getenv("TERM");
	char variable[128];
	int n;

	if (request_add_winsize(r, o->no_stdin ? STDOUT_FILENO : STDIN_FILENO) <
	    0)
		return -1;
	if (o->term || !term || !*term)
		return 0;
	n = snprintf(variable, sizeof(variable), "TERM=%s", term);
	if (n >= (int)sizeof(variable))
		return 0;
	return request_add_text(r, FRAME_ENV, variable);
}

static int build(struct options *o, bool tty, char **argv)
{
	struct request *r = &o->request;
	unsigned char ms[8];
	uint32_t flags = (tty ? EXEC_TTY : 0) | (o->detach ? EXEC_DETACH : 0) |
			 (o->no_stdin || o->detach ? EXEC_NO_STDIN : 0);
	int bad = 0;

	put_u64(ms, o->timeout);
	for (; *argv; argv++)
		bad |= request_add_text(r, FRAME_ARG, *argv);
	if (o->user)
		bad |= request_add_text(r, FRAME_USER, o->user);
	if (o->dir)
		bad |= request_add_text(r, FRAME_CWD, o->dir);
	if (o->timeout)
		bad |= request_add(r, FRAME_TIMEOUT, ms, sizeof(ms));
	if (flags)
		bad |= request_add_u32(r, FRAME_FLAGS, flags);
	if (tty)
		bad |= add_tty(r, o);
	return bad ? fail_errno(EX_CANNOT_RUN, "cannot send the command") : 0;
}

static int converse(struct sandbox *s, struct session *session,
		    const struct options *o, bool tty)
{
	AUTO_CLOSE int activity = -1;
	AUTO_CLOSE int pidfd = proc_pidfd(&s->vmm);
	int result;

	client_active(s, &activity);
	session->pidfd = pidfd;
	session->in = o->no_stdin || o->detach ? -1 : STDIN_FILENO;
	session->out = STDOUT_FILENO;
	session->err = STDERR_FILENO;
	session->proxy = true;
	session->raw = tty && session->in >= 0 && isatty(session->in) &&
		       tty_raw(session->in) == 0;
	result = exec_run(s, session, true);
	if (o->detach && result == 0)
		puts(session->id);
	client_active(s, &activity);
	return result;
}

static int run(struct options *o, const char *name, char **argv,
	       struct session *session)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_CLOSE int sock = -1;
	bool tty = want_tty(o);
	int r;

	r = sandbox_open(&s, name);
	if (r == 0)
		r = build(o, tty, argv);
	if (r < 0)
		return r;
	sock = agent_open(&s, OP_EXEC);
	if (sock < 0)
		return sock;
	session->sock = sock;
	/* An agent that is gone or refuses is told by the session. */
	request_send(&o->request, sock);
	return converse(&s, session, o, tty);
}

/* ---- options ------------------------------------------------------------- */

static void add_env(struct options *o, const char *text)
{
	const char *equals = strchr(text, '=');
	const char *value = NULL;
	AUTO_FREE char *variable = NULL;

	if (!*text || equals == text)
		die(EX_USAGE, "bad variable '%s': not NAME=VALUE", text);
	if (!equals) {
		value = getenv(text);
		if (!value)
			return;
		if (asprintf(&variable, "%s=%s", text, value) < 0)
			die(EX_OSERR, "out of memory");
		text = variable;
	}
	if (strncmp(text, "TERM=", 5) == 0)
		o->term = true;
	if (request_add_text(&o->request, FRAME_ENV, text) < 0)
		die(EX_CANNOT_RUN, "cannot send the environment: %s",
		    strerror(errno));
}

static int parse_fd(const char *text)
{
	const char *why;
	long long fd;

	if (!parse_num(text, 0, INT32_MAX, &fd, &why))
		die(EX_USAGE, "bad descriptor '%s': %s", text, why);
	if (fcntl((int)fd, F_SETFD, fd > 2 ? FD_CLOEXEC : 0) < 0)
		die(EX_USAGE, "bad descriptor '%s': not open", text);
	return (int)fd;
}

static void parse_option(struct options *o, int c, const char *arg)
{
	const char *why;

	switch (c) {
	case 't':
		o->tty = TTY_FORCE;
		break;
	case 'T':
		o->tty = TTY_NEVER;
		break;
	case 'n':
		o->no_stdin = true;
		break;
	case 'i':
		break;
	case 'd':
		o->detach = true;
		break;
	case 'e':
		add_env(o, arg);
		break;
	case 'u':
		if (!*arg)
			die(EX_USAGE, "the user's name is empty");
		o->user = arg;
		break;
	case 'w':
		if (*arg != '/')
			die(EX_USAGE, "bad directory '%s': not absolute", arg);
		o->dir = arg;
		break;
	case OPT_TIMEOUT:
		if (!parse_duration(arg, &o->timeout, &why))
			die(EX_USAGE, "bad timeout '%s': %s", arg, why);
		break;
	case OPT_SHELL:
		o->shell = true;
		break;
	case OPT_STATUS:
		o->status_fd = parse_fd(arg);
		break;
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	case OPT_VERSION:
		puts("ark-exec " ARK_VERSION);
		exit(finish(0));
	default:
		exit(EX_USAGE);
	}
}

/* Options stand before NAME or behind it, up to the command. */
static void parse_options(struct options *o, int argc, char **argv)
{
	static const struct option known[] = {
		{"tty", no_argument, NULL, 't'},
		{"no-tty", no_argument, NULL, 'T'},
		{"no-stdin", no_argument, NULL, 'n'},
		{"interactive", no_argument, NULL, 'i'},
		{"detach", no_argument, NULL, 'd'},
		{"env", required_argument, NULL, 'e'},
		{"user", required_argument, NULL, 'u'},
		{"workdir", required_argument, NULL, 'w'},
		{"cwd", required_argument, NULL, 'w'},
		{"timeout", required_argument, NULL, OPT_TIMEOUT},
		{"status-fd", required_argument, NULL, OPT_STATUS},
		{"shell", no_argument, NULL, OPT_SHELL},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPT_VERSION},
		{0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+htTnide:u:w:", known, NULL)) !=
	       -1) {
		if (c == '?')
			die_option(argv);
		parse_option(o, c, optarg);
	}
}

/* The words of the command.  The login shell is the guest's to know: its agent
 * sets SHELL from the guest's own passwd. */
static char **command_of(const struct options *o, char **rest)
{
	static const char *const login[] = {
		"/bin/sh", "-c", "exec \"${SHELL:-/bin/sh}\" -l", NULL};

	if (o->shell && *rest)
		die(EX_USAGE, "--shell takes no command");
	if (!o->shell && !*rest)
		die_usage(usage);
	return o->shell ? (char **)(uintptr_t)login : rest;
}

int main(int argc, char **argv)
{
	struct options o = {.status_fd = -1};
	struct session session = {.sock = -1};
	const char *name;
	int result;

	progname = "ark-exec";
	client_stdio();
	if (argc > 1 && execs_word(argv[1]))
		return finish(execs_main(argc - 1, argv + 1));
	parse_options(&o, argc, argv);
	argc -= optind;
	argv += optind;
	if (argc == 0)
		die_usage(usage);
	/* The name is the argv[0] of what follows it; 0 makes getopt forget
	 * the words that it would else move about a second "--". */
	name = argv[0];
	optind = 0;
	parse_options(&o, argc, argv);
	result = run(&o, name, command_of(&o, argv + optind), &session);
	if (result < 0 && session.sock < 0)
		snprintf(session.text, sizeof(session.text), "%s",
			 last_message());
	write_status(o.status_fd, &session, result);
	return finish(result);
}
