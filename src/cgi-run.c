/*
 * cgi-run.c - run ark's own commands by argv, and say how they ended.
 *
 * Whatever a request holds comes behind the options, or as the value of one: a
 * name is checked and cannot begin with a dash.
 */
#include "cgi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void command_add(struct command *cmd, const char *word)
{
	if (cmd->n < COMMAND_WORDS)
		cmd->argv[cmd->n] = word;
	cmd->n++;
}

void command_option(struct command *cmd, const char *option, const char *value)
{
	if (!value)
		return;
	command_add(cmd, option);
	command_add(cmd, value);
}

void command_free(struct command *cmd)
{
	free(cmd->output);
}

/* "ark-vm: no such sandbox" -> "no such sandbox" */
static void keep_reason(struct command *cmd, const char *line)
{
	const char *colon = strstr(line, ": ");

	if (strncmp(line, "ark-", 4) == 0 && colon)
		line = colon + 2;
	snprintf(cmd->why, sizeof(cmd->why), "%s", line);
}

/* The path of the program instead of its name. */
static void find_program(struct command *cmd)
{
	snprintf(cmd->path, sizeof(cmd->path), "%s", sibling(cmd->argv[0]));
	cmd->argv[0] = cmd->path;
	cmd->argv[cmd->n] = NULL;
}

int command_run(struct command *cmd)
{
	struct run r = {.argv = cmd->argv, .output = &cmd->output};
	int code;

	if (cmd->n > COMMAND_WORDS) {
		keep_reason(cmd, "too many words");
		return EX_USAGE;
	}
	find_program(cmd);
	code = run_text(&r);
	keep_reason(cmd, code < 0 ? "cannot run it" : r.errors);
	return code < 0 ? EX_OSERR : code;
}

/* ---- those that run beside us -------------------------------------------- */

/* Whatever this was started with: a job in the background of a script, for one,
 * ignores SIGINT. */
static void reset_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT,
				      SIGPIPE};
	sigset_t none;

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		signal(signals[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

NORETURN static void become(struct command *cmd, const int fds[4], pid_t parent)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	reset_signals();
	die_with(parent);
	/* From above, so that none is overwritten before it is copied. */
	for (int i = 0; i < 4; i++) {
		int from = fds[i] < 0 ? null : fds[i];

		if (i == 3 && fds[i] < 0)
			break;
		if (fcntl(from, F_DUPFD, 16) < 0 || dup2(from, 20 + i) < 0)
			_exit(EX_OSERR);
	}
	for (int i = 0; i < 4; i++)
		if (dup2(20 + i, i) < 0 && i < 3)
			_exit(EX_OSERR);
	close_range(4, ~0U, CLOSE_RANGE_CLOEXEC);
	execv(cmd->argv[0], (char *const *)(uintptr_t)cmd->argv);
	_exit(EX_NOT_FOUND);
}

pid_t command_spawn(struct command *cmd, int in, int out, int err, int status)
{
	const int fds[4] = {in, out, err, status};
	pid_t pid, self = getpid();

	if (cmd->n > COMMAND_WORDS) {
		errno = E2BIG;
		return -1;
	}
	find_program(cmd);
	pid = fork();
	if (pid == 0)
		become(cmd, fds, self);
	return pid;
}

void command_stream(struct command *cmd)
{
	pid_t pid = command_spawn(cmd, -1, STDOUT_FILENO, -1, -1);
	AUTO_CLOSE int pidfd =
		pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n;

	if (pid < 0)
		return;
	do
		n = client_poll(&p, 1, -1, NULL);
	while (n < 0 && errno == EINTR);
	if (n < 1)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}

/* ---- what it means to a client ------------------------------------------- */

static const struct {
	int code, status;
	const char *word;
} meanings[] = {
	{EX_USAGE, 400, NULL},	     {EX_NOINPUT, 404, NULL},
	{EX_UNAVAILABLE, 503, NULL}, {EX_OSERR, 503, NULL},
	{EX_CANTCREAT, 409, NULL},   {EX_TEMPFAIL, 409, "busy"},
	{EX_TIMEOUT, 504, NULL},     {EX_ARK, 503, NULL},
};

/* A tenant does not know that its names have something in front of them. */
static void without_tenant(const struct call *c, char *text)
{
	char mark[TENANT_MAX + 3];
	size_t len;
	char *at = text;

	if (!c->token || strcmp(c->token->tenant, TENANT_HOST) == 0)
		return;
	len = (size_t)snprintf(mark, sizeof(mark), "'%s.", c->token->tenant);
	while ((at = strstr(at, mark))) {
		at++;
		memmove(at, at + len - 1, strlen(at + len - 1) + 1);
	}
}

int answer_failure(const struct call *c, int code, const char *why)
{
	char text[512];
	int status = 500;
	const char *word = NULL;

	snprintf(text, sizeof(text), "%s", *why ? why : "it failed");
	without_tenant(c, text);
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].code == code) {
			status = meanings[i].status;
			word = meanings[i].word;
		}
	return answer_error(status, word, "%s", text);
}
