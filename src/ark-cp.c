/*
 * ark-cp - copy files and directories into a sandbox or out of it.
 *
 * 1. tree.h does the copying and says what a guest's tree may not do here.
 *    Every source is one connection, so a guest only ever sees one path.
 * 2. The connection is the handle for everything that can end a copy: a signal
 *    and the death of the VMM shut it down, the copy fails as on any broken
 *    connection, and its temporary file is removed on the way out.
 */
#include "session.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

static const char usage[] = "ark-cp [-p] SOURCE... DESTINATION";
static const char help[] =
	"Usage: ark-cp [-p] SOURCE... DESTINATION\n"
	"\n"
	"Copies files and directories; one side is NAME:PATH, in a sandbox.\n"
	"A local path with a colon is written ./a:b.\n"
	"\n"
	"  -p, --parents   make the missing directories of DESTINATION\n"
	"  -h, --help      show this and exit\n"
	"      --version   show the version and exit\n";

/* An operand; `name` is empty when it is local. */
struct place {
	const char *text; /* as the user wrote it */
	char name[NAME_MAX_LEN + 1];
	char path[4096];
};

/* ---- what can end a copy ------------------------------------------------- */

static volatile sig_atomic_t caught;
static volatile sig_atomic_t sock = -1;

static void on_signal(int sig)
{
	caught = sig;
	shutdown(sock, SHUT_RDWR);
}

/* A second signal kills at once (SA_RESETHAND). */
static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	const struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = (int)SA_RESETHAND,
	};
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

/* A dead guest sends no end of file: nothing would wake us from a read. */
static void *watch_vmm(void *pidfd)
{
	struct pollfd p = {.fd = *(int *)pidfd, .events = POLLIN};

	while (poll(&p, 1, -1) < 1)
		continue;
	shutdown(sock, SHUT_RDWR);
	return NULL;
}

/* ---- one copy ------------------------------------------------------------ */

struct copy {
	const struct place *from, *to;
	unsigned flags; /* TREE_* */
	const char *base;
	struct sandbox *s;
};

static int failed(const struct copy *c, int code, const char *why)
{
	return fail(code, "cannot copy '%s' to '%s': %s", c->from->text,
		    c->to->text, why);
}

/* The agent's next word, STARTED or EXIT: 0; or the code and the reason of its
 * refusal; EX_ARK and no reason when it said nothing. */
static int await_answer(char *why, size_t size)
{
	AUTO_FREE struct frame *f = malloc(sizeof(*f));
	int code;

	*why = '\0';
	if (!f || frame_recv(sock, f) != 1)
		return EX_ARK;
	if (f->type == FRAME_STARTED || f->type == FRAME_EXIT)
		return 0;
	if (f->type != FRAME_ERROR || f->len <= 4)
		return EX_ARK;
	code = (int)(get_u32(f->data) & 0xff);
	snprintf(why, size, "%s", (const char *)f->data + 4);
	return code >= EX__BASE && code <= EX__MAX ? code : EX_ARK;
}

/* Who gave up first knows why; the other one has only lost a connection. */
static int transfer_put(const struct copy *c, char *why, size_t size)
{
	struct tree_error error;
	int sent = tree_send(sock, AT_FDCWD, c->from->path, &error);
	int code = await_answer(why, size);

	if (sent == 0 || *why)
		return code;
	if (!caught)
		snprintf(why, size, "%s", error.text);
	return EX_IOERR;
}

/* Instead of a tree there may be a refusal: no such file. */
static bool refused(void)
{
	unsigned char head[FRAME_HEAD];

	return recv(sock, head, sizeof(head), MSG_PEEK | MSG_WAITALL) ==
		       FRAME_HEAD &&
	       head[0] == FRAME_ERROR;
}

static int transfer_get(const struct copy *c, char *why, size_t size)
{
	struct tree_error error;

	if (refused())
		return await_answer(why, size);
	if (tree_recv(sock, AT_FDCWD, c->to->path, c->base,
		      c->flags | TREE_UNTRUSTED, &error) == 0)
		return 0;
	snprintf(why, size, "%s", error.text);
	return EX_IOERR;
}

/* After the request: 0, or the code and the reason. */
static int transfer(const struct copy *c, char *why, size_t size)
{
	int code = await_answer(why, size);

	if (code)
		return code;
	return *c->from->name ? transfer_get(c, why, size)
			      : transfer_put(c, why, size);
}

static int send_request(const struct copy *c)
{
	const char *path = *c->from->name ? c->from->path : c->to->path;
	uint32_t flags = (c->flags & TREE_PARENTS ? FILE_PARENTS : 0) |
			 (c->flags & TREE_INTO ? FILE_INTO : 0);
	struct request r = {0};
	int bad = request_add_text(&r, FRAME_PATH, path);

	if (!*c->from->name) {
		bad |= request_add_text(&r, FRAME_ARG, c->base);
		if (flags)
			bad |= request_add_u32(&r, FRAME_FLAGS, flags);
	}
	return bad ? -1 : request_send(&r, sock);
}

