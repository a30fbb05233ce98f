/*
 * rest-net.c - published ports and the policy.
 */
#include "rest.h"

#include <ctype.h>

static int answer_network(const struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_COMMAND struct command cmd = {0};
	json_t *shown, *policy, *address;
	int r = open_vm(c, &s);

	if (r)
		return r;
	command_add(&cmd, "ark-net");
	command_add(&cmd, "show");
	command_add(&cmd, "--json");
	command_add(&cmd, c->full);
	r = command_run(&cmd);
	if (r)
		return answer_failure(c, r, cmd.why);
	shown = json_loads(cmd.output, 0, NULL);
	policy = json_incref(json_object_get(shown, "policy"));
	address = json_incref(json_object_get(shown, "address"));
	json_decref(shown);
	if (!policy || !address)
		return answer_error(500, NULL, "ark-net says nothing");
	return answer_json(200, json_pack("{s:o,s:o,s:o}", "address", address,
					  "policy", policy, "portForwards",
					  ports_json(&s)));
}

int rest_ports(struct call *c)
{
	return answer_network(c);
}

/* ark-net VERB NAME WORD */
static int change(struct call *c, const char *verb, const char *word)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_COMMAND struct command cmd = {0};
	int r = open_vm(c, &s);

	if (r)
		return r;
	command_add(&cmd, "ark-net");
	command_add(&cmd, verb);
	command_add(&cmd, c->full);
	command_add(&cmd, word);
	r = command_run(&cmd);
	return r ? answer_failure(c, r, cmd.why) : 0;
}

static const char *or_empty(const char *text)
{
	return text ? text : "";
}

int rest_publish(struct call *c)
{
	char spec[160];
	int r;

	port_spec(spec, sizeof(spec), or_empty(call_text(c, F_ADDRESS)),
		  or_empty(call_text(c, F_HOST_PORT)),
		  call_text(c, F_GUEST_PORT),
		  or_empty(call_text(c, F_PROTOCOL)),
		  or_empty(call_text(c, F_DESCRIPTION)));
	r = check_publish(c, spec);
	if (r == 0)
		r = change(c, "publish", spec);
	return r ? r : answer_network(c);
}

int rest_unpublish(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	AUTO_FREE struct port *ports = calloc(PORTS_MAX, sizeof(*ports));
	const char *protocol = or_empty(call_text(c, F_PROTOCOL)), *why;
	bool udp = strcmp(protocol, "udp") == 0;
	char word[24];
	long long port;
	int n, r = open_vm(c, &s);

	if (r)
		return r;
	if (!parse_num(c->id, 1, 65535, &port, &why))
		return answer_error(400, NULL, "bad port '%s': %s", c->id, why);
	n = ports ? ports_read(s.slot ? s.run : s.dir,
			       s.slot ? "ports" : "publish", ports, PORTS_MAX)
		  : 0;
	while (--n >= 0)
		if (ports[n].host == port && ports[n].udp == udp)
			break;
	if (n < 0)
		return answer_error(404, NULL, "'%s' does not publish %lld/%s",
				    c->name, port, udp ? "udp" : "tcp");
	snprintf(word, sizeof(word), "%lld%s", port, udp ? "/udp" : "");
	r = change(c, "unpublish", word);
	return r ? r : answer_success();
}

int rest_policy(struct call *c)
{
	AUTO_SANDBOX struct sandbox s = SANDBOX_NONE;
	char policy[16];
	struct conf conf;
	int r = open_vm(c, &s);

	if (r)
		return r;
	if (read_value(s.dir, "policy", policy, sizeof(policy)) < 0) {
		if (conf_load(&conf) < 0)
			return answer_failure(c, EX_CONFIG, last_message());
		snprintf(policy, sizeof(policy), "%s", conf.policy);
	}
	return answer_json(200, json_pack("{s:s}", "policy", policy));
}

int rest_set_policy(struct call *c)
{
	int r = change(c, "policy", call_text(c, F_POLICY));

	return r ? r : rest_policy(c);
}
