/*
 * execs.c - what is or was run in a sandbox: ls, logs, attach, kill, wait; and
 * how the end of a session becomes an exit code.
 *
 * The list comes from the agent, that is from a guest: every field is parsed
 * before it is shown, and a line that is none ends the list with an error.
 */
#include "execs.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <strings.h>

struct options {
	bool quiet, json;
	int signal;
};

struct word {
	const char *name;
	const char *usage; /* behind the word */
	const char *short_options;
	bool id; /* NAME ID, else NAME */
	int (*run)(const struct options *o, struct sandbox *s, const char *id);
};

/* ---- both --------------------------------------------------------------- */

void json_text(FILE *out, const char *text)
{
	char clean[5000];

	printable(clean, sizeof(clean), text);
	putc('"', out);
	for (const char *c = clean; *c; c++) {
		if (*c == '"' || *c == '\\')
			putc('\\', out);
		putc(*c, out);
	}
	putc('"', out);
}

/* What an agent may say about an exec, and about anything else. */
static int error_code(int code, bool transparent)
{
	if (transparent)
		return code == EX_CANNOT_RUN || code == EX_NOT_FOUND ? code
								     : EX_ARK;
	return code >= EX__BASE && code <= EX__MAX ? code : EX_ARK;
}

int exec_run(struct sandbox *s, struct session *session, bool transparent)
{
	enum session_end end = session_run(session);

	tty_restore(); /* a message must not be printed raw */
	switch (end) {
	case END_NONE:
	case END_EXIT:
		if (session->oom && session->code != 0)
			warn_line("sandbox '%s' ran out of memory", s->name);
		return session->code;
	case END_INTERRUPT:
		snprintf(session->text, sizeof(session->text), "interrupted");
		return -(128 + SIGINT);
	case END_LOST:
		client_loss(s, session->text, sizeof(session->text));
		session->code = EX_ARK;
		break;
	case END_ERROR:
		session->code = error_code(session->code, transparent);
		break;
	case END_PROTOCOL:
		session->code = EX_ARK;
		break;
	case END_OUTPUT:
		if (session->code == 128 + SIGPIPE)
			return -session->code; /* quietly, as others do */
		break;
	}
	return fail(session->code, "%s", session->text);
}

/* ---- asking -------------------------------------------------------------- */

/* Ask about one exec (or none) and show the answer. */
static int ask(struct sandbox *s, enum op op, const char *id,
	       struct session *session)
{
	AUTO_CLOSE int sock = agent_open(s, op);
	AUTO_CLOSE int pidfd = -1;
	struct request r = {0};

	if (sock < 0)
		return sock;
	pidfd = proc_pidfd(&s->vmm);
	if ((id && request_add_text(&r, FRAME_ID, id) < 0) ||
	    request_send(&r, sock) < 0)
		return fail_errno(EX_ARK, "cannot ask the agent of '%s'",
				  s->name);
	session->sock = sock;
	session->pidfd = pidfd;
	session->in = -1;
	/* A list or a wait has no output: only hostile agents send it. */
	session->out = op == OP_LIST || op == OP_WAIT ? -1 : STDOUT_FILENO;
	session->err = op == OP_LIST || op == OP_WAIT ? -1 : STDERR_FILENO;
	return exec_run(s, session, false);
}

static int show(const struct options *o, struct sandbox *s, const char *id,
		enum op op)
{
	struct session session = {.sock = -1};

	(void)o;
	return ask(s, op, id, &session);
}

static int do_logs(const struct options *o, struct sandbox *s, const char *id)
{
	return show(o, s, id, OP_LOGS);
}

static int do_attach(const struct options *o, struct sandbox *s, const char *id)
{
	return show(o, s, id, OP_ATTACH);
}

static int do_wait(const struct options *o, struct sandbox *s, const char *id)
{
	return show(o, s, id, OP_WAIT);
}

static int do_kill(const struct options *o, struct sandbox *s, const char *id)
{
	AUTO_CLOSE int sock = agent_open(s, OP_KILL);
	struct request r = {0};

	if (sock < 0)
		return sock;
	if (request_add_text(&r, FRAME_ID, id) < 0 ||
	    request_add_u32(&r, FRAME_SIGNAL, (uint32_t)o->signal) < 0 ||
	    request_send(&r, sock) < 0)
		return fail_errno(EX_ARK, "cannot ask the agent of '%s'",
				  s->name);
	return agent_finish(sock, NULL, 0);
}

/* ---- ls ------------------------------------------------------------------ */

struct list {
	const struct options *o;
	int bad;
};

/* Cut the first tab-separated field off. */
static const char *field(char **text)
{
	char *start = *text, *tab = strchr(start, '\t');

	if (!tab)
		return "";
	*tab = '\0';
	*text = tab + 1;
	return start;
}

