/*
 * cgi-body.c - a JSON body as fields.  Runs in the cage.
 *
 * jansson parses; before it sees a byte, depth and number of values are
 * counted, because its recursion and its tables grow with them.  A key that
 * comes twice is refused: whoever checks and whoever acts might each take
 * another one.  Keys that an operation of Arrakis does not know are ignored,
 * as the clients that exist expect; in all others they are an error.
 */
#include "cgi.h"

static struct refusal put_string(enum field f, const json_t *value, int out)
{
	if (!json_is_string(value))
		return refuse(400, "%s is not a string", field_rule(f)->key);
	return put_text(f, json_string_value(value), json_string_length(value),
			out);
}

/* A number stands for itself where a text may stand as well. */
static struct refusal put_either(enum field f, const json_t *value, int out)
{
	char text[24];

	if (!json_is_integer(value))
		return put_string(f, value, out);
	snprintf(text, sizeof(text), "%lld",
		 (long long)json_integer_value(value));
	return put_text(f, text, strlen(text), out);
}

static struct refusal put_whole(enum field f, const json_t *value, int out)
{
	if (!json_is_integer(value))
		return refuse(400, "%s is not a whole number",
			      field_rule(f)->key);
	return put_number(f, json_integer_value(value), out);
}

static struct refusal put_time(enum field f, const json_t *value, int out)
{
	if (!json_is_number(value))
		return refuse(400, "%s is not a number", field_rule(f)->key);
	return put_seconds(f, json_number_value(value), out);
}

static struct refusal put_boolean(enum field f, const json_t *value, int out)
{
	if (!json_is_boolean(value))
		return refuse(400, "%s is neither true nor false",
			      field_rule(f)->key);
	return put_truth(f, json_is_true(value), out);
}

static struct refusal put_coded(enum field f, const json_t *value, int out)
{
	if (!json_is_string(value))
		return refuse(400, "%s is not a string", field_rule(f)->key);
	return put_base64(f, json_string_value(value),
			  json_string_length(value), out);
}

/* ---- what is made of several --------------------------------------------- */

typedef struct refusal (*put_one)(enum field f, const json_t *value, int out);

static struct refusal put_list(enum field f, const json_t *value, int out,
			       put_one put)
{
	const struct field_rule *r = field_rule(f);
	struct refusal no = {0};

	if (!json_is_array(value))
		return refuse(400, "%s is not a list", r->key);
	if (json_array_size(value) == 0)
		return refuse(400, "%s must not be empty", r->key);
	if (json_array_size(value) > r->most)
		return refuse(400, "more than %u %s", r->most, r->key);
	for (size_t i = 0; i < json_array_size(value) && !no.status; i++)
		no = put(f, json_array_get(value, i), out);
	return no;
}

static struct refusal put_variable(enum field f, const char *name,
				   const json_t *value, int out)
{
	size_t size = strlen(name) + json_string_length(value) + 2;
	AUTO_FREE char *text = malloc(size);

	if (!json_is_string(value) || !text)
		return refuse(400, "%s: '%.64s' is not a string",
			      field_rule(f)->key, name);
	if (strchr(name, '='))
		return refuse(400, "bad %s '%.64s'", field_rule(f)->key, name);
	snprintf(text, size, "%s=", name);
	/* With the NUL at its end; those in it are refused below. */
	memcpy(text + strlen(text), json_string_value(value),
	       json_string_length(value) + 1);
	return put_text(f, text, size - 1, out);
}

static struct refusal put_map(enum field f, json_t *value, int out)
{
	struct refusal no = {0};
	const char *key;
	json_t *each;

	if (!json_is_object(value))
		return refuse(400, "%s is not an object", field_rule(f)->key);
	if (json_object_size(value) > field_rule(f)->most)
		return refuse(400, "more than %u in %s", field_rule(f)->most,
			      field_rule(f)->key);
	json_object_foreach(value, key, each)
	{
		no = put_variable(f, key, each, out);
		if (no.status)
			break;
	}
	return no;
}

static struct refusal put_file(enum field f, const json_t *value, int out)
{
	const json_t *path = json_object_get(value, "path");
	const json_t *text = json_object_get(value, "content");
	const json_t *coded = json_object_get(value, "contentBase64");
	const json_t *mode = json_object_get(value, "mode");
	struct refusal no;
	char octal[16] = "0644";

	(void)f;
	if (!path || !text == !coded)
		return refuse(400, "a file needs path and one of content and "
				   "contentBase64");
	no = put_string(F_FILE_PATH, path, out);
	if (mode)
		snprintf(octal, sizeof(octal), "%s",
			 json_is_string(mode) ? json_string_value(mode) : "?");
	if (!no.status)
		no = put_query(F_FILE_MODE, octal, out);
	if (no.status)
		return no;
	return text ? put_string(F_CONTENT, text, out)
		    : put_coded(F_CONTENT, coded, out);
}

/* A part of a port as text, "" when it is not there; checked as the field of
 * its own is. */
