/*
 * rest-tree.c - directories as tar archives.
 *
 * An archive that comes in is a stranger's and is parsed in a cage, by a child
 * that has the body on the one side and the agent's socket on the other and can
 * do nothing but read and write; this process waits, and reads what the agent
 * says.  One that goes out is made of frames, which are what ark-cp(1) reads as
 * well, and every head of it is made here.
 */
#include "rest-file.h"
#include "tar.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define WHY_MAX 200

/* ---- into the guest ------------------------------------------------------ */

NORETURN static void be_reader(uint64_t length, int sock, char *why,
			       pid_t parent)
{
	const char *said;

	die_with(parent);
	signal(SIGPIPE, SIG_DFL);
	if (cage() < 0)
		_exit(1);
	said = tar_read(STDIN_FILENO, length, sock);
	if (said)
		snprintf(why, WHY_MAX, "%s", said);
	_exit(said != NULL);
}

/* What is wrong with the archive, or "". */
static void read_archive(const struct call *c, const struct transfer *t,
			 char out[WHY_MAX])
{
	char *why = mmap(NULL, WHY_MAX, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const pid_t self = getpid();
	pid_t pid;

	if (why == MAP_FAILED)
		die(EX_OSERR, "out of memory");
	pid = fork();
	if (pid == 0)
		be_reader(c->length, t->sock, why, self);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	/* It is the child's: perhaps of somebody who has taken it over. */
	snprintf(out, WHY_MAX, "%.*s", (int)strnlen(why, WHY_MAX - 1), why);
	munmap(why, WHY_MAX);
}

int rest_tree_put(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const char *path = call_text(c, F_PATH);
	char why[WHY_MAX] = "";
	struct transfer *t;
	int bad, r = open_running(c, &s);

	if (r)
		return r;
	t = transfer_new();
	bad = transfer_begin(t, &s, OP_PUT, path, FILE_PARENTS | FILE_INTO);
	if (!bad) {
		read_archive(c, t, why);
		/* A reader that is gone may have left the agent waiting. */
		shutdown(t->sock, SHUT_WR);
		bad = transfer_answer(t);
	}
	if (*why)
		r = answer_error(400, NULL, "%s", why);
	else if (bad)
		r = answer_transfer(c, t, path);
	else
		r = answer_json(200, json_pack("{s:s}", "path", path));
	transfer_end(t, &s);
	return r;
}

/* ---- out of the guest ---------------------------------------------------- */

struct target_text {
	char text[TREE_PATH];
	size_t len;
};

static int take_target(void *data, const char *bytes, size_t len)
{
	struct target_text *target = data;

	if (len >= sizeof(target->text) - target->len)
		return -1;
	memcpy(target->text + target->len, bytes, len);
	target->len += len;
	target->text[target->len] = '\0';
	return 0;
}

static int write_zeros(size_t len)
{
	static const char zeros[TAR_BLOCK];

	return write_full(STDOUT_FILENO, zeros, len);
}

/* The entry that has come, whole. */
static int write_entry(struct transfer *t)
{
	static char head[TAR_HEAD_MAX];
	struct target_text target = {.len = 0};
	uint64_t size = S_ISREG(t->mode) ? t->size : 0;
	size_t len;

	if (!tree_path_ok(t->path) ||
	    (!S_ISREG(t->mode) && !S_ISDIR(t->mode) && !S_ISLNK(t->mode)))
		return transfer_bad(t);
	if (S_ISLNK(t->mode) && transfer_data(t, take_target, &target) < 0)
		return -1;
	len = tar_head(head, t->path, t->mode, size, t->mtime, target.text);
	if (write_full(STDOUT_FILENO, head, len) < 0)
		return -1;
	if (!S_ISREG(t->mode))
		return 0;
	if (transfer_data(t, transfer_write, NULL) < 0)
		return -1;
	return write_zeros(tar_padding(size));
}

/* The end of an archive is two blocks of zeros; without them it is seen to be
 * cut, whatever HTTP says. */
static void write_archive(struct transfer *t)
{
	while (frame_recv(t->sock, &t->frame) == 1) {
		if (t->frame.type == FRAME_DONE) {
			write_zeros(TAR_BLOCK);
			write_zeros(TAR_BLOCK);
			return;
		}
		if (t->frame.type != FRAME_ENTRY || transfer_entry(t) < 0 ||
		    write_entry(t) < 0)
			return;
	}
}

int rest_tree_get(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct transfer *t;
	int r = transfer_get(c, &s, S_IFDIR, "directory", &t);

	if (r)
		return r;
	r = answer_begin(200, "application/x-tar", -1);
	write_archive(t);
	transfer_end(t, &s);
	return r;
}
