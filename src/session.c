/*
 * session.c - one connection to an agent while a command runs.
 *
 * 1. Nothing here may block but poll(2).  The agent stops reading while its
 *    output finds no room, and we would stop reading while our input finds
 *    none; a ^C must get through when stdout is a pipe that nobody empties.
 *    So the socket is used with MSG_DONTWAIT and output is written when poll
 *    says so, in pieces that a pipe takes whole.  O_NONBLOCK is no way: it
 *    would hit everybody who shares our stdout.
 * 2. Stdin is read only within the agent's credit and with nothing else to
 *    send, so at most one frame of it is ever waiting here.
 * 3. Frames come from a guest.  A frame is handled where it lies in a buffer
 *    of the largest size; numbers out of it are checked or clipped, its text
 *    is for printable().
 * 4. Signals stay blocked when it has ended: a SIGPIPE that is pending must not
 *    end us before the terminal is restored and the result told.
 * 5. A VMM that is dead may have left its last words in the socket: they are
 *    read before the session is called lost.
 */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define STDIN_CHUNK (64 * 1024)
#define CREDIT_MAX (1u << 30)
#define AGAIN_MS 2000 /* a second ^C within this means it */
#define HANG_UP_MS 500
#define BACKGROUND_MS 1000 /* look again whether stdin is ours now */

enum { AT_SOCK, AT_IN, AT_OUT, AT_SIGNAL, AT_VMM, AT_COUNT };

/* The buffers of the one session that a process has at a time. */
static struct {
	unsigned char in[FRAME_HEAD + FRAME_MAX];
	size_t in_start, in_end;

	/* Output that is not written yet: it lies in in[]. */
	const unsigned char *out;
	size_t out_len;
	int out_fd;
	size_t out_piece; /* what may be written at once */

	unsigned char send[FRAME_HEAD + STDIN_CHUNK + 4096];
	size_t send_start, send_end;

	uint64_t credit;
	bool background; /* stdin is a terminal that is not ours now */
	bool vmm_dead;
	int signals; /* signalfd, or -1 */
	uint64_t last_int;
} b;

/* ---- what goes out ------------------------------------------------------- */

/* Queue a frame; one that finds no room is dropped, which only a storm of
 * signals can bring about. */
static void queue(enum frame_type type, const void *data, size_t len)
{
	if (FRAME_HEAD + len > sizeof(b.send) - b.send_end)
		return;
	frame_head(b.send + b.send_end, type, len);
	b.send_end += FRAME_HEAD;
	if (len > 0)
		memcpy(b.send + b.send_end, data, len);
	b.send_end += len;
}

static void queue_size(const struct session *s)
{
	unsigned char size[4];

	if (tty_size(s->in, size))
		queue(FRAME_WINSIZE, size, sizeof(size));
}

/* An agent that does not listen any more may still have said why: errors are
 * left to the reading side. */
static void send_queue(const struct session *s)
{
	ssize_t n =
		send(s->sock, b.send + b.send_start, b.send_end - b.send_start,
		     MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		b.send_start += (size_t)n;
	if (n < 0 || b.send_start == b.send_end)
		b.send_start = b.send_end = 0;
}

/* A background job must not read the terminal.  SIGTTIN is blocked, so read(2)
 * says EIO, and so it does when the terminal is gone for good. */
static bool in_background(const struct session *s)
{
	return errno == EIO && isatty(s->in) && tcgetpgrp(s->in) != getpgrp();
}

static void read_stdin(struct session *s)
{
	static unsigned char data[STDIN_CHUNK];
	size_t want = b.credit < sizeof(data) ? b.credit : sizeof(data);
	ssize_t n = read(s->in, data, want);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0 && in_background(s)) {
		b.background = true;
		return;
	}
	if (n <= 0) {
		queue(FRAME_STDIN, NULL, 0);
		s->in = -1;
		return;
	}
	b.credit -= (uint64_t)n;
	queue(FRAME_STDIN, data, (size_t)n);
}

/* ---- signals ------------------------------------------------------------- */

/* What somebody has told our parents to ignore (nohup, a job of a script) is
 * not for the command either. */
static bool ignored(int sig)
{
	struct sigaction action;

	return sigaction(sig, NULL, &action) == 0 &&
	       action.sa_handler == SIG_IGN;
}

static void catch_signals(const struct session *s)
{
	static const int forwarded[] = {SIGINT,	 SIGTERM, SIGHUP,
					SIGQUIT, SIGUSR1, SIGUSR2};
	sigset_t mask, blocked;

	sigemptyset(&mask);
	for (size_t i = 0; s->proxy && i < ARRAY_LEN(forwarded); i++)
		if (!ignored(forwarded[i]))
			sigaddset(&mask, forwarded[i]);
	if (s->raw) {
		sigaddset(&mask, SIGWINCH);
		sigaddset(&mask, SIGCONT);
	}
	blocked = mask;
	sigaddset(&blocked, SIGPIPE);
	sigaddset(&blocked, SIGTTIN);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	b.signals =
		s->proxy ? signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
}

