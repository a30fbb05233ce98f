# Tenants of the REST endpoint: who may, what they see, how much they get, and
# what is written down about it.

load helper
load rest/rest

setup_file() {
	ark_files mini
	host=$(ark auth add --scope admin host)
	acme=$(ark auth add acme)
	evil=$(ark auth add evil)
	export host acme evil
	serve
	token=$acme wants 200 POST /v1/vms '{"vmName":"work"}'
	token=$acme wants 200 POST /v1/vms/work/snapshots \
		'{"snapshotId":"ready"}'
}

teardown_file() {
	serve_end
	ark_end
}

setup() {
	token=$acme
	promtool=$tree/build/promtool/promtool
}

# Everything but acme's `work` and `ready`, and no limits.
teardown() {
	keep acme.work acme.ready
	ark auth quota acme sandboxes=none,cpus=none,memory=none,disk=none
	ark auth quota acme snapshots=none,execs=none,rate=none,burst=none
}

as() { # TOKEN STATUS METHOD PATH [BODY ...]
	local token=$1
	shift
	wants "$@"
}

@test "every operation wants a token, and one that may" {
	read=$(ark auth add --scope read probe/read)
	exec=$(ark auth add --scope exec probe/exec)
	manage=$(ark auth add --scope manage probe/manage)
	run "$rest/contract" scopes "$base" "$read" "$exec" "$manage"
	ark auth rm -f probe
	[ "$status" = 0 ] || { grep -v ^ok <<<"$output"; false; }
}

@test "Bearer and Basic, in any case; anything else is nobody" {
	token=
	wants 200 GET /v1/vms '' -H "Authorization: bearer $acme"
	wants 200 GET /v1/vms '' -H "Authorization: Bearer  $acme"
	# As requests does it for http://user:token@host.
	wants 200 GET /v1/vms '' -u "any:$acme"
	wants 200 GET /v1/vms '' -u ":$acme"
	wants 200 GET /v1/vms '' -H "authorization: BASIC $(printf ':%s' "$acme" | base64 -w0)"
	for value in "$acme" "Token $acme" 'Bearer' 'Bearer ' 'Basic' 'Basic !' \
		"Bearer $acme x" "Bearer ${acme%?}" "Bearer ${acme}0" \
		"Bearer ${acme^^}" "Basic $(printf '%s' "$acme" | base64 -w0)" \
		"Basic $(printf '%s:' "$acme" | base64 -w0)" \
		"Digest username=$acme" 'Bearer ../../auth/acme'; do
		wants 401 GET /v1/vms '' -H "Authorization: $value"
		is .error.code unauthorized
		[ -n "$(header WWW-Authenticate)" ]
	done
	wants 401 GET "/v1/vms?token=$acme"
	wants 401 GET /v1/vms '' -H "Cookie: token=$acme"
	# Two of them: never the better one.
	api GET /v1/vms '' -H 'Authorization: Bearer x' \
		-H "Authorization: Bearer $acme"
	[ "$status" = 400 ] || [ "$status" = 401 ]
	# Before the body is looked at, and for what does not exist.
	wants 401 POST /v1/vms '{'
	wants 401 GET /v1/vms/nothing
	wants 200 GET /v1/health
}

