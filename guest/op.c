/*
 * op.c - one function per operation.
 *
 * No operation but OP_IDENTITY is done for a client that means another life of
 * this guest: the generation in its greeting must be the present one.  A guest
 * that has none (fresh, or an identity that failed half way) does nothing.
 */
#include "guest.h"

#include <signal.h>

static const char states[][8] = {
	[LIFE_STARTING] = "running",
	[LIFE_RUNNING] = "running",
	[LIFE_LEFT] = "running",
	[LIFE_ENDED] = "exited",
};

static void op_identity(struct conn *c)
{
	char why[128];

	hooks_abandon();
	if (identity_take(&c->req, why, sizeof(why)) < 0) {
		conn_error(c, EX_ARK, "cannot take on the identity: %s", why);
		return;
	}
	if (identity_had()) {
		/* Before the hooks: an exec whose client was reset lives some
		 * seconds only without this. */
		conns_drop(c);
		execs_restored();
	}
	hooks_run(c);
}

static void op_ping(struct conn *c)
{
	conn_exit(c, 0, 0, 0);
}

static void op_list(struct conn *c)
{
	for (struct exec *e = exec_next(NULL); e; e = exec_next(e)) {
		char text[1100];
		int n = snprintf(
			text, sizeof(text), "%u\t%s\t%u\t%llu\t%d\t%s", e->id,
			states[e->life], e->life == LIFE_ENDED ? e->code : 0,
			(unsigned long long)(clock_ms() - e->started) / 1000,
			e->detached, e->title);

		conn_send(c, FRAME_ITEM, text, (size_t)n);
	}
	conn_exit(c, 0, 0, 0);
}

/* The exec that the request names, or NULL and the client is told. */
static struct exec *named(struct conn *c)
{
	struct exec *e = exec_find(c->req.id);

	if (!e)
		conn_error(c, EX_NOINPUT, "no exec %u in the guest", c->req.id);
	return e;
}

static void op_logs(struct conn *c)
{
	struct exec *e = named(c);

	if (!e)
		return;
	log_replay(&e->log, conn_sink, c);
	conn_exit(c, 0, 0, 0);
}

static void op_attach(struct conn *c)
{
	struct exec *e = named(c);

	if (!e)
		return;
	if (e->transfer || !e->detached)
		conn_error(c, EX_CANTCREAT, "exec %u is not detached", e->id);
	else if (e->conn)
		conn_error(c, EX_CANTCREAT, "exec %u has a client already",
			   e->id);
	else
		exec_attach(e, c);
}

static void op_kill(struct conn *c)
{
	struct exec *e = named(c);

	if (!e)
		return;
	exec_kill(e, c->req.signal ? (int)c->req.signal : SIGKILL);
	conn_exit(c, 0, 0, 0);
}

static void op_wait(struct conn *c)
{
	struct exec *e = named(c);

	if (!e)
		return;
	if (e->life == LIFE_ENDED) {
		conn_exit(c, e->code, e->signal, e->flags);
		return;
	}
	c->exec = e;
	c->state = CONN_WAIT;
}

static void op_poweroff(struct conn *c)
{
	conn_exit(c, 0, 0, 0);
	power_off();
}

static void (*const operations[])(struct conn *) = {
	[OP_IDENTITY] = op_identity, [OP_PING] = op_ping,
	[OP_EXEC] = exec_start,	     [OP_LIST] = op_list,
	[OP_LOGS] = op_logs,	     [OP_ATTACH] = op_attach,
	[OP_KILL] = op_kill,	     [OP_WAIT] = op_wait,
	[OP_GET] = exec_transfer,    [OP_PUT] = exec_transfer,
	[OP_POWEROFF] = op_poweroff,
};

void op_run(struct conn *c)
{
	const unsigned char *mine = identity();
	const unsigned char *meant = c->req.hello_generation;
	bool needs_none =
		c->req.op == OP_IDENTITY || (c->req.op == OP_PING && !mine);

	if (!mine && !needs_none)
		conn_error(c, EX_ARK, "the guest has no identity yet");
	else if (!needs_none && memcmp(mine, meant, GENERATION_LEN) != 0)
		conn_error(c, EX_ARK,
			   "the guest is of another generation: it was "
			   "restored meanwhile");
	else
		operations[c->req.op](c);
}
