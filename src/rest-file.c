/*
 * rest-file.c - files into a sandbox and out of it, one connection to its agent
 * for each (ark-proto(7), OP_PUT and OP_GET).
 *
 * Nothing of a file is held here but one frame.  A guest may lie about a size:
 * what it sends is counted, and an answer whose length was told is ended early
 * when the guest fails, so that the client notices.
 */
#include "rest-file.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CHUNK (FRAME_MAX - 4096)
#define STALL_SECONDS 120 /* a guest that is dead or paused says nothing */
#define HOME_DIR "/tmp/server_files/" /* of Arrakis, for relative paths */

/* ---- a conversation ------------------------------------------------------ */

static void limit_waiting(int sock)
{
	const struct timeval most = {.tv_sec = STALL_SECONDS};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
}

/* The next frame, or why there is none. */
static int receive(struct transfer *t)
{
	bool late;

	if (frame_recv(t->sock, &t->frame) == 1)
		return 0;
	late = errno == EAGAIN;
	t->code = late ? EX_TIMEOUT : EX_ARK;
	snprintf(t->why, sizeof(t->why), "%s",
		 late ? "the guest does not answer"
		      : "the agent ended the connection");
	return -1;
}

int transfer_begin(struct transfer *t, struct sandbox *s, enum op op,
		   const char *path, unsigned flags)
{
	struct request r = {0};
	int bad = request_add_text(&r, FRAME_PATH, path);

	if (op == OP_PUT)
		bad |= request_add_text(&r, FRAME_ARG, "");
	if (flags)
		bad |= request_add_u32(&r, FRAME_FLAGS, flags);
	t->sock = agent_open(s, op);
	if (t->sock < 0) {
		snprintf(t->why, sizeof(t->why), "%s", last_message());
		t->code = EX_ARK;
		return -1;
	}
	limit_waiting(t->sock);
	client_active(s, &t->activity);
	if (bad || request_send(&r, t->sock) < 0) {
		snprintf(t->why, sizeof(t->why), "cannot ask the agent");
		t->code = EX_ARK;
		return -1;
	}
	return transfer_answer(t);
}

int transfer_answer(struct transfer *t)
{
	return receive(t) < 0 ? -1 : transfer_judge(t);
}

int transfer_judge(struct transfer *t)
{
	const struct frame *f = &t->frame;

	t->code = EX_ARK;
	snprintf(t->why, sizeof(t->why), "the agent sends what is no answer");
	if (f->type == FRAME_STARTED || f->type == FRAME_EXIT) {
		t->code = 0;
		return 0;
	}
	if (f->type == FRAME_ERROR && f->len > 4) {
		t->code = (int)(get_u32(f->data) & 0xff);
		snprintf(t->why, sizeof(t->why), "%s",
			 (const char *)f->data + 4);
	} else if (f->type == FRAME_ABORT) {
		t->code = EX_IOERR;
		snprintf(t->why, sizeof(t->why), "%.900s",
			 (const char *)f->data);
	}
	return -1;
}

void transfer_end(struct transfer *t, const struct sandbox *s)
{
	if (t->activity >= 0) {
		client_active(s, &t->activity);
		close(t->activity);
	}
	if (t->sock >= 0)
		close(t->sock);
	free(t);
}

struct transfer *transfer_new(void)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t)
		die(EX_OSERR, "out of memory");
	t->sock = t->activity = -1;
	return t;
}

int answer_transfer(const struct call *c, const struct transfer *t,
		    const char *path)
{
	if (t->code == EX_ARK || t->code == EX_TIMEOUT)
		return answer_failure(c, t->code, t->why);
	if (t->code == EX_NOINPUT)
		return answer_error(404, NULL, "no such file '%s'", path);
	return answer_error(409, "copy_failed", "%s",
			    *t->why ? t->why : "the guest failed");
}

