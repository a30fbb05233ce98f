/*
 * ark-run - create a sandbox, start it, run a command in it.  ark-run(1) is
 * the manual.
 *
 * It is what `ark create`, `ark start`, `ark exec` and, with --rm, `ark rm -f`
 * do one after the other, in one process until the last step, because every
 * process more is a few milliseconds more.
 *
 * With --rm a child does all of that and this process waits: whatever ends the
 * child, a signal included, the sandbox is removed afterwards.
 */
#include "life.h"
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/wait.h>

static const char usage[] = "ark-run [OPTION...] [IMAGE] [-- COMMAND [ARG...]]";

static const char help[] =
	"Usage: ark-run [OPTION...] [IMAGE] [-- COMMAND [ARG...]]\n"
	"\n"
	"Create a sandbox, start it and run a command in it.  Without a "
	"command:\n"
	"start it and print its name.\n"
	"\n"
	"  -c, --cpus N        vCPUs\n"
	"  -d, --detach        do not wait for the command; print the sandbox' "
	"name\n"
	"      --disk SIZE     size of the writable disk\n"
	"  -e, --env K=V       environment of the command; K alone takes ours\n"
	"      --io-rate RATE  bytes per second of its disk, each way (20M)\n"
	"  -i, --interactive   accepted; stdin is always attached\n"
	"  -m, --memory SIZE   memory of the guest\n"
	"      --name NAME     name of the sandbox, else one is made up\n"
	"  -n, --no-stdin      /dev/null as stdin of the command\n"
	"      --net-rate RATE bits per second each way (10M)\n"
	"  -p, --publish PORTS [ADDRESS:]HOST:GUEST[/udp][=WHAT], or GUEST\n"
	"      --policy P      open (the internet) or none\n"
	"      --rm            remove the sandbox when the command, or its VM "
	"with -d, ends\n"
	"      --status-fd N   write one JSON line about the end to this "
	"descriptor\n"
	"  -t, --tty           with a terminal; -T, --no-tty: never\n"
	"      --timeout TIME  end the command after this time (exit 124)\n"
	"      --ttl TIME      end the sandbox' VM after this time (30m)\n"
	"  -u, --user USER     user of the command\n"
	"  -w, --workdir DIR   directory of the command\n"
	"  -h, --help          show this and exit\n"
	"      --version       show the version and exit\n"
	"\n"
	"The exit code is that of the command; 126 and 127 when it could not "
	"be run,\n"
	"128+n when signal n ended it, 125 when the sandbox failed under it.  "
	"A sandbox\n"
	"that cannot be made or started ends with the code of ark-vm.\n";

struct job {
	struct sandbox_spec spec;
	char name[NAME_MAX_LEN + 1];
	bool detach, rm;
	/* argv of ark-exec; its name, then the options that are passed on */
	const char **exec;
	int words;
	char **command; /* NULL without one */
};

static void pass_on(struct job *job, const char *option, const char *value)
{
	job->exec[job->words++] = option;
	if (value)
		job->exec[job->words++] = value;
}

/* ---- the work ----------------------------------------------------------- */

static int open_dev_null(void)
{
	AUTO_CLOSE int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return null < 0 || dup2(null, STDOUT_FILENO) < 0 ? -1 : 0;
}

/* Become `ark-exec ... NAME -- COMMAND`. */
NORETURN static void exec_command(struct job *job)
{
	const char *program = sibling("ark-exec");

	pass_on(job, "--", NULL);
	pass_on(job, job->name, "--");
	for (char **word = job->command; *word; word++)
		pass_on(job, *word, NULL);
	job->exec[job->words] = NULL;
	execv(program, (char *const *)(uintptr_t)job->exec);
	fail_errno(EX_OSERR, "cannot run '%s'", program);
	_exit(EX_ARK);
}

/* Start the command detached, quietly: what is printed is the name. */
static int exec_detached(struct job *job)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		pass_on(job, "-d", NULL);
		if (open_dev_null() < 0)
			_exit(EX_ARK);
		exec_command(job);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			pid = -1;
	if (pid < 0)
		return fail_errno(EX_ARK, "cannot run ark-exec");
	return WIFEXITED(status) ? WEXITSTATUS(status) : EX_ARK;
}