bool item_parse(char *text, struct item *i)
{
	const char *why, *state;
	bool good = parse_num(field(&text), 1, UINT32_MAX, &i->id, &why);

	state = field(&text);
	i->running = strcmp(state, "running") == 0;
	good = good && (i->running || strcmp(state, "exited") == 0) &&
	       parse_num(field(&text), 0, 255, &i->result, &why) &&
	       parse_num(field(&text), 0, INT64_MAX, &i->age, &why) &&
	       parse_num(field(&text), 0, 1, &i->detached, &why);
	i->command = text;
	return good;
}

static void print_json(const struct item *i)
{
	printf("{\"id\":%lld,\"state\":\"%s\",\"exit\":", i->id,
	       i->running ? "running" : "exited");
	if (i->running)
		fputs("null", stdout);
	else
		printf("%lld", i->result);
	printf(",\"age\":%lld,\"detached\":%s,\"command\":", i->age,
	       i->detached ? "true" : "false");
	json_text(stdout, i->command);
	puts("}");
}

static void print_row(const struct item *i)
{
	char age[24], state[16] = "running", command[1200];

	if (!i->running)
		snprintf(state, sizeof(state), "exited(%lld)", i->result);
	format_age(age, sizeof(age), (uint64_t)i->age);
	printable(command, sizeof(command), i->command);
	printf("%5lld  %-11s  %5s  %-8s  %s\n", i->id, state, age,
	       i->detached ? "yes" : "no", command);
}

static void print_item(void *data, const char *line)
{
	struct list *list = data;
	AUTO_FREE char *text = strdup(line);
	struct item i;

	if (!text || !item_parse(text, &i)) {
		list->bad++;
		return;
	}
	if (list->o->json)
		print_json(&i);
	else if (list->o->quiet)
		printf("%lld\n", i.id);
	else
		print_row(&i);
}

static int do_ls(const struct options *o, struct sandbox *s, const char *id)
{
	struct list list = {.o = o};
	struct session session = {
		.sock = -1,
		.item = print_item,
		.item_data = &list,
	};
	int r;

	(void)id;
	if (!o->quiet && !o->json)
		printf("%5s  %-11s  %5s  %-8s  %s\n", "ID", "STATE", "AGE",
		       "DETACHED", "COMMAND");
	r = ask(s, OP_LIST, NULL, &session);
	if (r == 0 && list.bad > 0)
		return fail(EX_ARK, "the agent of sandbox '%s' sent a bad list",
			    s->name);
	return r;
}

/* ---- words and options --------------------------------------------------- */

static const struct word words[] = {
	{"ls", "[-q] [--json] NAME", "+hq", false, do_ls},
	{"logs", "NAME ID", "+h", true, do_logs},
	{"attach", "NAME ID", "+h", true, do_attach},
	{"kill", "[-s SIGNAL] NAME ID", "+hs:", true, do_kill},
	{"wait", "NAME ID", "+h", true, do_wait},
};

static const struct word *find_word(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

bool execs_word(const char *word)
{
	return find_word(word) != NULL;
}

/* TERM, SIGTERM, term or 15. */
static int parse_signal(const char *text)
{
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
	const char *why;
	long long number;

	if (parse_num(text, 1, 64, &number, &why))
		return (int)number;
	for (int i = 1; i < 32; i++)
		if (sigabbrev_np(i) && strcasecmp(sigabbrev_np(i), name) == 0)
			return i;
	die(EX_USAGE, "no signal '%s'", text);
}

NORETURN static void usage(const struct word *w)
{
	char line[80];

	snprintf(line, sizeof(line), "ark-exec %s %s", w->name, w->usage);
	die_usage(line);
}

static void parse_options(const struct word *w, struct options *o, int argc,
			  char **argv)
{
	static const struct option known[] = {
		{"quiet", no_argument, NULL, 'q'},
		{"json", no_argument, NULL, 'j'},
		{"signal", required_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, w->short_options, known, NULL)) !=
	       -1) {
		if (c == 'h') {
			printf("Usage: ark-exec %s %s\n", w->name, w->usage);
			exit(finish(0));
		}
		if (c == '?')
			die_option(argv);
		if ((c == 'q' || c == 'j') && w->run == do_ls) {
			o->quiet |= c == 'q';
			o->json |= c == 'j';
		} else if (c == 's' && w->run == do_kill) {
			o->signal = parse_signal(optarg);
		} else {
			usage(w);
		}
	}
}

int execs_main(int argc, char **argv)
{
	const struct word *w = find_word(argv[0]);
	struct options o = {.signal = 9};
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const char *id = NULL, *why;
	long long number;
	int r;

	parse_options(w, &o, argc, argv);
	if (argc - optind != (w->id ? 2 : 1))
		usage(w);
	if (w->id) {
		id = argv[optind + 1];
		if (!parse_num(id, 1, UINT32_MAX, &number, &why))
			return fail(EX_USAGE, "bad id '%s': %s", id, why);
	}
	r = sandbox_open(&s, argv[optind]);
	if (r < 0)
		return r;
	return w->run(&o, &s, id);
}
