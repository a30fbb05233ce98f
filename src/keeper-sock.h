/*
 * keeper-sock.h - what other commands may ask a keeper, over SLOT/keeper.sock.
 *
 * A SOCK_SEQPACKET socket below a directory that only root can enter.  One
 * text packet is a request, one is its answer:
 *	reserve PROTO ADDRESS PORT	"ok PORT", or "busy REASON"; PORT 0: any
 *	release PROTO ADDRESS PORT	"ok"
 * Anything else is answered "bad request".
 */
#ifndef ARK_KEEPER_SOCK_H
#define ARK_KEEPER_SOCK_H

#include "reserve.h"
#include "state.h"

#define KEEPER_PACKET 512
#define KEEPER_CLIENTS 8

struct keeper_sock {
	int listener;
	int client[KEEPER_CLIENTS]; /* -1: free */
	struct reservations reserved;
};

/* The keeper's side.  Listen in the slot: 0, or -1 and errno. */
int keeper_sock_open(struct keeper_sock *k, int run);

/* Answer what has come; call it when one of the descriptors is readable. */
void keeper_sock_serve(struct keeper_sock *k);

/* Answer one request; pure but for the reservations.  Public for the tests. */
void keeper_answer(struct reservations *r, const char *request, char *answer,
		   size_t size);

/* The others' side: ask the keeper of a sandbox and wait at most 10 s.  0, or
 * -EX_UNAVAILABLE, told. */
int keeper_ask(const struct sandbox *s, const char *request, char *answer,
	       size_t size);

#endif
