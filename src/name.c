/*
 * name.c - the one place that says what a name is.
 */
#include "ark.h"

/* Not isalnum(3): its answer depends on the locale. */
static bool alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

bool name_ok(const char *name)
{
	size_t len = 0;

	if (!alnum(name[0]))
		return false;
	for (; name[len]; len++) {
		char c = name[len];

		if (len == NAME_MAX_LEN)
			return false;
		if (!alnum(c) && c != '_' && c != '.' && c != '-')
			return false;
	}
	return true;
}

int check_name(const char *kind, const char *name)
{
	if (name_ok(name))
		return 0;
	if (strlen(name) > NAME_MAX_LEN)
		return fail(EX_USAGE, "bad %s name '%.40s...': longer than %d",
			    kind, name, NAME_MAX_LEN);
	return fail(EX_USAGE,
		    "bad %s name '%s': letters, digits and _.- only, the "
		    "first a letter or digit",
		    kind, name);
}
