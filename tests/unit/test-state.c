/*
 * test-state - what a sandbox is said to do, from files of every kind and
 * processes that are there or not; and processes that are not taken for
 * others.
 */
#include "tap.h"

#include "slot.h"
#include "state.h"

#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int dir; /* the private directory that holds root and run */
static struct proc alive, gone, recycled, zombie;

static void value(const char *path, const char *text)
{
	char line[300];
	int len = snprintf(line, sizeof(line), "%s\n", text);

	put_file(dir, path, line, (size_t)len);
}

static void value_proc(const char *path, const struct proc *p)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %llu", (int)p->pid, p->start);
	value(path, text);
}

static void this_boot(void)
{
	char boot[64];

	read_value(AT_FDCWD, "/proc/sys/kernel/random/boot_id", boot,
		   sizeof(boot));
	value("run/boot_id", boot);
}

/* Empty directories with one sandbox `v` that has never been started. */
static void fresh(void)
{
	remove_tree(dir, "root");
	remove_tree(dir, "run");
	mkdirat(dir, "root", 0700);
	mkdirat(dir, "root/vm", 0700);
	mkdirat(dir, "root/vm/v", 0700);
	mkdirat(dir, "run", 0700);
	this_boot();
}

/* ... that holds slot 1. */
static void fresh_slot(const struct proc *vmm, const struct proc *keeper)
{
	fresh();
	mkdirat(dir, "run/0001", 0700);
	value("root/vm/v/slot", "0001");
	value("run/0001/vm", "v");
	if (vmm)
		value_proc("run/0001/vmm", vmm);
	if (keeper)
		value_proc("run/0001/keeper", keeper);
}

static void expect(const char *what, const char *state, const char *reason)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	ok(sandbox_open(&s, "v") == 0 && strcmp(state_word(&s), state) == 0 &&
		   strcmp(s.reason, reason) == 0,
	   "%s: %s %s", what, state, reason);
	if (strcmp(state_word(&s), state) != 0 || strcmp(s.reason, reason) != 0)
		printf("# got: %s '%s'\n", state_word(&s), s.reason);
}

static void test_without_slot(void)
{
	fresh();
	expect("never started", "created", "");
	value("root/vm/v/exit", "stopped");
	expect("stopped before", "stopped", "");
	value("root/vm/v/exit", "dead: guest panicked");
	expect("died before", "dead", "guest panicked");
	value("root/vm/v/exit", "dead: \x1b[31mguest\x07");
	expect("a hostile reason", "dead", "?[31mguest?");
	fresh();
	value("root/vm/v/slot", "0001");
	expect("slot gone with a boot", "stopped", "");
}

static void test_living(void)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;

	fresh_slot(&alive, &alive);
	is_num(sandbox_open(&s, "v"), 0, "open");
	ok(s.state == VM_RUNNING && s.starting && s.keeper_alive &&
		   s.slot == 1 && s.vmm.pid == alive.pid,
	   "both alive, no generation: starting");
	value("run/0001/generation", "f2f7c6a4-2a5c-4e0d-9c39-3e5f6c2f3a10");
	sandbox_probe(&s);
	ok(s.state == VM_RUNNING && !s.starting, "with one: running");
	value("run/0001/paused", "1");
	expect("paused", "paused", "");
	fresh_slot(&alive, &gone);
	sandbox_probe(&s);
	fresh_slot(NULL, &alive);
	expect("a keeper before its VMM", "running", "");
	fresh_slot(&alive, NULL);
	expect("a VMM without keeper", "running", "");
}

static void test_ended(void)
{
	static const char unwatched[] = "VMM and keeper ended unwatched";

	fresh_slot(&gone, &gone);
	expect("both gone", "dead", unwatched);
	fresh_slot(&zombie, &gone);
	expect("a zombie is not alive", "dead", unwatched);
	fresh_slot(&recycled, &recycled);
	expect("recycled pids", "dead", unwatched);
	fresh_slot(NULL, NULL);
	expect("a slot without processes", "dead", unwatched);
	fresh_slot(&gone, &gone);
	value("run/0001/exit", "dead: VMM killed by signal 9 (Killed)");
	expect("recorded", "dead", "VMM killed by signal 9 (Killed)");
	fresh_slot(&gone, &alive);
	value("run/0001/exit", "stopped");
	expect("recorded while the keeper still lives", "stopped", "");
	fresh_slot(&gone, &gone);
	value("run/0001/stopping", "1");
	expect("unwatched, but asked for", "stopped", "");
	fresh_slot(&alive, &alive);
	value("run/0001/exit", "dead: old");
	value("run/0001/generation", "x");
	expect("alive whatever a file says", "running", "");
}