static int start(struct job *job)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = sandbox_create(job->name, &job->spec);

	if (r == 0)
		r = sandbox_open(&s, job->name);
	if (r < 0)
		return r;
	r = vm_start(&s);
	/* One step for the user: it is there and runs, or it is not there. */
	if (r < 0)
		vm_remove(&s, true);
	return r;
}

static int work(struct job *job)
{
	int r = start(job);

	if (r < 0)
		return r;
	if (job->command && !job->detach)
		exec_command(job);
	if (job->command)
		r = exec_detached(job);
	puts(job->name);
	return r;
}

/* ---- --rm --------------------------------------------------------------- */

static volatile pid_t worker;

/* A terminal sends its signals to the worker as well; one that somebody sent
 * to us alone is passed on. */
static void pass_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (worker > 0 && info->si_code != SI_KERNEL)
		kill(worker, signal);
}

static void catch_signals(void)
{
	static const int signals[] = {SIGINT,  SIGTERM, SIGHUP,
				      SIGQUIT, SIGUSR1, SIGUSR2};
	struct sigaction action = {.sa_sigaction = pass_signal,
				   .sa_flags = SA_SIGINFO | SA_RESTART};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		sigaction(signals[i], &action, NULL);
}

static int remove_sandbox(const char *name)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r;

	if (!sandbox_exists(name))
		return 0;
	r = sandbox_open(&s, name);
	return r < 0 ? r : vm_remove(&s, true);
}

static int work_and_remove(struct job *job)
{
	AUTO_CLOSE int vms = root_open("vm");
	int status = 0, r;

	if (vms < 0)
		return vms;
	/* Not ours to remove when it exists already. */
	if (sandbox_exists(job->name))
		return fail(EX_CANTCREAT, "sandbox '%s' exists", job->name);
	worker = fork();
	if (worker == 0)
		exit(finish(work(job)));
	if (worker < 0)
		return fail_errno(EX_OSERR, "cannot fork");
	catch_signals();
	while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
		;
	r = remove_sandbox(job->name);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status) ? WEXITSTATUS(status) : r;
}

/* ---- options ------------------------------------------------------------ */

enum {
	OPT_DISK = 256,
	OPT_IO_RATE,
	OPT_NAME,
	OPT_NET_RATE,
	OPT_POLICY,
	OPT_RM,
	OPT_STATUS_FD,
	OPT_TIMEOUT,
	OPT_TTL,
	OPT_VERSION,
	OPT_PRIVILEGED,
	OPT_RESTART
};

static const struct option long_options[] = {
	{"cpus", required_argument, NULL, 'c'},
	{"detach", no_argument, NULL, 'd'},
	{"disk", required_argument, NULL, OPT_DISK},
	{"env", required_argument, NULL, 'e'},
	{"interactive", no_argument, NULL, 'i'},
	{"io-rate", required_argument, NULL, OPT_IO_RATE},
	{"memory", required_argument, NULL, 'm'},
	{"name", required_argument, NULL, OPT_NAME},
	{"no-stdin", no_argument, NULL, 'n'},
	{"no-tty", no_argument, NULL, 'T'},
	{"net-rate", required_argument, NULL, OPT_NET_RATE},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"publish", required_argument, NULL, 'p'},
	{"privileged", no_argument, NULL, OPT_PRIVILEGED},
	{"restart", required_argument, NULL, OPT_RESTART},
	{"rm", no_argument, NULL, OPT_RM},
	{"status-fd", required_argument, NULL, OPT_STATUS_FD},
	{"timeout", required_argument, NULL, OPT_TIMEOUT},
	{"ttl", required_argument, NULL, OPT_TTL},
	{"tty", no_argument, NULL, 't'},
	{"user", required_argument, NULL, 'u'},
	{"volume", required_argument, NULL, 'v'},
	{"workdir", required_argument, NULL, 'w'},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