@test "a tenant sees what is its own, under its own names" {
	as "$evil" 200 GET /v1/vms
	equal "$body" '{"vms":[]}'
	as "$evil" 200 GET /v1/snapshots
	equal "$body" '{"snapshots":[]}'
	for name in work acme.work ../acme.work acme%2ework acme.work%00 \
		.acme.work; do
		for call in "GET /v1/vms/$name" "DELETE /v1/vms/$name" \
			"GET /v1/vms/$name/logs" "POST /v1/vms/$name/pause" \
			"POST /v1/vms/$name/snapshots" \
			"GET /v1/vms/$name/ports" "GET /v1/vms/$name/execs" \
			"GET /v1/vms/$name/file?path=/etc/passwd" \
			"POST /v1/vms/$name/fork" "GET /v1/vms/$name/wait" \
			"GET /v1/vms/$name/files?paths=x"; do
			token=$evil api $call
			[ "$status" = 404 ] || [ "$status" = 400 ] || {
				echo "$call: $status $body"
				false
			}
			# "No such" is what it says, and nothing of whose it is.
			[ "$status" = 400 ] || is .error.code not_found
		done
		as "$evil" "$status" GET "/v1/vms/$name"
	done
	for name in ready acme.ready; do
		as "$evil" 404 POST /v1/vms "{\"vmName\":\"x\",\"snapshotId\":\"$name\"}"
		as "$evil" 404 GET "/v1/snapshots/$name"
		as "$evil" 404 DELETE "/v1/snapshots/$name"
		as "$evil" 404 POST "/v1/snapshots/$name/fork"
		as "$evil" 404 POST "/v1/snapshots/$name/verify"
	done
	as "$evil" 200 GET /v1/snapshots/tree
	is '.tree | length' 0
	# The same names, for both; images for all.
	as "$evil" 200 POST /v1/vms '{"vmName":"work","start":false}'
	as "$evil" 200 GET /v1/images
	is '.images[0].name' mini
	as "$evil" 200 DELETE /v1/vms
	as "$evil" 200 GET /v1/vms
	is '.vms | length' 0
	as "$acme" 200 GET /v1/vms
	is '.vms[].vmName' work
	as "$acme" 200 GET /v1/snapshots
	is '.snapshots[] | .snapshotId + " " + .vmName' 'ready work'
	# The host sees all, as they are on the disk.
	as "$host" 200 GET /v1/vms
	is '.vms[].vmName' acme.work
	as "$host" 200 GET /v1/vms/acme.work
	as "$host" 404 GET /v1/vms/work
	equal "$(ark ps -q)" acme.work
}

@test "no answer tells a tenant the name on the disk" {
	# shellcheck disable=SC2089,SC2090 # words, the last one JSON
	for call in 'GET /v1/vms' 'GET /v1/vms/work' 'GET /v1/vms/nothing' \
		'POST /v1/vms {"vmName":"work"}' \
		'POST /v1/vms {"vmName":"x","snapshotId":"nothing"}' \
		'POST /v1/vms/work/snapshots {"snapshotId":"ready"}' \
		'POST /v1/vms/work/snapshots' 'GET /v1/snapshots' \
		'GET /v1/snapshots/ready' 'GET /v1/snapshots/tree' \
		'GET /v1/snapshots/nothing' 'POST /v1/snapshots/ready/verify' \
		'POST /v1/snapshots/ready/fork' 'POST /v1/vms/work/fork' \
		'POST /v1/snapshots/ready/fork {"name":"n"}' \
		'POST /v1/vms {"vmName":"cold","start":false}' \
		'POST /v1/vms/cold/pause' 'GET /v1/vms/cold/execs' \
		'POST /v1/vms/cold/exec {"argv":["true"]}' \
		'PUT /v1/vms/work/disk {"size":"2G"}' \
		'GET /v1/vms/work/wait?timeout=0.1' \
		'GET /v1/vms/work/file?path=/nothing' \
		'GET /v1/vms/work/execs/9999/logs' \
		'POST /v1/vms/work/ports {"guestPort":"80"}' \
		'DELETE /v1/vms/work/ports/9'; do
		api $call
		[[ $body != *acme* ]] || { echo "$call: $body"; false; }
		! grep -q acme "$head"
	done
	# Forks are numbered in its own names.
	[[ $(ark ps -q | sort | tr '\n' ' ') == \
		'acme.cold acme.n-1 acme.ready-1 acme.work acme.work-'*' ' ]]
}

