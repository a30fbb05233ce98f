# The clients of Arrakis, unmodified, against the endpoint.

load ../helper
load ../rest/rest

setup_file() {
	ark_files mini
}

teardown_file() {
	serve_end
	ark_end
}

teardown() {
	local names
	serve_end
	mapfile -t names < <(ark snaps -q)
	[ "${#names[@]}" = 0 ] || ark-snap rm "${names[@]}"
	rm_all
}

flow() { # BASE
	run timeout 240 "$ARK_COMPAT/bin/python" "$tests/compat/flow.py" "$1"
	if [ "$status" != 0 ] || grep -q '^not ok' <<<"$output"; then
		grep -v '^ok' <<<"$output"
		false
	fi
	[[ $output == *$'\n1..'* ]]
}

@test "py-arrakis without authentication" {
	echo 'auth = none' >>"$ARK_CONF"
	serve
	flow "$base"
	sed -i '/^auth/d' "$ARK_CONF"
}

@test "py-arrakis with a token in its address" {
	token=$(ark auth add compat)
	serve
	flow "http://any:$token@$address"
	ark auth rm -f compat
}
