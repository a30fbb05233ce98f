/*
 * life.c - start, stop, kill, pause, remove.
 *
 * All of it holds the flock of the sandbox, with one exception: removal by
 * force kills first and locks then, because the holder of the lock may be a
 * start that waits for that very VM.
 */
#include "admit.h"
#include "agent.h"
#include "cgroup.h"
#include "expiry.h"
#include "keeper.h"
#include "life.h"
#include "slot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>

#define DEATH_MS 10000 /* from SIGKILL to the keeper's last word */

static bool runs(const struct sandbox *s)
{
	return s->state == VM_RUNNING || s->state == VM_PAUSED;
}

/* Wait for the end of whoever speaks the last word about this VM: its keeper,
 * or the VMM when it has none.  False when `ms` have passed (< 0: never). */
static bool await_end(struct sandbox *s, int ms)
{
	struct proc last;
	AUTO_CLOSE int pidfd = -1;
	struct pollfd poller = {.events = POLLIN};
	int n;

	if (!s->slot)
		return true;
	if (!s->keeper_alive || proc_read(s->run, "keeper", &last) < 0)
		last = s->vmm;
	pidfd = proc_pidfd(&last);
	if (pidfd < 0)
		return true;
	poller.fd = pidfd;
	do
		n = poll(&poller, 1, ms);
	while (n < 0 && errno == EINTR);
	return n != 0;
}

/* The keeper (or nobody, when it is dead) must know that the end was asked
 * for, before it comes. */
static int announce_stop(const struct sandbox *s)
{
	if (write_value(s->run, "stopping", "1") < 0)
		return fail_errno(EX_IOERR, "cannot announce the stop of '%s'",
				  s->name);
	return 0;
}