static enum session_end take_signal(const struct session *s)
{
	struct signalfd_siginfo info;
	unsigned char number[4];
	int sig;

	if (read(b.signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return END_NONE;
	sig = (int)info.ssi_signo;
	if (sig == SIGCONT)
		tty_raw(s->in); /* the shell has put its own mode back */
	if (sig == SIGCONT || sig == SIGWINCH) {
		queue_size(s);
		return END_NONE;
	}
	if (sig == SIGINT && !s->raw) {
		uint64_t now = now_ms();

		if (b.last_int && now - b.last_int < AGAIN_MS)
			return END_INTERRUPT;
		b.last_int = now;
	}
	put_u32(number, (uint32_t)sig);
	queue(FRAME_SIGNAL, number, sizeof(number));
	return END_NONE;
}

/* ---- what comes in ------------------------------------------------------- */

static enum session_end bad_frame(struct session *s, enum frame_type type)
{
	snprintf(s->text, sizeof(s->text),
		 "the agent sent a bad frame of type %d", (int)type);
	return END_PROTOCOL;
}

/* A pipe that poll calls writable takes PIPE_BUF bytes, and perhaps no more.
 * A file takes all. */
static bool begin_output(int fd, const unsigned char *data, size_t len)
{
	struct stat st;

	if (fd < 0)
		return false;
	if (b.out_fd != fd || !b.out_piece)
		b.out_piece = fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
				      ? FRAME_MAX
				      : 4096;
	b.out_fd = fd;
	b.out = data;
	b.out_len = len;
	return true;
}

static enum session_end write_output(struct session *s)
{
	size_t len = b.out_len < b.out_piece ? b.out_len : b.out_piece;
	ssize_t n = write(b.out_fd, b.out, len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return END_NONE;
	if (n >= 0) {
		b.out += n;
		b.out_len -= (size_t)n;
		return END_NONE;
	}
	s->code = errno == EPIPE ? 128 + SIGPIPE : EX_IOERR;
	snprintf(s->text, sizeof(s->text), "cannot write to %s: %s",
		 b.out_fd == s->out ? "stdout" : "stderr", strerror(errno));
	return END_OUTPUT;
}

static enum session_end take_exit(struct session *s, const unsigned char *data)
{
	uint32_t code = get_u32(data), sig = get_u32(data + 4);
	uint32_t flags = get_u32(data + 8);

	if (code > 255 || sig > 64)
		return bad_frame(s, FRAME_EXIT);
	s->timeout = flags & RESULT_TIMEOUT;
	s->oom = flags & RESULT_OOM;
	s->code = (int)code;
	s->signal = s->timeout ? 0 : (int)sig;
	if (s->timeout)
		s->code = EX_TIMEOUT;
	else if (sig)
		s->code = 128 + (int)sig;
	return END_EXIT;
}

static enum session_end take_error(struct session *s, const unsigned char *data,
				   size_t len)
{
	uint32_t code = get_u32(data);
	int shown = len - 4 < sizeof(s->text) ? (int)(len - 4)
					      : (int)sizeof(s->text) - 1;

	s->code = code > 0 && code < 128 ? (int)code : EX_ARK;
	snprintf(s->text, sizeof(s->text), "%.*s", shown,
		 (const char *)data + 4);
	return END_ERROR;
}

static bool take_id(struct session *s, const unsigned char *data, size_t len)
{
	if (len == 0 || len >= sizeof(s->id))
		return false;
	for (size_t i = 0; i < len; i++)
		if (data[i] < '0' || data[i] > '9')
			return false;
	memcpy(s->id, data, len);
	s->id[len] = '\0';
	return true;
}

static bool take_item(const struct session *s, const unsigned char *data,
		      size_t len)
{
	static char text[FRAME_MAX + 1];

	if (!s->item || memchr(data, '\0', len))
		return false;
	memcpy(text, data, len);
	text[len] = '\0';
	s->item(s->item_data, text);
	return true;
}

static enum session_end take_frame(struct session *s, enum frame_type type,
				   const unsigned char *data, size_t len)
{
	bool good = false;

	switch ((int)type) {
	case FRAME_STDOUT:
	case FRAME_STDERR:
		good = begin_output(type == FRAME_STDOUT ? s->out : s->err,
				    data, len);
		break;
	case FRAME_CREDIT:
		good = len == 4;
		if (good)
			b.credit += get_u32(data);
		if (b.credit > CREDIT_MAX)
			b.credit = CREDIT_MAX;
		break;
	case FRAME_STARTED:
		good = take_id(s, data, len);
		break;
	case FRAME_ITEM:
		good = take_item(s, data, len);
		break;
	case FRAME_EXIT:
		if (len == 12)
			return take_exit(s, data);
		break;
	case FRAME_ERROR:
		if (len >= 4)
			return take_error(s, data, len);
		break;
	default:
		break;
	}
	return good ? END_NONE : bad_frame(s, type);
}

/* Handle what is complete in the buffer, up to the first output. */
static enum session_end take_frames(struct session *s)
{
	enum session_end end = END_NONE;

	while (end == END_NONE && b.out_len == 0 &&
	       b.in_end - b.in_start >= FRAME_HEAD) {
		const unsigned char *head = b.in + b.in_start;
		enum frame_type type;
		size_t len;

		if (frame_parse_head(head, &type, &len) < 0)
			return bad_frame(s, type);
		if (b.in_end - b.in_start < FRAME_HEAD + len)
			break;
		b.in_start += FRAME_HEAD + len;
		end = take_frame(s, type, head + FRAME_HEAD, len);
	}
	return end;
}

static enum session_end read_socket(struct session *s)
{
	ssize_t n;

	memmove(b.in, b.in + b.in_start, b.in_end - b.in_start);
	b.in_end -= b.in_start;
	b.in_start = 0;
	n = recv(s->sock, b.in + b.in_end, sizeof(b.in) - b.in_end,
		 MSG_DONTWAIT);
	if (n < 0 && errno == EINTR)
		return END_NONE;
	if (n < 0 && errno == EAGAIN)
		return b.vmm_dead ? END_LOST : END_NONE;
	if (n <= 0)
		return END_LOST;
	b.in_end += (size_t)n;
	return take_frames(s);
}

/* ---- the loop ------------------------------------------------------------ */

/* A descriptor with nothing to wait for is left out: poll would go on telling
 * about its hangup. */
static void prepare(const struct session *s, struct pollfd *p)
{
	bool sending = b.send_end > 0, writing = b.out_len > 0;

	p[AT_SOCK].events =
		(short)((writing ? 0 : POLLIN) | (sending ? POLLOUT : 0));
	p[AT_SOCK].fd = p[AT_SOCK].events ? s->sock : -1;
	p[AT_IN].events = POLLIN;
	p[AT_IN].fd = !sending && b.credit > 0 && !b.background ? s->in : -1;
	p[AT_OUT].events = POLLOUT;
	p[AT_OUT].fd = writing ? b.out_fd : -1;
	p[AT_SIGNAL].events = POLLIN;
	p[AT_SIGNAL].fd = b.signals;
	p[AT_VMM].events = POLLIN;
	p[AT_VMM].fd = b.vmm_dead ? -1 : s->pidfd;
}

static enum session_end react(struct session *s, const struct pollfd *p)
{
	enum session_end end = END_NONE;

	if (p[AT_SIGNAL].revents)
		end = take_signal(s);
	if (p[AT_VMM].revents)
		b.vmm_dead = true;
	if (end == END_NONE && p[AT_OUT].revents) {
		end = write_output(s);
		if (end == END_NONE)
			return take_frames(s);
	}
	if (p[AT_IN].revents)
		read_stdin(s);
	if (b.send_end > 0)
		send_queue(s);
	if (end == END_NONE && b.out_len == 0 &&
	    (b.vmm_dead || p[AT_SOCK].revents & ~POLLOUT))
		end = read_socket(s);
	return end;
}

static enum session_end loop(struct session *s)
{
	struct pollfd p[AT_COUNT];
	enum session_end end = END_NONE;

	while (end == END_NONE) {
		int n, ms = -1;

		prepare(s, p);
		if (b.vmm_dead && b.out_len == 0)
			ms = 0;
		else if (b.background)
			ms = BACKGROUND_MS;
		n = poll(p, AT_COUNT, ms);
		if (n == 0)
			b.background = false;
		if (n >= 0)
			end = react(s, p);
	}
	return end;
}

/* We leave before the agent has sent all.  Closing now, with unread input,
 * would reset the connection, and that is what a restored guest sees of its
 * old connections: the agent would let the command live on for a while.  An
 * end of file tells it to kill, and it answers by closing. */
static void hang_up(const struct session *s)
{
	struct pollfd p = {.fd = s->sock, .events = POLLIN};
	uint64_t end = now_ms() + HANG_UP_MS;

	shutdown(s->sock, SHUT_WR);
	while (now_ms() < end && poll(&p, 1, HANG_UP_MS) > 0)
		if (recv(s->sock, b.in, sizeof(b.in), MSG_DONTWAIT) <= 0)
			break;
}

enum session_end session_run(struct session *s)
{
	enum session_end end;

	memset(&b, 0, sizeof(b));
	b.credit = STDIN_WINDOW;
	catch_signals(s);
	end = loop(s);
	if (end == END_OUTPUT || end == END_INTERRUPT || end == END_PROTOCOL)
		hang_up(s);
	if (b.signals >= 0)
		close(b.signals);
	return end;
}
