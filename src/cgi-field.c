/*
 * cgi-field.c - what a value of a request may be: one table, which the parser
 * goes by, and its parent again when it reads what the parser says.
 */
#include "cgi.h"

#include <ctype.h>
#include <stdarg.h>

#define NOT_VM "ls|logs|attach|kill|wait" /* ark(1), Names */
#define WORD_MAX 131000u /* a word of a command line in a guest */

static const struct field_rule rules[F_COUNT_OF_FIELDS] = {
	[F_REMOTE] = {"remote", KIND_TEXT, 0, 64, NULL, 0},
	[F_REMOTE_PORT] = {"remotePort", KIND_NUMBER, 0, 65535, NULL, 0},
	[F_SERVER] = {"server", KIND_TEXT, 0, 64, NULL, 0},
	[F_SERVER_PORT] = {"serverPort", KIND_NUMBER, 0, 65535, NULL, 0},
	[F_ALLOW] = {"allow", KIND_TEXT, 0, 64, NULL, 0},
	[F_CREDS] = {"authorization", KIND_TEXT, 0, 4096, NULL, 0},
	[F_LENGTH] = {"length", KIND_NUMBER, 0, CGI_STREAM_MAX, NULL, 0},
	[F_NAME] = {"name", KIND_NAME, 1, NAME_MAX_LEN, NOT_VM, 0},
	[F_ID] = {"id", KIND_NAME, 1, NAME_MAX_LEN, NULL, 0},
	[F_VM_NAME] = {"vmName", KIND_NAME, 1, NAME_MAX_LEN, NOT_VM, 0},
	[F_SNAPSHOT] = {"snapshotId", KIND_NAME, 0, NAME_MAX_LEN, "tree", 0},
	[F_KERNEL] = {"kernel", KIND_EMPTY, 0, 0, NULL, 0},
	[F_ROOTFS] = {"rootfs", KIND_EMPTY, 0, 0, NULL, 0},
	[F_INITRAMFS] = {"initramfs", KIND_EMPTY, 0, 0, NULL, 0},
	[F_ENTRY] = {"entryPoint", KIND_IGNORED, 0, 0, NULL, 0},
	[F_IMAGE] = {"image", KIND_NAME, 1, NAME_MAX_LEN, NULL, 0},
	[F_MEMORY] = {"memory", KIND_SIZE, 1, 70368744177664, NULL, 0},
	[F_CPUS] = {"cpus", KIND_NUMBER, 1, 255, NULL, 0},
	[F_DISK] = {"disk", KIND_SIZE, 1, 70368744177664, NULL, 0},
	[F_RATE] = {"netRate", KIND_TEXT, 1, 13, NULL, 0},
	[F_POLICY] = {"policy", KIND_TEXT, 1, 16, "open|none", 0},
	[F_PORTS] = {"ports", KIND_PORTS, 0, 120, NULL, 64}, /* "": none */
	[F_TTL] = {"ttl", KIND_NUMBER, 1, 315532800, NULL, 0},
	[F_REMOVE] = {"rm", KIND_TRUTH, 0, 1, NULL, 0},
	[F_START] = {"start", KIND_TRUTH, 0, 1, NULL, 0},
	[F_STATUS] = {"status", KIND_TEXT, 1, 16, "stopped|paused|resume", 0},
	[F_SIZE] = {"size", KIND_SIZE, 1, 70368744177664, NULL, 0},
	[F_CMD] = {"cmd", KIND_TEXT, 1, WORD_MAX, NULL, 0},
	[F_BLOCKING] = {"blocking", KIND_TRUTH, 0, 1, NULL, 0},
	[F_FILES] = {"files", KIND_FILES, 0, 0, NULL, 1000},
	[F_ARGV] = {"argv", KIND_TEXTS, 0, WORD_MAX, NULL, 4096},
	[F_ENV] = {"env", KIND_MAP, 2, WORD_MAX, NULL, 512},
	[F_CWD] = {"cwd", KIND_PATH, 1, CGI_PATH_MAX, NULL, 0},
	[F_USER] = {"user", KIND_TEXT, 1, 65, NULL, 0},
	[F_TIMEOUT] = {"timeout", KIND_SECONDS, 1, 86400000, NULL, 0},
	[F_GRACE] = {"timeout", KIND_SECONDS, 0, 60000, NULL, 0},
	[F_WAIT] = {"timeout", KIND_SECONDS, 0, 3600000, NULL, 0},
	[F_STDIN] = {"stdin", KIND_DATA, 0, CGI_JSON_MAX, NULL, 0},
	[F_STDIN64] = {"stdinBase64", KIND_BASE64, 0, CGI_JSON_MAX, NULL, 0},
	[F_STREAM] = {"stream", KIND_TRUTH, 0, 1, NULL, 0},
	[F_DETACH] = {"detach", KIND_TRUTH, 0, 1, NULL, 0},
	[F_SIGNAL] = {"signal", KIND_TEXT, 1, 16, NULL, 0},
	[F_COUNT] = {"count", KIND_NUMBER, 1, 1000, NULL, 0},
	[F_PREFIX] = {"name", KIND_NAME, 1, NAME_MAX_LEN, NOT_VM, 0},
	[F_PARTIAL] = {"partial", KIND_TRUTH, 0, 1, NULL, 0},
	[F_PATHS] = {"paths", KIND_TEXTS, 1, CGI_PATH_MAX, NULL, 64},
	[F_PATH] = {"path", KIND_PATH, 1, CGI_PATH_MAX, NULL, 0},
	[F_MODE] = {"mode", KIND_MODE, 0, 07777, NULL, 0},
	[F_FOLLOW] = {"follow", KIND_TRUTH, 0, 1, NULL, 0},
	[F_PROBE] = {"probe", KIND_TRUTH, 0, 1, NULL, 0},
	[F_GUEST_PORT] = {"guestPort", KIND_PORT, 1, 65535, NULL, 0},
	[F_HOST_PORT] = {"hostPort", KIND_PORT, 1, 65535, NULL, 0},
	[F_ADDRESS] = {"address", KIND_TEXT, 7, 15, NULL, 0},
	[F_PROTOCOL] = {"protocol", KIND_TEXT, 1, 4, "tcp|udp", 0},
	[F_DESCRIPTION] = {"description", KIND_TEXT, 0, 31, NULL, 0},
	[F_FILE_PATH] = {"path", KIND_TEXT, 1, CGI_PATH_MAX, NULL, 1000},
	[F_FILE_MODE] = {"mode", KIND_MODE, 0, 07777, NULL, 1000},
	[F_CONTENT] = {"content", KIND_DATA, 0, CGI_FILES_MAX, NULL, 1000},
};