@test "a name has 63 characters with the tenant's" {
	long=$(printf 'x%.0s' {1..58})
	wants 200 POST /v1/vms "{\"vmName\":\"$long\",\"start\":false}"
	wants 200 GET "/v1/vms/$long"
	is .vmName "$long"
	wants 400 POST /v1/vms "{\"vmName\":\"${long}x\",\"start\":false}"
	wants 400 POST /v1/vms/work/snapshots "{\"snapshotId\":\"${long}x\"}"
	wants 400 POST /v1/snapshots/ready/fork "{\"name\":\"$long\"}"
}

@test "the host's addresses and low ports are the host's" {
	wants 403 POST /v1/vms/work/ports \
		'{"guestPort":"80","hostPort":"8080","address":"0.0.0.0"}'
	wants 403 POST /v1/vms/work/ports '{"guestPort":"80","hostPort":"80"}'
	wants 403 POST /v1/vms '{"vmName":"p","start":false,
		"ports":[{"guestPort":"80","hostPort":"8080","address":"0.0.0.0"}]}'
	as "$host" 200 POST /v1/vms/acme.work/ports \
		'{"guestPort":"80","address":"0.0.0.0","hostPort":"81"}'
	as "$host" 200 DELETE /v1/vms/acme.work/ports/81
	wants 403 GET /metrics
	is .error.code forbidden
}

@test "tokens: printed once, kept as a hash, rotated, removed" {
	one=$(ark auth add --scope read temp)
	expect fail ark auth add temp
	two=$(ark auth add temp/ci)
	as "$one" 200 GET /v1/vms
	as "$one" 403 DELETE /v1/vms
	as "$two" 200 DELETE /v1/vms
	new=$(ark auth rotate temp)
	as "$one" 401 GET /v1/vms
	as "$new" 403 DELETE /v1/vms
	expect 0 ark auth ls --json
	[[ $stdout != *"$new"* ]]
	[[ $stdout == *temp* ]]
	ark auth rm temp/ci
	as "$two" 401 GET /v1/vms
	as "$new" 200 GET /v1/vms
	ark auth rm temp
	as "$new" 401 GET /v1/vms
	# Nowhere on the disk, in no log, in nobody's words or environment.
	for secret in "$new" "$acme"; do
		run grep -rlF "$secret" "$ARK_ROOT" "$ARK_RUN" \
			"$work/serve.log"
		equal "$output" ''
		expect 0 ark auth ls
		[[ $stdout != *"$secret"* ]]
	done
	equal "$(stat -c %a "$ARK_ROOT/auth")" 700
	for bad in '' ../x .x Acme a.b 1a "$(printf 'x%.0s' {1..21})" -x 'a b'; do
		expect 64 ark auth add -- "$bad"
	done
	expect 64 ark auth add --scope admin other
	expect 64 ark auth add --scope all other
	expect 64 ark auth add --quota sandboxes=-1 other
	equal "$(ark auth ls --json | jq -r .tenant | sort -u | tr '\n' ' ')" \
		'acme evil host '
}

refused() { # KIND LIMIT USED
	is .error.code quota && is .error.quota.name "$1" &&
		is .error.quota.limit "$2" && is .error.quota.used "$3" &&
		[ "$(header Retry-After)" -ge 1 ]
}

