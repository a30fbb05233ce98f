/*
 * spec.c - parse the options that say how a sandbox is made.
 */
#include "spec.h"

static uint64_t size_of(const char *option, const char *text)
{
	const char *why;
	uint64_t bytes;

	if (!parse_size(text, &bytes, &why))
		die(EX_USAGE, "bad %s '%s': %s", option, text, why);
	if (bytes == 0)
		die(EX_USAGE, "bad %s '%s': zero", option, text);
	return bytes;
}

void spec_cpus(struct sandbox_spec *spec, const char *text)
{
	const char *why;
	long long number;

	if (!parse_num(text, 1, 255, &number, &why))
		die(EX_USAGE, "bad --cpus '%s': %s", text, why);
	spec->cpus = (unsigned)number;
}

void spec_memory(struct sandbox_spec *spec, const char *text)
{
	spec->memory = size_of("--memory", text);
}

void spec_disk(struct sandbox_spec *spec, const char *text)
{
	spec->disk_size = size_of("--disk", text);
}

void spec_publish(struct sandbox_spec *spec, const char *text)
{
	const char *why;
	int n;

	if (!spec->ports)
		spec->ports = calloc(PORTS_MAX, sizeof(*spec->ports));
	if (!spec->ports)
		die(EX_OSERR, "no memory");
	n = port_parse(text, spec->ports + spec->n_ports,
		       PORTS_MAX - spec->n_ports, &why);
	if (n <= 0)
		die(EX_USAGE, "bad --publish '%s': %s", text, why);
	for (size_t i = spec->n_ports; i < spec->n_ports + (size_t)n; i++)
		for (size_t j = 0; j < i; j++)
			if (spec->ports[i].host &&
			    port_clash(&spec->ports[i], &spec->ports[j]))
				die(EX_USAGE,
				    "bad --publish '%s': port %u "
				    "is published already",
				    text, spec->ports[i].host);
	spec->n_ports += (size_t)n;
}

void spec_policy(struct sandbox_spec *spec, const char *text)
{
	if (strcmp(text, "open") != 0 && strcmp(text, "none") != 0)
		die(EX_USAGE, "bad --policy '%s': open or none", text);
	spec->policy = text;
}

/* Rates are decimal, as everybody's network is: 10M is ten million bits. */
void spec_net_rate(struct sandbox_spec *spec, const char *text)
{
	static const char units[] = "kMG";
	size_t digits = strspn(text, "0123456789");
	uint64_t unit = 1;
	char number[16];
	const char *why = "not a rate (try 10M)";
	const char *suffix = text + digits, *found;
	long long value;

	if (digits == 0 || digits >= sizeof(number))
		die(EX_USAGE, "bad --net-rate '%s': %s", text, why);
	memcpy(number, text, digits);
	number[digits] = '\0';
	found = *suffix ? strchr(units, *suffix) : NULL;
	for (const char *u = units; found && u <= found; u++)
		unit *= 1000;
	if (*suffix && (!found || suffix[1]))
		die(EX_USAGE, "bad --net-rate '%s': %s", text, why);
	if (!parse_num(number, 1, 1000000000000 / (long long)unit, &value,
		       &why) ||
	    (uint64_t)value * unit < 8000)
		die(EX_USAGE, "bad --net-rate '%s': between 8k and 1000G",
		    text);
	spec->net_rate = (uint64_t)value * unit;
}

/* Below a megabyte a second a guest's disk stands still, and with it its VMM in
 * system calls that no signal ends. */
void spec_io_rate(struct sandbox_spec *spec, const char *text)
{
	uint64_t rate = size_of("--io-rate", text);

	if (rate < 1 << 20 || rate > 1ULL << 40)
		die(EX_USAGE, "bad --io-rate '%s': between 1M and 1T", text);
	spec->io_rate = rate;
}

void spec_ttl(struct sandbox_spec *spec, const char *text)
{
	const char *why;
	uint64_t ms;

	if (!parse_duration(text, &ms, &why))
		die(EX_USAGE, "bad --ttl '%s': %s", text, why);
	if (ms < 1000 || ms % 1000)
		die(EX_USAGE, "bad --ttl '%s': not whole seconds", text);
	spec->ttl = ms / 1000;
}