static struct refusal port_part(enum field f, const json_t *object,
				char out[32])
{
	const json_t *value = json_object_get(object, field_rule(f)->key);

	*out = '\0';
	if (!value)
		return (struct refusal){0};
	if (json_is_integer(value))
		snprintf(out, 32, "%lld", (long long)json_integer_value(value));
	else if (json_is_string(value) && json_string_length(value) < 32 &&
		 strlen(json_string_value(value)) == json_string_length(value))
		snprintf(out, 32, "%s", json_string_value(value));
	else
		return refuse(400, "bad %s of a port", field_rule(f)->key);
	if (!field_ok(f, out, strlen(out)))
		return refuse(400, "bad %s '%s'", field_rule(f)->key, out);
	return (struct refusal){0};
}

static struct refusal put_port(enum field f, const json_t *value, int out)
{
	static const enum field parts[] = {F_ADDRESS, F_HOST_PORT, F_GUEST_PORT,
					   F_PROTOCOL, F_DESCRIPTION};
	char part[ARRAY_LEN(parts)][32], text[200];
	struct refusal no = {0};
	const char *key;
	json_t *each;

	if (!json_is_object(value))
		return refuse(400, "a port is an object with guestPort");
	json_object_foreach((json_t *)(uintptr_t)value, key, each)
	{
		size_t i = 0;

		while (i < ARRAY_LEN(parts) &&
		       strcmp(field_rule(parts[i])->key, key) != 0)
			i++;
		if (i == ARRAY_LEN(parts))
			return refuse(400, "unknown field '%s'", key);
	}
	for (size_t i = 0; i < ARRAY_LEN(parts) && !no.status; i++)
		no = port_part(parts[i], value, part[i]);
	if (no.status)
		return no;
	if (!*part[2])
		return refuse(400, "guestPort must be given");
	port_spec(text, sizeof(text), part[0], part[1], part[2], part[3],
		  part[4]);
	return put_text(f, text, strlen(text), out);
}

/* None at all is an answer, too: not even those that the image declares. */
static struct refusal put_ports(enum field f, const json_t *value, int out)
{
	if (json_is_array(value) && json_array_size(value) == 0)
		return put_text(f, "", 0, out);
	return put_list(f, value, out, put_port);
}

void port_spec(char *out, size_t size, const char *address, const char *host,
	       const char *guest, const char *protocol, const char *what)
{
	/* Without a port of the host it is one of the loopback. */
	if (!*host && strcmp(address, "127.0.0.1") == 0)
		address = "";
	snprintf(out, size, "%s%s%s%s%s%s%s%s", address, *address ? ":" : "",
		 host, *host ? ":" : "", guest,
		 strcmp(protocol, "udp") == 0 ? "/udp" : "", *what ? "=" : "",
		 what);
}

/* ---- the body ------------------------------------------------------------ */

static struct refusal put_value(enum field f, json_t *value, int out)
{
	switch ((int)field_rule(f)->kind) {
	case KIND_BASE64:
		return put_coded(f, value, out);
	case KIND_NUMBER:
		return put_whole(f, value, out);
	case KIND_SECONDS:
		return put_time(f, value, out);
	case KIND_TRUTH:
		return put_boolean(f, value, out);
	case KIND_SIZE:
	case KIND_PORT:
		return put_either(f, value, out);
	case KIND_TEXTS:
		return put_list(f, value, out, put_string);
	case KIND_MAP:
		return put_map(f, value, out);
	case KIND_FILES:
		return put_list(f, value, out, put_file);
	case KIND_PORTS:
		return put_ports(f, value, out);
	case KIND_IGNORED:
		return (struct refusal){0};
	default:
		return put_string(f, value, out);
	}
}

/* Brackets and commas outside of strings. */
static struct refusal measure(const char *text, size_t len)
{
	int depth = 0;
	size_t values = 1;
	bool string = false;

	for (size_t i = 0; i < len; i++) {
		if (string && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			string = !string;
		else if (!string && (text[i] == '{' || text[i] == '['))
			depth++;
		else if (!string && (text[i] == '}' || text[i] == ']'))
			depth--;
		else if (!string && (text[i] == ',' || text[i] == ':'))
			values++;
		if (depth > CGI_DEPTH_MAX)
			return refuse(400, "JSON deeper than %d",
				      CGI_DEPTH_MAX);
		if (values > CGI_VALUES_MAX)
			return refuse(400, "JSON of more than %d values",
				      CGI_VALUES_MAX);
	}
	return (struct refusal){0};
}

static struct refusal take_object(json_t *object, const struct route *r,
				  int out, uint64_t *seen)
{
	struct refusal no = {0};
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		enum field f = route_field(r, key);

		if (f == F_NONE && r->flags & ROUTE_V1)
			no = refuse(400, "unknown field '%s'", key);
		else if (f != F_NONE)
			no = put_value(f, value, out);
		if (no.status)
			break;
		*seen |= 1ULL << f;
	}
	return no;
}

struct refusal body_fields(char *text, size_t len, const struct route *r,
			   int out, uint64_t *seen)
{
	struct refusal no = measure(text, len);
	json_error_t error;
	json_t *object;

	if (no.status)
		return no;
	object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
	if (!object && json_error_code(&error) == json_error_duplicate_key)
		return refuse(400, "a key of the JSON comes twice");
	if (!object)
		return refuse(400, "bad JSON at byte %d", error.position);
	if (!json_is_object(object))
		no = refuse(400, "the JSON is not an object");
	else
		no = take_object(object, r, out, seen);
	json_decref(object);
	return no;
}
