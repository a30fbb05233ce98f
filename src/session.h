/*
 * session.h - the client's end of an exec: what goes over the connection, the
 * terminal, the signals and the two streams, until it ends.
 */
#ifndef ARK_SESSION_H
#define ARK_SESSION_H

#include "agent.h"

/* Option frames of one request, collected and sent at once. */
struct request {
	unsigned char *data;
	size_t len;
	size_t room;
};

/* 0, or -1 and errno: E2BIG is more than an agent takes. */
int request_add(struct request *r, enum frame_type type, const void *data,
		size_t len);
int request_add_text(struct request *r, enum frame_type type, const char *text);
int request_add_u32(struct request *r, enum frame_type type, uint32_t value);
int request_add_winsize(struct request *r, int terminal);

/* Send it with FRAME_GO and free it; 0, or -1 and errno. */
int request_send(struct request *r, int sock);

enum session_end {
	END_NONE,      /* it goes on */
	END_EXIT,      /* FRAME_EXIT: code, signal, timeout, oom */
	END_ERROR,     /* FRAME_ERROR: code, text */
	END_LOST,      /* the connection or the VMM ended without either */
	END_PROTOCOL,  /* the agent sent what it must not; text */
	END_OUTPUT,    /* our stdout or stderr cannot be written; code, text */
	END_INTERRUPT, /* a second ^C */
};

struct session {
	int sock;
	int in, out, err; /* -1: none, and output for it is a bad frame */
	int pidfd;	  /* of the VMM, or -1 */
	bool raw;	  /* `in` is a terminal in raw mode */
	bool proxy;	  /* forward signals */

	/* FRAME_ITEM; NULL: not expected. */
	void (*item)(void *data, const char *text);
	void *item_data;

	char id[24]; /* FRAME_STARTED */
	int code, signal;
	bool timeout, oom;
	char text[1024];
};

/* Run it to its end.  Prints nothing; closes nothing. */
enum session_end session_run(struct session *s);

/* ---- client.c: what ark-exec and ark-cp share ---------------------------- */

/* Make sure that the descriptors 0, 1 and 2 are open: on a closed one the
 * connection would be opened next, and messages or output written into it. */
void client_stdio(void);

/* Somebody uses the sandbox: the keeper counts its idle time from here.  *fd
 * is -1 at first, and the caller's to close. */
void client_active(const struct sandbox *s, int *fd);

/* The connection has ended early: say why, after a moment for the keeper to
 * write down how the VMM has ended. */
void client_loss(struct sandbox *s, char *text, size_t size);

/* ---- tty.c: the terminal, put back whatever happens ---------------------- */

/* Raw mode; 0, or -1 and errno.  It is restored at exit and by a fatal
 * signal. */
int tty_raw(int fd);
void tty_restore(void);

/* u16 rows, u16 columns as in FRAME_WINSIZE; false when it has no size. */
bool tty_size(int fd, unsigned char size[4]);

#endif