const struct field_rule *field_rule(enum field f)
{
	return &rules[f];
}

struct refusal refuse(int status, const char *fmt, ...)
{
	struct refusal no = {.status = status};
	char text[sizeof(no.why)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printable(no.why, sizeof(no.why), text);
	return no;
}

/* ---- texts --------------------------------------------------------------- */

static bool one_of(const char *words, const char *text)
{
	size_t len = strlen(text);

	while (words) {
		if (strncmp(words, text, len) == 0 &&
		    (words[len] == '|' || words[len] == '\0'))
			return true;
		words = strchr(words, '|');
		if (words)
			words++;
	}
	return false;
}

/* "80" or "5736-5740" */
static bool port_ok(const char *text)
{
	int ports = 0;

	while (ports < 2) {
		size_t digits = strspn(text, "0123456789");

		if (digits < 1 || digits > 5 || *text == '0' ||
		    strtol(text, NULL, 10) > 65535)
			return false;
		ports++;
		text += digits;
		if (*text != '-')
			break;
		text++;
	}
	return *text == '\0';
}

/* [A-Za-z_][A-Za-z0-9_]*=... */
static bool variable_ok(const char *text)
{
	size_t len = strcspn(text, "=");

	if (len == 0 || len > 256 || text[len] != '=' ||
	    isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	return true;
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "abcdefghijklmnopqrstuvwxyz0123456789_.-";

/* A name or a number, and perhaps the same of a group. */
static bool user_ok(const char *text)
{
	size_t user = strspn(text, letters);
	const char *group = text[user] == ':' ? text + user + 1 : NULL;
	size_t len = group ? strspn(group, letters) : 0;

	if (user < 1 || user > 32 || strchr(".-", *text))
		return false;
	if (!group)
		return text[user] == '\0';
	return len >= 1 && len <= 32 && !strchr(".-", *group) && !group[len];
}

/* "TERM", "RTMIN+1", "9" */
static bool signal_ok(const char *text)
{
	if (isdigit((unsigned char)*text))
		return strspn(text, "0123456789") == strlen(text) &&
		       strlen(text) <= 2;
	return isupper((unsigned char)*text) &&
	       strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-") ==
		       strlen(text);
}

/* "500k", "10M" */
static bool rate_ok(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= 1 && digits <= 12 &&
	       (!text[digits] ||
		(strchr("kKMG", text[digits]) && !text[digits + 1]));
}

/* Fields whose form is nobody else's. */
static bool own_form_ok(const struct field_rule *r, const char *text)
{
	switch ((int)(r - rules)) {
	case F_USER:
		return user_ok(text);
	case F_SIGNAL:
		return signal_ok(text);
	case F_RATE:
		return rate_ok(text);
	case F_ADDRESS:
		return strspn(text, "0123456789.") == strlen(text);
	case F_DESCRIPTION:
		return strspn(text, letters) == strlen(text);
	default:
		return !r->words || one_of(r->words, text);
	}
}

/* What is right with a text but for its length and its characters. */
static bool form_ok(const struct field_rule *r, const char *text)
{
	uint64_t size;
	const char *why;

	switch ((int)r->kind) {
	case KIND_NAME:
		return (r->min == 0 && !*text) ||
		       (name_ok(text) && !one_of(r->words, text));
	case KIND_PATH:
		return *text == '/';
	case KIND_PORT:
		return port_ok(text);
	case KIND_SIZE:
		return parse_size(text, &size, &why) && size >= r->min &&
		       size <= r->max;
	case KIND_MAP:
		return variable_ok(text);
	case KIND_EMPTY:
		return !*text;
	default:
		return own_form_ok(r, text);
	}
}

static size_t longest(const struct field_rule *r)
{
	return r->kind == KIND_SIZE || r->kind == KIND_PORT ? 20 : r->max;
}

static size_t shortest(const struct field_rule *r)
{
	return r->kind == KIND_SIZE || r->kind == KIND_PORT ? 1 : r->min;
}

static struct refusal bad_form(enum field f, const char *text)
{
	const struct field_rule *r = &rules[f];

	if (r->kind == KIND_NAME)
		return refuse(400, "bad name '%s'", text);
	if (r->kind == KIND_PATH)
		return refuse(400, "%s must begin with a slash", r->key);
	if (r->kind == KIND_PORT)
		return refuse(400, "bad port '%s'", text);
	if (r->kind == KIND_EMPTY)
		return refuse(400, "%s cannot be chosen by a request", r->key);
	if (r->words)
		return refuse(400, "%s must be one of %s", r->key, r->words);
	return refuse(400, "bad %s '%.64s'", r->key, text);
}

struct refusal put_text(enum field f, const char *text, size_t len, int out)
{
	const struct field_rule *r = &rules[f];

	if (r->kind == KIND_DATA || r->kind == KIND_BASE64) {
		if (len > r->max)
			return refuse(413, "%s is too long", r->key);
		emit(out, f, text, len);
		return (struct refusal){0};
	}
	if (memchr(text, '\0', len))
		return refuse(400, "%s has a NUL in it", r->key);
	if (!form_ok(r, text))
		return bad_form(f, text);
	if (len < shortest(r))
		return refuse(400, "%s must not be empty", r->key);
	if (len > longest(r))
		return refuse(400, "%s is too long", r->key);
	if (r->kind != KIND_EMPTY)
		emit(out, f, text, len);
	return (struct refusal){0};
}

/* ---- others -------------------------------------------------------------- */

struct refusal put_number(enum field f, long long number, int out)
{
	const struct field_rule *r = &rules[f];

	if (number < (long long)r->min || number > (long long)r->max)
		return refuse(400, "%s must be a number from %llu to %llu",
			      r->key, (unsigned long long)r->min,
			      (unsigned long long)r->max);
	emit_number(out, f, (uint64_t)number);
	return (struct refusal){0};
}

struct refusal put_seconds(enum field f, double seconds, int out)
{
	const struct field_rule *r = &rules[f];

	if (!(seconds >= (double)r->min / 1000 &&
	      seconds <= (double)r->max / 1000))
		return refuse(400, "%s must be seconds from %g to %g", r->key,
			      (double)r->min / 1000, (double)r->max / 1000);
	emit_number(out, f, (uint64_t)(seconds * 1000 + 0.5));
	return (struct refusal){0};
}

struct refusal put_truth(enum field f, bool truth, int out)
{
	const char byte = truth ? 1 : 0;

	emit(out, f, &byte, 1);
	return (struct refusal){0};
}

static struct refusal put_mode(enum field f, const char *text, int out)
{
	size_t len = strlen(text);

	if (len < 3 || len > 4 || strspn(text, "01234567") != len)
		return refuse(400, "bad %s '%.8s'", rules[f].key, text);
	emit_number(out, f, strtoul(text, NULL, 8));
	return (struct refusal){0};
}

struct refusal put_base64(enum field f, const char *text, size_t len, int out)
{
	AUTO_FREE char *copy = malloc(len + 1);
	const char *why;

	if (!copy)
		return refuse(413, "%s is too long", rules[f].key);
	memcpy(copy, text, len);
	copy[len] = '\0';
	why = base64_decode(copy, &len);
	if (why)
		return refuse(400, "%s: %s", rules[f].key, why);
	return put_text(f, copy, len, out);
}

/* ---- out of a query ------------------------------------------------------ */

static struct refusal put_commas(enum field f, char *text, int out)
{
	struct refusal no = {0};
	unsigned n = 0;
	bool more = true;

	while (more && !no.status) {
		char *end = text + strcspn(text, ",");

		more = *end != '\0';
		*end = '\0';
		if (++n > rules[f].most)
			return refuse(400, "more than %u %s", rules[f].most,
				      rules[f].key);
		no = put_text(f, text, strlen(text), out);
		text = end + 1;
	}
	return no;
}

static struct refusal put_query_seconds(enum field f, const char *text, int out)
{
	char *end;
	double seconds;

	if (!*text || strspn(text, "0123456789.") != strlen(text))
		return refuse(400, "%s is not a number", rules[f].key);
	seconds = strtod(text, &end);
	if (*end)
		return refuse(400, "%s is not a number", rules[f].key);
	return put_seconds(f, seconds, out);
}

static struct refusal put_query_truth(enum field f, const char *text, int out)
{
	bool truth = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

	if (!truth && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
		return refuse(400, "%s must be true or false", rules[f].key);
	return put_truth(f, truth, out);
}

struct refusal put_query(enum field f, char *text, int out)
{
	if (!utf8_ok(text, strlen(text)))
		return refuse(400, "%s is not UTF-8", rules[f].key);
	if (rules[f].kind == KIND_TEXTS)
		return put_commas(f, text, out);
	if (rules[f].kind == KIND_SECONDS)
		return put_query_seconds(f, text, out);
	if (rules[f].kind == KIND_TRUTH)
		return put_query_truth(f, text, out);
	if (rules[f].kind == KIND_MODE)
		return put_mode(f, text, out);
	return put_text(f, text, strlen(text), out);
}

/* ---- what the parent believes -------------------------------------------- */

bool field_ok(enum field f, const char *data, size_t len)
{
	const struct field_rule *r = &rules[f];
	uint64_t number;

	switch ((int)r->kind) {
	case KIND_NONE:
	case KIND_IGNORED:
	case KIND_FILES:
	case KIND_EMPTY:
		return false;
	case KIND_NUMBER:
	case KIND_SECONDS:
	case KIND_MODE:
		memcpy(&number, data, len == 8 ? 8 : 0);
		return len == 8 && number >= r->min && number <= r->max;
	case KIND_TRUTH:
		return len == 1 && (unsigned char)*data <= 1;
	case KIND_DATA:
	case KIND_BASE64:
		return len <= r->max;
	default:
		return len >= shortest(r) && len <= longest(r) &&
		       !memchr(data, '\0', len) && utf8_ok(data, len) &&
		       form_ok(r, data);
	}
}