@test "quotas: sandboxes, cpus, memory, disk, snapshots, with the numbers" {
	ark auth quota acme sandboxes=2
	wants 200 POST /v1/vms '{"vmName":"x","start":false}'
	wants 429 POST /v1/vms '{"vmName":"y","start":false}'
	refused sandboxes 2 2
	wants 429 POST /v1/vms '{"vmName":"y","snapshotId":"ready"}'
	wants 429 POST /v1/snapshots/ready/fork '{"count":1}'
	wants 200 DELETE /v1/vms/x
	# Two fit no more where one is: none of them is there then.
	wants 429 POST /v1/snapshots/ready/fork '{"count":2}'
	equal "$(ark ps -q)" acme.work
	wants 200 POST /v1/snapshots/ready/fork '{"count":1}'
	wants 200 DELETE /v1/vms/ready-1
	# Others have their own.
	as "$evil" 200 POST /v1/vms '{"vmName":"x","start":false}'
	as "$evil" 200 POST /v1/vms '{"vmName":"y","start":false}'
	ark auth quota acme sandboxes=none,cpus=3
	wants 200 POST /v1/vms '{"vmName":"x","start":false,"cpus":2}'
	wants 429 POST /v1/vms '{"vmName":"y","start":false}'
	refused cpus 3 3
	wants 200 DELETE /v1/vms/x
	ark auth quota acme cpus=none,memory=600M
	wants 200 POST /v1/vms '{"vmName":"x","start":false,"memory":"300M"}'
	wants 429 POST /v1/vms '{"vmName":"y","start":false,"memory":"64M"}'
	refused memory $((600 << 20)) $((556 << 20))
	wants 429 POST /v1/vms '{"vmName":"y","snapshotId":"ready"}'
	wants 200 DELETE /v1/vms/x
	ark auth quota acme memory=none,disk=4G
	wants 200 POST /v1/vms '{"vmName":"x","start":false,"disk":"1G"}'
	wants 429 POST /v1/vms '{"vmName":"y","start":false,"disk":"3G"}'
	is .error.quota.name disk
	wants 429 PUT /v1/vms/x/disk '{"size":"4G"}'
	is .error.quota.name disk
	wants 200 DELETE /v1/vms/x
	ark auth quota acme disk=none,snapshots=2
	wants 200 POST /v1/vms/work/snapshots '{"snapshotId":"s2"}'
	wants 429 POST /v1/vms/work/snapshots '{"snapshotId":"s3"}'
	refused snapshots 2 2
	wants 429 POST /v1/vms/work/fork '{"count":1}'
	equal "$(ark ps -q | grep acme)" acme.work
	wants 200 DELETE /v1/snapshots/s2
	wants 200 POST /v1/vms/work/snapshots '{"snapshotId":"s3"}'
}

@test "quotas hold for many at once, and after kill -9" {
	ark auth quota acme sandboxes=4
	asked=()
	for i in 1 2 3 4 5 6 7 8 9; do
		curl -s -m 60 -o /dev/null -w '%{http_code}\n' \
			-H "Authorization: Bearer $acme" \
			-d "{\"vmName\":\"p$i\",\"start\":false}" \
			"$base/v1/vms" >"$BATS_TEST_TMPDIR/$i" &
		asked+=($!)
	done
	wait "${asked[@]}"
	equal "$(cat "$BATS_TEST_TMPDIR"/[1-9] | sort | uniq -c |
		awk '{ print $1, $2 }')" $'3 200\n6 429'
	equal "$(ark ps -q | grep -c '^acme')" 4
	mapfile -t names < <(ark ps -q | grep -vx acme.work)
	ark rm -f "${names[@]}"
	for delay in 0.1 0.4; do
		curl -s -m 60 -o /dev/null -H "Authorization: Bearer $acme" \
			-d '{"vmName":"k","snapshotId":"ready"}' "$base/v1/vms" &
		sleep "$delay"
		kill_requests
		wait "$!" || :
		soon 15 healthy || { serve_end || :; serve; }
		ark gc
		soon 20 ark rm -f acme.k
		ark gc
		# All of it is there again, and not one more.
		for i in 1 2 3; do
			wants 200 POST /v1/vms "{\"vmName\":\"q$i\",\"start\":false}"
		done
		wants 429 POST /v1/vms '{"vmName":"q4","start":false}'
		refused sandboxes 4 4
		ark rm -f acme.q1 acme.q2 acme.q3
	done
}