/* What fingers know from elsewhere and ark does another way. */
NORETURN static void not_here(int option)
{
	if (option == 'v')
		die(EX_USAGE, "no host directory is shared with a sandbox: "
			      "use ark cp, or --disk for room");
	if (option == OPT_PRIVILEGED)
		die(EX_USAGE, "no --privileged: root in a sandbox is root of "
			      "its own kernel");
	die(EX_USAGE, "no --restart: let the program that starts sandboxes "
		      "use ark wait");
}

/* Options of ark-exec are passed on; it checks them again, but a mistake must
 * be told before a VM is booted for it. */
static void exec_option(struct job *job, int option)
{
	const char *why;
	uint64_t ms;
	long long fd;

	switch (option) {
	case 'e':
		pass_on(job, "-e", optarg);
		break;
	case 'i':
		break;
	case 'n':
		pass_on(job, "-n", NULL);
		break;
	case 't':
		pass_on(job, "-t", NULL);
		break;
	case 'T':
		pass_on(job, "-T", NULL);
		break;
	case 'u':
		pass_on(job, "-u", optarg);
		break;
	case 'w':
		pass_on(job, "-w", optarg);
		break;
	case OPT_STATUS_FD:
		if (!parse_num(optarg, 0, 65535, &fd, &why) ||
		    fcntl((int)fd, F_GETFD) < 0)
			die(EX_USAGE, "bad --status-fd '%s': not open", optarg);
		pass_on(job, "--status-fd", optarg);
		break;
	case OPT_TIMEOUT:
		if (!parse_duration(optarg, &ms, &why))
			die(EX_USAGE, "bad --timeout '%s': %s", optarg, why);
		pass_on(job, "--timeout", optarg);
		break;
	default:
		die_usage(usage);
	}
}

static void set_option(struct job *job, int option)
{
	switch (option) {
	case 'c':
		spec_cpus(&job->spec, optarg);
		break;
	case 'd':
		job->detach = true;
		break;
	case 'm':
		spec_memory(&job->spec, optarg);
		break;
	case OPT_DISK:
		spec_disk(&job->spec, optarg);
		break;
	case 'p':
		spec_publish(&job->spec, optarg);
		break;
	case OPT_IO_RATE:
		spec_io_rate(&job->spec, optarg);
		break;
	case OPT_NET_RATE:
		spec_net_rate(&job->spec, optarg);
		break;
	case OPT_TTL:
		spec_ttl(&job->spec, optarg);
		break;
	case OPT_POLICY:
		spec_policy(&job->spec, optarg);
		break;
	case OPT_NAME:
		if (check_name("sandbox", optarg) < 0)
			exit(EX_USAGE);
		snprintf(job->name, sizeof(job->name), "%s", optarg);
		break;
	case OPT_RM:
		job->rm = true;
		break;
	case 'v':
	case OPT_PRIVILEGED:
	case OPT_RESTART:
		not_here(option);
	case OPT_VERSION:
		printf("ark-run %s\n", ARK_VERSION);
		exit(finish(0));
	case 'h':
		fputs(help, stdout);
		exit(finish(0));
	default:
		exec_option(job, option);
	}
}

static void parse(struct job *job, int argc, char **argv)
{
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, "+c:de:him:np:tTu:v:w:",
				     long_options, NULL)) != -1) {
		if (option == '?')
			die_option(argv);
		set_option(job, option);
	}
	/* Behind "--" is the command, else the first word is the image. */
	if (optind < argc && strcmp(argv[optind - 1], "--") != 0) {
		job->spec.image = argv[optind++];
		if (check_name("image", job->spec.image) < 0)
			exit(EX_USAGE);
		if (optind < argc && strcmp(argv[optind], "--") == 0)
			optind++;
	}
	if (optind < argc)
		job->command = argv + optind;
}

int main(int argc, char **argv)
{
	struct job job = {.words = 0};

	progname = "ark-run";
	job.exec = calloc((size_t)argc * 2 + 8, sizeof(char *));
	if (!job.exec)
		die(EX_OSERR, "no memory");
	pass_on(&job, "ark-exec", NULL);
	parse(&job, argc, argv);
	if (!job.name[0])
		generate_name(job.name, sizeof(job.name));
	job.spec.rm = job.rm && (job.detach || !job.command);
	if (job.rm && job.command && !job.detach)
		return finish(work_and_remove(&job));
	return finish(work(&job));
}
