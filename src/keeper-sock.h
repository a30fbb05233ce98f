/*
 * keeper-sock.h - what other commands may ask a keeper, over SLOT/keeper.sock.
 *
 * A SOCK_SEQPACKET socket below a directory that only root can enter.  One
 * text packet is a request, one is its answer:
 *	reserve PROTO ADDRESS PORT	"ok PORT", or "busy REASON"; PORT 0: any
 *	release PROTO ADDRESS PORT	"ok"
 *	hold				"ok running" when the VM has been paused
 *					for the asker, "ok paused" when it was
 *					paused already
 *	release				"ok"; the VM goes on if hold paused it
 * Anything else is answered "bad request".
 *
 * A hold is a lease: it ends with the connection, however that ends, so a
 * snapshot that is killed leaves no paused VM.
 */
#ifndef ARK_KEEPER_SOCK_H
#define ARK_KEEPER_SOCK_H

#include "reserve.h"
#include "state.h"

#define KEEPER_PACKET 512
#define KEEPER_CLIENTS 8

/* What the keeper itself has to do for a client; `data` is the keeper. */
struct keeper_hooks {
	void (*hold)(void *data, size_t client);
	void (*release)(void *data, size_t client); /* also when it has gone */
	void *data;
};

struct keeper_sock {
	int listener;
	int client[KEEPER_CLIENTS]; /* -1: free */
	struct reservations reserved;
};

/* The keeper's side.  Listen in the slot: 0, or -1 and errno. */
int keeper_sock_open(struct keeper_sock *k, int run);

/* Answer what has come; call it when one of the descriptors is readable. */
void keeper_sock_serve(struct keeper_sock *k, const struct keeper_hooks *hooks);
void keeper_sock_reply(struct keeper_sock *k, size_t client, const char *text);

/* Answer one request; pure but for the reservations.  Public for the tests. */
void keeper_answer(struct reservations *r, const char *request, char *answer,
		   size_t size);

/* The others' side: connect, then ask as often as needed; the connection is the
 * life of a hold.  A descriptor, or -EX_UNAVAILABLE, told. */
int keeper_connect(const struct sandbox *s);
int keeper_talk(int fd, const struct sandbox *s, const char *request,
		char *answer, size_t size);

/* Both for one question: ask the keeper of a sandbox and wait at most 10 s.  0,
 * or -EX_UNAVAILABLE, told. */
int keeper_ask(const struct sandbox *s, const char *request, char *answer,
	       size_t size);

#endif