@test "quotas: execs at once, requests per second" {
	ark auth quota acme execs=2
	asked=()
	for i in 1 2; do
		curl -s -m 30 -o /dev/null -H "Authorization: Bearer $acme" \
			-d '{"argv":["sleep","4242"]}' \
			"$base/v1/vms/work/exec" &
		asked+=($!)
	done
	soon 10 two_sleep
	wants 429 POST /v1/vms/work/exec '{"argv":["true"]}'
	refused execs 2 2
	wants 429 POST /v1/vms/work/cmd '{"cmd":"true"}'
	wants 200 GET /v1/vms/work
	kill "${asked[@]}"
	wait "${asked[@]}" || :
	soon 10 api_ok POST /v1/vms/work/exec '{"argv":["true"]}'
	ark auth quota acme execs=none,rate=1,burst=3
	# All at once, so that a busy machine does not slow it down enough.
	curl -s -m 30 --parallel --parallel-max 12 \
		-H "Authorization: Bearer $acme" -o "$BATS_TEST_TMPDIR/#1" \
		-w '%{http_code}\n' "$base/v1/vms/no[1-12]" \
		>"$BATS_TEST_TMPDIR/statuses"
	[ "$(grep -c 404 "$BATS_TEST_TMPDIR/statuses")" -ge 3 ]
	[ "$(grep -c 429 "$BATS_TEST_TMPDIR/statuses")" -ge 3 ]
	wants 429 GET /v1/vms/nothing
	is .error.code rate
	is .error.quota.name rate
	is .error.quota.limit 1
	[ "$(header Retry-After)" -ge 1 ]
	after=$(header Retry-After)
	# Others are not slowed down by it, and it passes.
	for i in {1..12}; do
		as "$evil" 404 GET /v1/vms/nothing
	done
	sleep "$after"
	wants 404 GET /v1/vms/nothing
}

two_sleep() {
	[ "$(left work 'sleep 4242' 2>/dev/null | wc -l)" = 2 ] ||
		[ "$(left acme.work 'sleep 4242' | grep -c 'sleep 4242')" = 2 ]
}

api_ok() {
	api "$@"
	[ "$status" = 200 ]
}

log() {
	ark audit show --json
}

@test "audit: a line for what changes and what runs, no secret, no output" {
	before=$(log | wc -l)
	wants 200 GET /v1/vms
	wants 200 GET /v1/vms/work
	wants 200 GET /v1/health
	equal "$(log | wc -l)" "$before" 'reading is no change'
	wants 200 POST /v1/vms/work/exec '{"argv":["sh","-c","echo s3cret-out"],
		"env":{"PASS":"s3cret-env"},"stdin":"s3cret-in"}'
	equal "$(log | wc -l)" $((before + 1))
	line=$(log | tail -n 1)
	equal "$(jq -r '[.tenant, .action, .object, .result, .address] | join(" ")' \
		<<<"$line")" 'acme exec acme.work 200 127.0.0.1'
	equal "$(jq -r .token <<<"$line")" \
		"$(ark auth ls --json | jq -r 'select(.tenant == "acme").id')"
	[[ $(jq -r .time <<<"$line") =~ ^20[0-9-]+T[0-9:.]+Z$ ]]
	[ "$(jq .ms <<<"$line")" -ge 0 ]
	wants 200 POST /v1/vms/work/cmd '{"cmd":"echo s3cret-cmd"}'
	wants 200 PUT '/v1/vms/work/file?path=/root/x' s3cret-file
	wants 200 GET '/v1/vms/work/file?path=/root/x'
	wants 200 POST /v1/vms '{"vmName":"x","start":false}'
	wants 200 DELETE /v1/vms/x
	wants 404 DELETE /v1/vms/x
	as "$evil" 404 DELETE /v1/vms/work
	run grep -c s3cret "$ARK_ROOT/audit.log"
	equal "$output" 0
	run grep -cF "${acme#ark_}" "$ARK_ROOT/audit.log"
	equal "$output" 0
	equal "$(log | jq -r '.result' | tail -n 4 | tr '\n' ' ')" \
		'200 200 404 404 '
	equal "$(log | tail -n 1 | jq -r .tenant)" evil
	equal "$(stat -c %a "$ARK_ROOT/audit.log")" 600
	# A client cannot write a line of its own.
	api DELETE '/v1/vms/x%22%2C%22result%22%3A1%0A%7B%7D'
	expect 0 ark audit verify
}