/* Anything in the slot file: never a crash, never somebody else's slot. */
static void test_slot_words(void)
{
	static const char *const words[] = {
		"",	"0000", "1",	      "00001",	"0x01",
		"000G", "ffff", "../x",	      "-001",	"+001",
		" 001", "001 ", "0001\n0001", "0001/x", "....",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		fresh_slot(&alive, &alive);
		value("root/vm/v/slot", words[i]);
		expect(words[i], "stopped", "");
	}
	fresh_slot(&alive, &alive);
	value("run/0001/vm", "other");
	expect("given to another", "stopped", "");
	remove_tree(dir, "run/0001/vm");
	expect("of nobody", "stopped", "");
	remove_tree(dir, "run/0001");
	put_link("/tmp", dir, "run/0001");
	expect("a link", "stopped", "");
}

static void test_proc_words(void)
{
	static const char *const words[] = {
		"",    "1",    "x 1",	"0 1",		"-1 1",
		"1 0", "1  1", "1 1 1", "2147483648 1", "99999999999 5",
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		fresh_slot(NULL, NULL);
		value("run/0001/vmm", words[i]);
		value("run/0001/keeper", words[i]);
		expect(words[i], "dead", "VMM and keeper ended unwatched");
	}
}

static void test_other_boot(void)
{
	fresh_slot(&alive, &alive);
	value("run/boot_id", "00000000-0000-0000-0000-000000000000");
	expect("slots of another boot", "stopped", "");
	ok(run_open(false) < 0 && errno == ENOENT, "are not looked at");
	value("run/keep", "x");
	close(run_open(true));
	ok(faccessat(dir, "run/0001", F_OK, 0) < 0 &&
		   faccessat(dir, "run/keep", F_OK, 0) < 0,
	   "the first writer removes them");
	ok(faccessat(dir, "run/boot_id", F_OK, 0) == 0, "and notes the boot");
	mkdirat(dir, "run/0002", 0700);
	close(run_open(true));
	ok(faccessat(dir, "run/0002", F_OK, 0) == 0,
	   "the second leaves what is of this boot");
	remove_tree(dir, "run/boot_id");
	expect("no boot_id", "stopped", "");
	ok(told_nothing(), "all of it quietly");
}

static int count_name(const char *name, void *data)
{
	char *list = data;

	snprintf(list + strlen(list), 200 - strlen(list), "%s ", name);
	return strcmp(name, "stop-here") == 0 ? 42 : 0;
}

static void test_each(void)
{
	static const char *const names[] = {"b", "a",	".hidden.12", "-x",
					    "C", "a.1", "_y"};
	char list[200] = "", path[64];

	fresh();
	remove_tree(dir, "root/vm/v");
	is_num(sandbox_each(count_name, list), 0, "none");
	is_str(list, "", "is none");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		snprintf(path, sizeof(path), "root/vm/%s", names[i]);
		mkdirat(dir, path, 0700);
	}
	is_num(sandbox_each(count_name, list), 0, "some");
	is_str(list, "C a a.1 b ", "names only, sorted");
	mkdirat(dir, "root/vm/aa-x", 0700);
	mkdirat(dir, "root/vm/stop-here", 0700);
	mkdirat(dir, "root/vm/zz", 0700);
	list[0] = '\0';
	is_num(sandbox_each(count_name, list), 42, "a result that is not 0");
	ok(!strstr(list, "zz"), "ends it");
}

static void test_open_errors(void)
{
	struct sandbox s;
	char path[200];

	fresh();
	is_num(sandbox_open(&s, "none"), -EX_NOINPUT, "unknown: 66");
	ok(told("no such sandbox 'none'"), "told");
	is_num(sandbox_open(&s, "../v"), -EX_USAGE, "bad name: 64");
	ok(told("bad sandbox name"), "told");
	put_link("v", dir, "root/vm/link");
	ok(sandbox_open(&s, "link") < 0, "a link is no sandbox");
	forget();
	ok(!sandbox_exists("../vm/v") && !sandbox_exists("") &&
		   sandbox_exists("v"),
	   "exists");
	setenv("ARK_ROOT", "relative", 1);
	is_num(sandbox_open(&s, "v"), -EX_CONFIG, "a relative ARK_ROOT: 78");
	ok(told("ARK_ROOT='relative'"), "told");
	put_file(dir, "file", "x", 1);
	snprintf(path, sizeof(path), "%s/file", tap_dir_path);
	setenv("ARK_ROOT", path, 1);
	ok(sandbox_open(&s, "v") < 0, "a file as ARK_ROOT");
	ok(told("ARK_ROOT"), "told");
	snprintf(path, sizeof(path), "%s/made/for/me", tap_dir_path);
	setenv("ARK_ROOT", path, 1);
	is_num(sandbox_open(&s, "v"), -EX_NOINPUT, "made when missing");
	forget();
	ok(faccessat(dir, "made/for/me/vm", F_OK, 0) == 0, "with its folders");
}

