# rest.bash - start the endpoint, ask it.
#
# Each file of tests has a network namespace of its own, so all of them use the
# default port.

# setup_file has no directory of a test.
BATS_TEST_TMPDIR=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}
base=http://127.0.0.1:7000 address=127.0.0.1:7000
rest=$tests/rest

# serve [OPTION...]: the endpoint runs and answers.  Its pid is in
# $work/serve.pid, what it says in $work/serve.log.
serve() {
	# What a shell has in the background ignores INT.
	env --default-signal=INT ark serve "$@" </dev/null >"$work/serve.log" 2>&1 3>&- &
	echo $! >"$work/serve.pid"
	soon 15 healthy || {
		cat "$work/serve.log"
		return 1
	}
}

healthy() {
	curl -sf -m 5 -o /dev/null "$base/v1/health"
}

serve_end() {
	local pid
	pid=$(cat "$work/serve.pid" 2>/dev/null) || return 0
	rm -f "$work/serve.pid"
	kill "$pid" 2>/dev/null || :
	soon 15 gone "$pid"
}

# api METHOD PATH [BODY|@FILE] [CURL OPTION...]: GET and DELETE have no body.
# Sets $status; the body is in $body and the file $out, the head in $head.
api() {
	local method=$1 path=$2 data=()
	case $method in
	GET | DELETE) ;;
	*) data=(--data-binary "${3:-}") ;;
	esac
	shift $(($# < 3 ? $# : 3))
	out=$BATS_TEST_TMPDIR/body head=$BATS_TEST_TMPDIR/head
	err=/dev/null
	: >"$out"
	status=$(curl -sS -m 120 --path-as-is -X "$method" -o "$out" -D "$head" \
		-w '%{http_code}' ${token:+-H "Authorization: Bearer $token"} \
		"$@" "${data[@]}" "$base$path") || :
	body=$(tr -d '\0' <"$out")
}

# wants STATUS METHOD PATH [BODY ...]
wants() {
	local want=$1
	shift
	api "$@"
	[ "$status" = "$want" ] || {
		echo "$1 $2 ${3:0:500}: $status, not $want: ${body:0:1000}"
		return 1
	}
	[ "$want" -lt 400 ] || [ -n "$(field '.error.message | strings')" ]
}

# field FILTER: of the last answer.
field() {
	jq -r "$1" <"$out"
}

# is FILTER VALUE
is() {
	equal "$(field "$1")" "$2" "$1"
}

header() { # NAME
	tr -d '\r' <"$head" | sed -n "s/^$1: //Ip"
}

# vm_is NAME STATUS
vm_is() {
	api GET "/v1/vms/$1"
	[ "$(field .status)" = "$2" ]
}

# Every process of the endpoint but the command itself, "pid uid what": web,
# listener, request.
serve_processes() {
	"$rest/family" "$(cat "$work/serve.pid")"
}

# kill_requests: -9 for all that serve a request just now.
kill_requests() {
	local pid
	for pid in $(serve_processes | awk '$3 == "request" { print $1 }'); do
		kill -KILL "$pid" 2>/dev/null || :
	done
}

# slim COMMAND...: no process of the endpoint has held 16 MiB meanwhile.
slim() {
	local most
	most=$("$rest/family" "$(cat "$work/serve.pid")" "$@") || return
	[ "$most" -gt 1000 ] && [ "$most" -lt 16384 ] && return
	echo "$most KiB: $*"
	return 1
}
