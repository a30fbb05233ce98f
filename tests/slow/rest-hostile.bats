# The REST endpoint and those who mean harm: bytes that are no HTTP, many at
# once, slow ones, ones that go away in the middle, and guests.

load ../helper
load ../rest/rest

setup_file() {
	ark_files mini
	echo 'auth = none' >>"$ARK_CONF"
	serve
	ark run --name work mini >/dev/null </dev/null
	ark snap work ready >/dev/null
	# What the first request that is written down leaves for good.
	wants 200 POST /v1/vms/work/exec '{"argv":["true"]}'
}

teardown_file() {
	serve_end
	ark_end
}

setup() {
	token=
	remember
}

teardown() {
	keep work ready
}

hostile() {
	"$rest/hostile" "$address" "$@"
}

# How many processes of the endpoint serve a request just now.
idle() {
	[ "$(serve_processes | wc -l)" = "$1" ]
}

@test "no bytes make it fall over, hang, or do what they say" {
	before=$(serve_processes | wc -l)
	run hostile raw
	[ "$status" = 0 ] || { grep -v ^ok <<<"$output"; false; }
	soon 10 idle "$before"
	equal "$(ark ps -q)" work
	equal "$(state work)" running
	nothing_new
}

@test "200 at once: each is answered, in time, and nothing is left" {
	before=$(serve_processes | wc -l)
	run hostile many 200 100
	# Served, refused because of the number, or what it deserves.
	for pair in $output; do
		case $pair in
		200:* | 400:* | 404:* | 429:* | 503:*) ;;
		*) echo "$output"; false ;;
		esac
	done
	[[ $output == *200:* ]]
	healthy
	soon 10 idle "$before"
	nothing_new
	wants 200 POST /v1/vms/work/exec '{"argv":["true"]}'
	echo "# $output" >&3
}

@test "50 slow clients do not keep others waiting" {
	run -0 hostile slow 50
	[[ $output =~ ^[0-2]\. ]] || equal "$output" 'below 3 s'
	nothing_new 15
}

# up NAME: it runs, is not paused, and answers.
up() {
	[ "$(state "$1")" = running ] && timeout 5 ark exec -n "$1" true
}

@test "a start, restore, fork or snapshot goes on without its client" {
	for delay in 0.05 0.4 1; do
		hostile drop POST /v1/vms '{"vmName":"s"}' "$delay"
		soon 30 up s
		ark rm -f s
		hostile drop POST /v1/vms '{"vmName":"r","snapshotId":"ready"}' \
			"$delay"
		soon 15 up r
		ark rm -f r
	done
	hostile drop POST /v1/snapshots/ready/fork '{"count":3,"name":"f"}' 0.3
	for vm in f-1 f-2 f-3; do
		soon 20 up "$vm"
	done
	for delay in 0.02 0.1 0.3; do
		hostile drop POST /v1/vms/work/snapshots \
			'{"snapshotId":"dropped"}' "$delay"
		soon 15 test -e "$ARK_ROOT/snap/dropped"
		soon 5 up work
		ark-snap rm dropped
	done
	hostile drop PATCH /v1/vms/f-1 '{"status":"stopped"}' 0.05
	soon 20 state_is f-1 stopped
	hostile drop DELETE /v1/vms/f-2 '' 0.02
	soon 10 test ! -e "$ARK_ROOT/vm/f-2"
	ark rm -f f-1 f-3
	nothing_new
}

@test "a command ends with the client that waits for it, a detached one not" {
	hostile drop POST /v1/vms/work/exec '{"argv":["sleep","5151"]}' 1
	hostile drop POST /v1/vms/work/exec \
		'{"argv":["sleep","5152"],"stream":true}' 1
	hostile drop POST /v1/vms/work/cmd '{"cmd":"sleep 5153; true"}' 1
	soon 10 none_left work 'sleep 515'
	hostile drop POST /v1/vms/work/exec \
		'{"argv":["sleep","6161"],"detach":true}' 1
	left work 'sleep 6161'
	ark exec -n work -- kill "$(left work 'sleep 6161' | awk '{ print $1 }')"
	# Who reads nothing holds a process, not memory; and goes away some day.
	hostile drop POST /v1/vms/work/exec \
		'{"argv":["cat","/dev/zero"],"stream":true}' 3
	soon 10 none_left work 'cat /dev/zero'
	nothing_new 10
}

@test "two who want one name: one gets it, and it works" {
	asked=()
	for i in 1 2 3 4; do
		curl -s -m 60 -o /dev/null -w '%{http_code}\n' \
			-d '{"vmName":"one","snapshotId":"ready"}' \
			"$base/v1/vms" >"$BATS_TEST_TMPDIR/$i" &
		asked+=($!)
	done
	wait "${asked[@]}"
	equal "$(cat "$BATS_TEST_TMPDIR"/[1-4] | sort | uniq -c |
		awk '{ print $1, $2 }')" $'1 200\n3 409'
	up one
	ark rm -f one
	nothing_new
}

# many METHOD PATH BODY: asked in the background.
many() {
	curl -s -m 60 -o /dev/null -X "$1" -d "$3" "$base$2" &
	asked+=($!)
}

@test "start, delete, snapshot, stop at once: no state that is none" {
	for i in 1 2 3 4 5; do
		asked=()
		many POST /v1/vms '{"vmName":"m","snapshotId":"ready"}'
		sleep "0.$((i * 13 % 7))"
		many DELETE /v1/vms/m ''
		many POST /v1/vms/m/snapshots '{}'
		many PATCH /v1/vms/m '{"status":"paused"}'
		wait "${asked[@]}"
		wants 200 GET /v1/vms
		ark rm -f m
	done
	mapfile -t names < <(ark snaps -q | grep -vx ready)
	[ "${#names[@]}" = 0 ] || ark-snap rm "${names[@]}"
	nothing_new
}

@test "kill -9 of whoever serves: the sandbox is whole or gone, no pause" {
	for delay in 0.1 0.3 0.6; do
		curl -s -m 60 -o /dev/null -d '{"snapshotId":"k"}' \
			"$base/v1/vms/work/snapshots" &
		sleep "$delay"
		kill_requests
		wait "$!" || :
		soon 15 healthy || {
			serve_end || :
			serve
		}
		soon 15 up work
		soon 15 sh -c "! ls -A '$ARK_ROOT/snap' | grep -q tmp" || ark gc
		[ ! -e "$ARK_ROOT/snap/k" ] || ark-snap rm k
	done
	ark gc
	# What was killed is written down with the next request.
	wants 200 POST /v1/vms/work/exec '{"argv":["true"]}'
	nothing_new
}

@test "guests do not reach it, whatever address they try" {
	outer=$(ark port --json work | jq -r .address)
	# An address of the host itself beside the loopback's.
	ip addr add 198.51.100.7/32 dev lo
	gateway=$(ark exec -n work -- ip route | awk '/default/ { print $3 }')
	for to in 127.0.0.1 "$gateway" "$outer" 198.51.100.7 10.20.0.1; do
		run ark exec -n --timeout 5 work -- \
			wget -q -T 3 -O - "http://$to:7000/v1/health"
		[ "$status" != 0 ] && [[ $output != *healthy* ]] || {
			echo "a guest reaches $to"
			false
		}
	done
	ip addr del 198.51.100.7/32 dev lo
	healthy
}