static void test_lock(void)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_SANDBOX struct sandbox t = SANDBOX_NONE;

	fresh();
	sandbox_open(&s, "v");
	sandbox_open(&t, "v");
	is_num(sandbox_lock(&s), 0, "lock");
	remove_tree(dir, "root/vm/v");
	sandbox_close(&s);
	is_num(sandbox_lock(&t), -EX_NOINPUT, "removed while we waited: 66");
	ok(told("removed"), "told");
}

/* ---- slots -------------------------------------------------------------- */

/* The slot's creator lets go of everything, as its death would. */
static void let_go(struct sandbox *s, int held)
{
	close(held);
	sandbox_probe(s);
}

static void test_slots(void)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int held, again;

	fresh();
	sandbox_open(&s, "v");
	held = slot_alloc(&s);
	ok(held >= 0 && s.slot == 1 && s.run >= 0, "the first slot");
	again = slot_hold(&s);
	ok(again < 0 && errno == EWOULDBLOCK, "is held");
	let_go(&s, held);
	again = slot_hold(&s);
	ok(again >= 0, "until it is let go");
	close(again);
	is_num(slot_release(&s), 0, "given back");
	ok(faccessat(dir, "run/0001", F_OK, 0) < 0, "gone");
	held = slot_alloc(&s);
	ok(held >= 0 && s.slot == 2, "the next number is another");
	let_go(&s, held);
	slot_release(&s);
	value("run/next", "65534");
	held = slot_alloc(&s);
	ok(held >= 0 && s.slot == 65534, "the last slot");
	let_go(&s, held);
	slot_release(&s);
	mkdirat(dir, "run/0001", 0700);
	held = slot_alloc(&s);
	ok(held >= 0 && s.slot == 2, "then from the start, past a taken one");
	let_go(&s, held);
	slot_release(&s);
	value("run/next", "garbage");
	remove_tree(dir, "run/0001");
	held = slot_alloc(&s);
	ok(held >= 0 && s.slot == 1, "a hint that is garbage is no harm");
	let_go(&s, held);
	ok(told_nothing(), "quietly");
}

/* ---- processes ---------------------------------------------------------- */

static void make_processes(void)
{
	pid_t pid;

	proc_of(getpid(), &alive);
	recycled = alive;
	recycled.start--;
	fflush(stdout);
	pid = fork();
	if (pid == 0)
		_exit(0);
	proc_of(pid, &gone);
	waitpid(pid, NULL, 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
	proc_of(pid, &zombie);
}

static void test_processes(void)
{
	struct proc p, none = {0};

	ok(proc_alive(&alive), "we live");
	ok(!proc_alive(&gone), "the dead do not");
	ok(!proc_alive(&zombie), "nor a zombie");
	ok(!proc_alive(&recycled), "nor one of another start time");
	ok(!proc_alive(&none), "nor nobody");
	ok(proc_pidfd(&alive) >= 0, "a pidfd of ourselves");
	ok(proc_pidfd(&recycled) < 0 && errno == ESRCH, "none of another");
	fresh();
	is_num(proc_write(dir, "p", &alive), 0, "write");
	ok(proc_read(dir, "p", &p) == 0 && p.pid == alive.pid &&
		   p.start == alive.start,
	   "and read");
	remove_tree(dir, "p");
	/* the name of a process is its own choice */
	prctl(PR_SET_NAME, "a) Z 1 (");
	ok(proc_of(getpid(), &p) == 0 && p.start == alive.start,
	   "a name with a parenthesis");
}

int main(void)
{
	catch_stderr();
	dir = tap_ark();
	make_processes();
	test_processes();
	test_without_slot();
	test_living();
	test_ended();
	test_slot_words();
	test_proc_words();
	test_other_boot();
	test_each();
	test_slots();
	test_lock();
	test_open_errors();
	return done();
}