@test "audit: what was changed inside, left out or cut off is found" {
	wants 200 POST /v1/vms '{"vmName":"a1","start":false}'
	wants 200 DELETE /v1/vms/a1
	wants 404 DELETE /v1/vms/a1
	expect 0 ark audit verify
	cp "$ARK_ROOT/audit.log" "$BATS_TEST_TMPDIR/log"
	lines=$(wc -l <"$BATS_TEST_TMPDIR/log")
	for edit in "$((lines - 1))s/200/201/" "$((lines - 1))d" '1d' '$d' \
		"$((lines - 1)){h;d};\${p;x}" '2s/"tenant":"[a-z]*"/"tenant":"evil"/' \
		'$s/404/200/' '2{p}'; do
		sed "$edit" "$BATS_TEST_TMPDIR/log" >"$ARK_ROOT/audit.log"
		! cmp -s "$BATS_TEST_TMPDIR/log" "$ARK_ROOT/audit.log"
		expect 65 ark audit verify
		[ -s "$err" ]
	done
	cp "$BATS_TEST_TMPDIR/log" "$ARK_ROOT/audit.log"
	expect 0 ark audit verify
	# And it goes on, with many at once.
	asked=()
	for i in {1..12}; do
		curl -s -m 60 -o /dev/null -H "Authorization: Bearer $acme" \
			-X DELETE "$base/v1/vms/no$i" &
		asked+=($!)
	done
	wait "${asked[@]}"
	expect 0 ark audit verify
	equal "$(log | jq .seq | uniq -d)" ''
	[ "$(log | wc -l)" -ge $((lines + 12)) ]
}

@test "metrics: in the right format, and they count" {
	as "$host" 200 GET /metrics
	cp "$out" "$BATS_TEST_TMPDIR/m1"
	[[ $(header Content-Type) == text/plain*version=0.0.4* ]]
	"$promtool" check metrics <"$BATS_TEST_TMPDIR/m1"
	wants 200 POST /v1/vms/work/exec '{"argv":["true"]}'
	wants 200 POST /v1/vms/work/exec '{"argv":["false"]}'
	wants 200 POST /v1/vms/work/exec '{"argv":["sleep","9"],"timeout":0.2}'
	wants 200 POST /v1/vms '{"vmName":"m","snapshotId":"ready"}'
	wants 200 POST /v1/vms/m/snapshots '{"snapshotId":"m"}'
	wants 200 POST /v1/snapshots/m/fork '{"count":2}'
	as "$host" 200 GET /metrics
	"$promtool" check metrics <"$out"
	# As many as there are, in each state.
	for state in running created stopped; do
		equal "$(sample "$out" "ark_sandboxes{state=\"$state\"}")" \
			"$(ark ps --json | jq -s "[.[] | select(.state == \"$state\")] | length")"
	done
	grew 'ark_exec_seconds_count' 2
	grew 'ark_snapshot_seconds_count' 1
	grew 'ark_fork_seconds_count' 1
	grew 'ark_restore_seconds_count' 1
	grew 'ark_requests_total{code="200"}' 6
	grew 'ark_execs_total{result="timeout"}' 1
	# Per sandbox: what it has, what it has alone, what it used.
	for name in memory cpu disk network; do
		grep -q "^ark_sandbox_[a-z_]*$name" "$out" ||
			grep -q "^ark_[a-z_]*${name}[a-z_]*{.*acme.work" "$out" || {
			grep ^ark_ "$out" | cut -d '{' -f 1 | sort -u
			echo "nothing about $name"
			false
		}
	done
	grep -q private "$out"
}

sample() { # FILE NAME
	awk -v n="$2" 'index($0, n " ") == 1 { print $NF; found = 1; exit }
		END { if (!found) print 0 }' "$1"
}

grew() { # NAME AT-LEAST
	before=$(sample "$BATS_TEST_TMPDIR/m1" "$1") after=$(sample "$out" "$1")
	[ $((after - before)) -ge "$2" ] ||
		equal "$before to $after" "$2 more" "$1"
}