static bool vmm_is_dead(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* On an open connection, with the VMM watched. */
static int converse(const struct copy *c)
{
	AUTO_CLOSE int pidfd = proc_pidfd(&c->s->vmm);
	char why[1024] = "";
	pthread_t watcher;
	int code;

	catch_signals();
	if (pidfd < 0 || pthread_create(&watcher, NULL, watch_vmm, &pidfd) != 0)
		return failed(c, EX_OSERR, "cannot watch the VM");
	code = send_request(c) < 0 ? EX_ARK : transfer(c, why, sizeof(why));
	pthread_cancel(watcher);
	pthread_join(watcher, NULL);
	if (code == 0 || caught)
		return caught ? -(128 + (int)caught) : 0;
	if (!*why || vmm_is_dead(pidfd)) {
		client_loss(c->s, why, sizeof(why));
		code = EX_ARK;
	}
	return failed(c, code, why);
}

static int copy(struct copy *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_CLOSE int activity = -1;
	const struct place *inside = *c->from->name ? c->from : c->to;
	struct stat st;
	int r;

	if (!*c->from->name && stat(c->from->path, &st) < 0)
		return failed(c, EX_NOINPUT, strerror(errno));
	r = sandbox_open(&s, inside->name);
	if (r < 0)
		return r;
	r = agent_open(&s, *c->from->name ? OP_GET : OP_PUT);
	if (r < 0)
		return r;
	sock = r;
	client_active(&s, &activity);
	c->s = &s;
	r = converse(c);
	c->s = NULL;
	close(sock);
	sock = -1;
	client_active(&s, &activity);
	return r;
}

/* ---- operands ------------------------------------------------------------ */

/* A colon behind a good name, and no slash before it, makes a sandbox. */
static int parse_place(struct place *p, const char *text)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	int n;

	p->text = text;
	p->name[0] = '\0';
	if (colon && len <= NAME_MAX_LEN) {
		memcpy(p->name, text, len);
		p->name[len] = '\0';
	}
	if (colon && name_ok(p->name)) {
		text = colon + 1;
		n = snprintf(p->path, sizeof(p->path), "%s%s",
			     *text == '/' ? "" : "/", text);
	} else {
		p->name[0] = '\0';
		n = snprintf(p->path, sizeof(p->path), "%s", text);
	}
	if (*p->text == '\0')
		return fail(EX_USAGE, "an empty path");
	if (n < 0 || (size_t)n >= sizeof(p->path))
		return fail(EX_USAGE, "the path '%.40s...' is too long", text);
	return 0;
}

/* The name that a copy of this gets in a directory; "" for the root, "." and
 * "..": then what is in it is copied, without a name. */
static void base_of(const char *path, char *base, size_t size)
{
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	snprintf(base, size, "%.*s", (int)(end - start), path + start);
	if (strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		base[0] = '\0';
}

static int copy_one(const char *source, const struct place *to, unsigned flags)
{
	struct place from;
	char base[256];
	struct copy c = {
		.from = &from,
		.to = to,
		.flags = flags,
		.base = base,
	};
	int r = parse_place(&from, source);

	if (r < 0)
		return r;
	if (!*from.name == !*to->name)
		return fail(EX_USAGE,
			    "cannot copy '%s' to '%s': one side must be "
			    "NAME:PATH, in a sandbox",
			    source, to->text);
	base_of(from.path, base, sizeof(base));
	return copy(&c);
}

static unsigned parse_options(int argc, char **argv)
{
	static const struct option known[] = {
		{"parents", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{0},
	};
	unsigned flags = 0;
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, "+hp", known, NULL)) != -1) {
		switch (c) {
		case 'p':
			flags |= TREE_PARENTS;
			break;
		case 'h':
			fputs(help, stdout);
			exit(finish(0));
		case 'V':
			puts("ark-cp " ARK_VERSION);
			exit(finish(0));
		default:
			die_option(argv);
		}
	}
	return flags;
}

/* A signal has been answered with a clean end; now die of it, so that the
 * shell knows. */
static void die_of_signal(void)
{
	if (!caught)
		return;
	signal(caught, SIG_DFL);
	raise(caught);
}

int main(int argc, char **argv)
{
	struct place to;
	unsigned flags;
	int result;

	progname = "ark-cp";
	client_stdio();
	flags = parse_options(argc, argv);
	argv += optind;
	argc -= optind;
	if (argc < 2)
		die_usage(usage);
	result = parse_place(&to, argv[argc - 1]);
	if (result < 0)
		return finish(result);
	if (argc > 2 || to.path[strlen(to.path) - 1] == '/')
		flags |= TREE_INTO;
	for (int i = 0; i < argc - 1 && !caught; i++) {
		int r = copy_one(argv[i], &to, flags);

		if (result == 0)
			result = r;
	}
	die_of_signal();
	return finish(result);
}