static int send_entry(struct transfer *t, uint32_t mode, uint64_t size)
{
	unsigned char entry[ENTRY_HEAD];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	put_u32(entry, mode);
	put_u64(entry + 4, size);
	put_u64(entry + 12,
		(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec);
	return frame_send(t->sock, FRAME_ENTRY, entry, sizeof(entry));
}

static int send_end(struct transfer *t)
{
	return frame_send(t->sock, FRAME_END, NULL, 0) < 0 ||
			       frame_send(t->sock, FRAME_DONE, NULL, 0) < 0
		       ? -1
		       : 0;
}

static int send_data(struct transfer *t, uint64_t at, const char *data,
		     size_t len)
{
	unsigned char *frame = t->frame.data;

	put_u64(frame, at);
	memcpy(frame + 8, data, len);
	return frame_send(t->sock, FRAME_DATA, frame, len + 8);
}

/* ---- into the guest ------------------------------------------------------ */

/* Bytes that are in memory, as one file: 0, or -1 and t->why. */
static int put_bytes(struct transfer *t, uint32_t mode, const char *data,
		     size_t len)
{
	int bad = send_entry(t, S_IFREG | mode, len);

	for (size_t at = 0; !bad && at < len; at += CHUNK)
		bad = send_data(t, at, data + at,
				len - at < CHUNK ? len - at : CHUNK);
	if (!bad)
		send_end(t);
	return transfer_answer(t);
}

static const char *place_of(const char *path, char out[CGI_PATH_MAX + 32])
{
	snprintf(out, CGI_PATH_MAX + 32, "%s%s", *path == '/' ? "" : HOME_DIR,
		 path);
	return out;
}

static int put_one(const struct call *c, struct sandbox *s, size_t nth)
{
	const struct record *path = call_record(c, F_FILE_PATH, nth);
	const struct record *mode = call_record(c, F_FILE_MODE, nth);
	const struct record *data = call_record(c, F_CONTENT, nth);
	struct transfer *t = transfer_new();
	char place[CGI_PATH_MAX + 32];
	uint64_t bits = 0644;
	int r = 0;

	if (mode)
		memcpy(&bits, mode->data, sizeof(bits));
	if (transfer_begin(t, s, OP_PUT, place_of(path->data, place),
			   FILE_PARENTS) < 0 ||
	    put_bytes(t, (uint32_t)bits, data->data, data->len) < 0)
		r = answer_transfer(c, t, path->data);
	transfer_end(t, s);
	return r;
}

int rest_files_put(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	int r = open_running(c, &s);

	for (size_t i = 0; r == 0 && call_record(c, F_CONTENT, i); i++)
		r = put_one(c, &s, i);
	return r ? r : answer_json(200, json_object());
}

/* The body as it comes: 0, 1 when it ended early, -1 when the guest did. */
static int pass_body(struct transfer *t, uint64_t length)
{
	AUTO_FREE char *data = malloc(CHUNK);
	uint64_t at = 0;

	while (data && at < length) {
		size_t want =
			length - at < CHUNK ? (size_t)(length - at) : CHUNK;
		ssize_t n = read(STDIN_FILENO, data, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 1;
		if (send_data(t, at, data, (size_t)n) < 0)
			return -1;
		at += (uint64_t)n;
	}
	return data ? 0 : 1;
}

static int put_body(const struct call *c, struct transfer *t)
{
	static const char early[] = "the body ends early";
	uint64_t mode = 0644;
	int r;

	call_number(c, F_MODE, &mode);
	if (send_entry(t, S_IFREG | (uint32_t)mode, c->length) < 0)
		return transfer_answer(t);
	r = pass_body(t, c->length);
	if (r == 1) {
		frame_send(t->sock, FRAME_ABORT, early, strlen(early));
		t->code = EX_USAGE;
		return -1;
	}
	if (r == 0)
		send_end(t);
	return transfer_answer(t);
}

int rest_file_put(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const char *path = call_text(c, F_PATH);
	struct transfer *t;
	int r = open_running(c, &s);

	if (r)
		return r;
	t = transfer_new();
	if (transfer_begin(t, &s, OP_PUT, path, FILE_PARENTS) < 0 ||
	    put_body(c, t) < 0)
		r = t->code == EX_USAGE
			    ? answer_error(400, NULL, "the body ends early")
			    : answer_transfer(c, t, path);
	transfer_end(t, &s);
	return r ? r
		 : answer_json(200, json_pack("{s:s,s:I}", "path", path, "size",
					      (json_int_t)c->length));
}

/* ---- out of the guest ---------------------------------------------------- */

static const char zeros[4096];

/* What was never sent of a file is a hole. */
static int fill(struct transfer *t, uint64_t to,
		int (*take)(void *data, const char *bytes, size_t len),
		void *data)
{
	while (t->at < to) {
		size_t n = to - t->at < sizeof(zeros) ? (size_t)(to - t->at)
						      : sizeof(zeros);

		if (take(data, zeros, n) < 0)
			return -1;
		t->at += n;
	}
	return 0;
}

int transfer_entry(struct transfer *t)
{
	const unsigned char *data = t->frame.data;

	if (t->frame.type != FRAME_ENTRY)
		return transfer_judge(t);
	if (t->frame.len < ENTRY_HEAD || t->frame.len - ENTRY_HEAD >= TREE_PATH)
		return transfer_bad(t);
	t->mode = get_u32(data);
	t->size = get_u64(data + 4);
	t->mtime = get_u64(data + 12);
	t->at = 0;
	memcpy(t->path, data + ENTRY_HEAD, t->frame.len - ENTRY_HEAD);
	t->path[t->frame.len - ENTRY_HEAD] = '\0';
	if (t->size > INT64_MAX || strlen(t->path) != t->frame.len - ENTRY_HEAD)
		return transfer_bad(t);
	return 0;
}

int transfer_bad(struct transfer *t)
{
	t->code = EX_ARK;
	snprintf(t->why, sizeof(t->why), "the agent sends what is no file");
	return -1;
}

int transfer_data(struct transfer *t, take_fn take, void *data)
{
	while (true) {
		const unsigned char *bytes = t->frame.data;
		uint64_t offset;
		size_t len;

		if (receive(t) < 0)
			return -1;
		if (t->frame.type == FRAME_END)
			return fill(t, t->size, take, data);
		if (t->frame.type != FRAME_DATA)
			return transfer_judge(t) == 0 ? transfer_bad(t) : -1;
		if (t->frame.len <= 8)
			return transfer_bad(t);
		len = t->frame.len - 8;
		offset = get_u64(bytes);
		if (offset < t->at || offset > t->size ||
		    len > t->size - offset)
			return transfer_bad(t);
		if (fill(t, offset, take, data) < 0 ||
		    take(data, (const char *)bytes + 8, len) < 0)
			return -1;
		t->at += len;
	}
}

/* OP_GET up to the first entry. */
static int transfer_open(struct transfer *t, struct sandbox *s,
			 const char *path)
{
	if (transfer_begin(t, s, OP_GET, path, 0) < 0)
		return -1;
	return receive(t) < 0 ? -1 : transfer_entry(t);
}

int transfer_write(void *data, const char *bytes, size_t len)
{
	(void)data;
	return write_full(STDOUT_FILENO, bytes, len);
}

int transfer_get(struct call *c, struct sandbox *s, mode_t type,
		 const char *what, struct transfer **t)
{
	const char *path = call_text(c, F_PATH);
	int r = open_running(c, s);

	if (r)
		return r;
	*t = transfer_new();
	if (transfer_open(*t, s, path) < 0)
		r = answer_transfer(c, *t, path);
	else if (((*t)->mode & S_IFMT) != type)
		r = answer_error(409, "copy_failed", "'%s' is no %s", path,
				 what);
	else
		answer_header("Content-Disposition: attachment");
	if (r)
		transfer_end(*t, s);
	return r;
}

int rest_file_get(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	struct transfer *t;
	int r = transfer_get(c, &s, S_IFREG, "file", &t);

	if (r)
		return r;
	r = answer_begin(200, "application/octet-stream", (long long)t->size);
	transfer_data(t, transfer_write, NULL);
	transfer_end(t, &s);
	return r;
}

/* ---- several, as JSON ---------------------------------------------------- */

struct memory {
	char *data;
	size_t len, room; /* room is all that there may be */
};

static int take_memory(void *data, const char *bytes, size_t len)
{
	struct memory *m = data;
	char *more;

	if (len > m->room - m->len)
		return -1;
	more = realloc(m->data, m->len + len + 1);
	if (!more)
		return -1;
	m->data = more;
	memcpy(m->data + m->len, bytes, len);
	m->len += len;
	return 0;
}

static json_t *file_json(const char *path, const struct memory *m,
			 const char *error)
{
	bool text = utf8_ok(m->data ? m->data : "", m->len);
	json_t *file = json_pack("{s:s,s:s}", "path", path, "error",
				 *error || text ? error : "it is not text");

	if (*error || !text)
		json_object_set_new(file, "content", json_string(""));
	else
		json_object_set_new(
			file, "content",
			json_stringn(m->data ? m->data : "", m->len));
	if (!*error && !text) {
		AUTO_FREE char *coded = base64_encode(m->data, m->len);

		json_object_set_new(file, "contentBase64", json_string(coded));
	}
	return file;
}

/* The file, with its error; less of `room` is left. */
static json_t *get_one(struct sandbox *s, const char *path, size_t *room)
{
	struct transfer *t = transfer_new();
	struct memory m = {.room = *room};
	char place[CGI_PATH_MAX + 32], error[1024] = "";
	json_t *file;

	if (transfer_open(t, s, place_of(path, place)) < 0)
		printable(error, sizeof(error),
			  t->code == EX_NOINPUT ? "no such file" : t->why);
	else if (!S_ISREG(t->mode))
		snprintf(error, sizeof(error), "it is no file");
	else if (t->size > *room)
		snprintf(error, sizeof(error), "more than 4 MiB in all");
	else if (transfer_data(t, take_memory, &m) < 0)
		printable(error, sizeof(error),
			  *t->why ? t->why : "out of memory");
	file = file_json(path, &m, error);
	*room -= m.len;
	free(m.data);
	transfer_end(t, s);
	return file;
}

int rest_files_get(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	const struct record *path;
	size_t room = CGI_FILES_MAX;
	json_t *list;
	int r = open_running(c, &s);

	if (r)
		return r;
	list = json_array();
	for (size_t i = 0; (path = call_record(c, F_PATHS, i)); i++)
		json_array_append_new(list, get_one(&s, path->data, &room));
	return answer_json(200, json_pack("{s:o}", "files", list));
}