static void kill_vmm(const struct sandbox *s)
{
	AUTO_CLOSE int pidfd = proc_pidfd(&s->vmm);

	if (pidfd >= 0)
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

/* Kill, wait, give the slot back. */
static int end_now(struct sandbox *s)
{
	kill_vmm(s);
	if (!await_end(s, DEATH_MS))
		return fail(EX_TEMPFAIL, "VMM of sandbox '%s' does not end",
			    s->name);
	sandbox_probe(s);
	return slot_release(s);
}

/* ---- start -------------------------------------------------------------- */

/* Said once per host: what an emulator is not. */
static void tell_about_tcg(void)
{
	AUTO_CLOSE int root = root_open(NULL);

	if (root < 0 || faccessat(root, "tcg-told", F_OK, 0) == 0)
		return;
	warn_line("no KVM here: QEMU emulates the processor (TCG), which is "
		  "slow and, its authors say, no security boundary");
	write_value(root, "tcg-told", "1");
}

/* What the sandbox asks for. */
static int read_demand(const struct sandbox *s, const struct start *how,
		       struct demand *demand)
{
	long long memory, cpus;

	if (read_number(s->dir, "memory", 1, INT64_MAX, &memory) < 0 ||
	    read_number(s->dir, "cpus", 1, 255, &cpus) < 0)
		return fail_errno(EX_DATAERR, "cannot read what '%s' asks for",
				  s->name);
	*demand = (struct demand){.memory = (uint64_t)memory,
				  .cpus = (unsigned)cpus,
				  .snapshot_id = how->snapshot_id};
	return 0;
}

/* One start at a time from the count to the record: so the next one counts
 * this one. */
static int take_slot(struct sandbox *s, struct start *how,
		     const struct conf *conf)
{
	AUTO_CLOSE int run = run_open(true);
	AUTO_CLOSE int lock = -1;
	struct demand demand;
	char what[NAME_MAX_LEN + 16];
	int r = run < 0 ? run : read_demand(s, how, &demand);

	if (r < 0)
		return r;
	lock = admit_lock(run);
	if (lock < 0)
		return lock;
	snprintf(what, sizeof(what), "sandbox '%s'", s->name);
	r = admit_check(run, conf, &demand, 1, what);
	if (r < 0)
		return r;
	how->held = slot_alloc(s);
	if (how->held < 0)
		return how->held;
	if (admit_record(s->run, &demand) == 0)
		return 0;
	return fail_errno(EX_IOERR, "cannot record what '%s' asks for",
			  s->name);
}

static int start_in_slot(struct sandbox *s, struct start *how,
			 const struct conf *conf)
{
	int r = take_slot(s, how, conf);

	/* Before there is anything that it could end. */
	if (r == 0 && expiry_record(s) < 0)
		r = fail_errno(EX_IOERR, "cannot record when '%s' expires",
			       s->name);
	if (r == 0 &&
	    (write_value(s->run, "driver", "%s", how->driver->name) < 0 ||
	     write_value(s->run, "accel", "%s", accel_word(how->accel)) < 0))
		r = fail_errno(EX_IOERR, "cannot record how '%s' runs",
			       s->name);
	if (r < 0) {
		if (how->held >= 0)
			close(how->held);
		return r;
	}
	how->uid = conf->uid_base + (uid_t)s->slot;
	return keeper_start(s, how);
}

/* Said aloud, as all that was asked for and does not hold. */
static void tell_about_limits(const struct sandbox *s)
{
	if (!cgroup_limits_io(s))
		warn_line("no limit on the disk of '%s': --io-rate needs the "
			  "io controller of cgroup version 2 and a file "
			  "system on one disk",
			  s->name);
}

int vm_choose(struct start *how)
{
	int r;

	*how = (struct start){.held = -1, .state = -1, .ram = -1};
	r = accel_choose(&how->accel);
	if (r == 0)
		how->driver = vmm_choose(how->accel, &r);
	return r;
}

/* What its jail has to have from the start, then the start. */
static int start_with_files(struct sandbox *s, struct start *how,
			    const struct conf *conf)
{
	struct jail_file files[VMM_FILES_MAX];
	struct vmm_plan plan = {.accel = how->accel, .restore = true};
	int n = 0, r;

	if (how->state >= 0 && how->driver->files) {
		if (vmm_plan_read(s, &plan) < 0)
			return fail_errno(EX_DATAERR,
					  "cannot read the settings of '%s'",
					  s->name);
		n = how->driver->files(&plan, how->state, files);
		if (n < 0)
			return n;
	}
	how->files = files;
	how->n_files = (size_t)n;
	r = start_in_slot(s, how, conf);
	how->files = NULL;
	while (n-- > 0)
		free((void *)(uintptr_t)files[n].data);
	return r;
}

int vm_begin(struct sandbox *s, struct start *how)
{
	struct conf conf;
	char program[256];
	int r = sandbox_lock(s);

	if (r < 0)
		return r;
	if (runs(s))
		return fail(EX_CANTCREAT, "sandbox '%s' is %s already", s->name,
			    state_word(s));
	if ((r = conf_load(&conf)) < 0 ||
	    (r = how->driver->find(how->accel, program, sizeof(program))) < 0 ||
	    (r = slot_release(s)) < 0)
		return r;
	if (how->accel == ACCEL_TCG)
		tell_about_tcg();
	r = start_with_files(s, how, &conf);
	if (r == 0) {
		tell_about_limits(s);
		return 0;
	}
	sandbox_probe(s);
	end_now(s);
	return r;
}

int vm_start(struct sandbox *s)
{
	struct start how;
	int r = vm_choose(&how);

	return r < 0 ? r : vm_begin(s, &how);
}

/* ---- stop, kill --------------------------------------------------------- */

/* Ask the agent; when it does not answer, the time limit does the rest. */
static void ask_poweroff(const struct sandbox *s)
{
	unsigned char generation[GENERATION_LEN];
	AUTO_CLOSE int fd = -1;

	if (agent_generation(s, generation) < 0)
		return;
	fd = agent_connect(s, 1000);
	if (fd < 0 || agent_hello(fd, OP_POWEROFF, generation) < 0)
		return;
	frame_send(fd, FRAME_GO, NULL, 0);
}

int vm_stop(struct sandbox *s, uint64_t ms)
{
	const struct vmm *driver;
	int r = sandbox_lock(s);

	if (r < 0)
		return r;
	if (!runs(s))
		return slot_release(s);
	if (announce_stop(s) < 0)
		return -EX_IOERR;
	/* Whatever it runs on, it is ended below. */
	driver = vmm_of(s);
	if (ms > 0 && s->state == VM_PAUSED && driver)
		driver->command(s, VMM_RESUME);
	if (ms > 0 && !s->starting)
		ask_poweroff(s);
	if (ms > INT32_MAX)
		ms = INT32_MAX;
	await_end(s, (int)ms);
	return end_now(s);
}

int vm_kill(struct sandbox *s)
{
	return vm_stop(s, 0);
}

/* ---- pause, resume ------------------------------------------------------ */

static int set_paused(struct sandbox *s, enum vmm_command command,
		      enum vm_state from, enum vm_state to)
{
	const struct vmm *driver;
	int r = sandbox_lock(s);

	if (r < 0 || s->state == to)
		return r;
	if (s->state != from)
		return fail(EX_CANTCREAT, "sandbox '%s' is %s, not %s", s->name,
			    state_word(s),
			    from == VM_RUNNING ? "running" : "paused");
	driver = vmm_recorded(s, &r);
	if (driver)
		r = driver->command(s, command);
	if (r < 0)
		return r;
	/* The keeper notes it as well, when it hears of it; but whoever asks
	 * after us must not be told the old state. */
	if (to == VM_PAUSED)
		r = write_value(s->run, "paused", "1");
	else
		r = unlinkat(s->run, "paused", 0);
	return r < 0 && errno != ENOENT
		       ? fail_errno(EX_IOERR, "cannot record the pause of '%s'",
				    s->name)
		       : 0;
}

int vm_pause(struct sandbox *s)
{
	return set_paused(s, VMM_PAUSE, VM_RUNNING, VM_PAUSED);
}

int vm_resume(struct sandbox *s)
{
	return set_paused(s, VMM_RESUME, VM_PAUSED, VM_RUNNING);
}

int vm_wait(struct sandbox *s)
{
	while (runs(s)) {
		await_end(s, -1);
		sandbox_probe(s);
	}
	return 0;
}

/* ---- remove ------------------------------------------------------------- */

int vm_remove(struct sandbox *s, bool force)
{
	int r;

	if (runs(s) && !force)
		return fail(EX_CANTCREAT,
			    "sandbox '%s' is %s: stop it first, or use -f",
			    s->name, state_word(s));
	if (runs(s) && announce_stop(s) == 0)
		kill_vmm(s);
	r = sandbox_lock(s);
	if (r < 0)
		/* Somebody else removed it: that is what was wanted. */
		return r == -EX_NOINPUT && force ? 0 : r;
	if (runs(s) && !force)
		return fail(EX_CANTCREAT, "sandbox '%s' was started meanwhile",
			    s->name);
	r = s->slot ? end_now(s) : 0;
	return r < 0 ? r : sandbox_remove(s);
}
