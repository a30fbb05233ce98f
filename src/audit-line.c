/*
 * audit-line.c - a line of the audit log, to text and back; and the head.
 *
 * The hash is over the bytes of the line, not over what they mean: no other
 * way to write the same is taken for it.
 */
#include "audit-line.h"

#include <errno.h>
#include <jansson.h>
#include <sha2.h>

#define HASH_KEY ",\"hash\":\""
#define HASH_TAIL                                                              \
	(sizeof(HASH_KEY) - 1 + 64 + 2) /* key, hash, quote, brace             \
					 */
#define HEAD_LEN 107 /* two numbers of 20 digits, a hash, blanks, newline */

static const char zeros[65] = "00000000000000000000000000000000"
			      "00000000000000000000000000000000";

/* ---- the head ----------------------------------------------------------- */

void audit_head_none(struct audit_head *head)
{
	*head = (struct audit_head){0};
	memcpy(head->hash, zeros, sizeof(zeros));
}

bool audit_head_read(int fd, struct audit_head *head)
{
	char text[HEAD_LEN + 1];
	char *hash = text + 21, *end = text + 86;
	const char *why;

	audit_head_none(head);
	if (pread(fd, text, HEAD_LEN, 0) != HEAD_LEN || text[20] != ' ' ||
	    text[85] != ' ' || text[106] != '\n')
		return false;
	text[20] = text[85] = text[106] = '\0';
	if (strspn(hash, "0123456789abcdef") != 64 ||
	    !parse_num(text, 0, INT64_MAX, &head->seq, &why) ||
	    !parse_num(end, 0, INT64_MAX, &head->end, &why)) {
		audit_head_none(head);
		return false;
	}
	memcpy(head->hash, hash, 65);
	return true;
}

int audit_head_write(int fd, const struct audit_head *head)
{
	char text[HEAD_LEN + 1];

	snprintf(text, sizeof(text), "%020lld %s %020lld\n", head->seq,
		 head->hash, head->end);
	return pwrite_full(fd, text, HEAD_LEN, 0);
}

/* ---- lines -------------------------------------------------------------- */

static void hash_text(const char *text, size_t len, char out[65])
{
	SHA2_CTX context;
	unsigned char hash[32];

	SHA256Init(&context);
	SHA256Update(&context, (const uint8_t *)text, len);
	SHA256Final(hash, &context);
	to_hex(hash, sizeof(hash), out);
}

static json_t *number_or_null(long long n)
{
	return n < 0 ? json_null() : json_integer(n);
}

int audit_format(struct audit_record *r, char line[AUDIT_LINE_MAX])
{
	json_t *object = json_pack(
		"{s:I, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:s}",
		"seq", (json_int_t)r->seq, "time", r->time, "id", r->id,
		"tenant", r->tenant, "token", r->token, "address", r->address,
		"action", r->action, "object", r->object, "result",
		number_or_null(r->result), "ms", number_or_null(r->ms), "prev",
		r->prev);
	size_t len;

	if (!object)
		return -1;
	len = json_dumpb(object, line, AUDIT_LINE_MAX,
			 JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	if (len == 0 || len + HASH_TAIL + 1 > AUDIT_LINE_MAX)
		return -1;
	len--; /* the brace */
	hash_text(line, len, r->hash);
	return (int)len + snprintf(line + len, AUDIT_LINE_MAX - len,
				   HASH_KEY "%s\"}\n", r->hash);
}

static bool take_text(const json_t *object, const char *key, char *out,
		      size_t size)
{
	const json_t *value = json_object_get(object, key);
	const char *text = json_string_value(value);

	if (!text || json_string_length(value) >= size ||
	    strlen(text) != json_string_length(value))
		return false;
	memcpy(out, text, strlen(text) + 1);
	return true;
}

static bool take_number(const json_t *object, const char *key, bool null,
			long long *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_is_integer(value) ? (long long)json_integer_value(value)
				      : -1;
	return *out >= 0 || (null && json_is_null(value));
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static bool take_all(const json_t *o, struct audit_record *r)
{
	return json_object_size(o) == 12 &&
	       take_number(o, "seq", false, &r->seq) && r->seq > 0 &&
	       take_number(o, "result", true, &r->result) &&
	       take_number(o, "ms", true, &r->ms) &&
	       take_text(o, "time", r->time, sizeof(r->time)) &&
	       take_text(o, "id", r->id, sizeof(r->id)) &&
	       take_text(o, "tenant", r->tenant, sizeof(r->tenant)) &&
	       take_text(o, "token", r->token, sizeof(r->token)) &&
	       take_text(o, "address", r->address, sizeof(r->address)) &&
	       take_text(o, "action", r->action, sizeof(r->action)) &&
	       take_text(o, "object", r->object, sizeof(r->object)) &&
	       take_text(o, "prev", r->prev, sizeof(r->prev)) &&
	       take_text(o, "hash", r->hash, sizeof(r->hash)) &&
	       is_hash(r->prev) && is_hash(r->hash);
}

const char *audit_parse(const char *line, size_t len, struct audit_record *r)
{
	char hash[65];
	json_t *object;
	bool good;

	r->seq = 0;
	if (len < HASH_TAIL || len >= AUDIT_LINE_MAX ||
	    memcmp(line + len - HASH_TAIL, HASH_KEY, strlen(HASH_KEY)) != 0)
		return "is not a record";
	object = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	good = object && take_all(object, r);
	json_decref(object);
	if (!good) {
		r->seq = 0;
		return "is not a record";
	}
	hash_text(line, len - HASH_TAIL, hash);
	return strcmp(hash, r->hash) == 0 ? NULL : "was changed";
}
