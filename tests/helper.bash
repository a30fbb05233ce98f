# helper.bash - what all test files share.
#
# Each file has directories of its own for all that ark keeps, an image in it
# by hard links, and a range of uids that no other file uses; so files run side
# by side, and what is left over can be told.
#
# Nothing here closes descriptor 3 of bats for the commands under test: a
# process that stays behind and holds a descriptor of its caller makes bats
# wait for ever, and that is a fault of it.

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(dirname "$tests")

# ---- processes by files, never by name --------------------------------------

# alive FILE: does the process of a "PID START" file live?  Prints its pid.
alive() {
	local pid start stat
	[ -f "$1" ] && read -r pid start <"$1" || return 1
	stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
	# Fields 3 and 22, counted from behind the name in parentheses.
	# shellcheck disable=SC2086 # numbers
	set -- ${stat##*) }
	[ "$1" != Z ] && [ "${20}" = "$start" ] && echo "$pid"
}

# kill_slots RUN: end keepers and VMMs whatever state they are in.
kill_slots() {
	local file pid
	for file in "$1"/????/keeper "$1"/????/vmm; do
		! pid=$(alive "$file") || kill -KILL "$pid" 2>/dev/null || :
	done
}

# ours: "pid command" of every process that was started with our ARK_RUN in its
# environment or runs as a uid of ours, without this shell and its parents.
ours() {
	local dir pid uid base=${ARK_TEST_UIDS:-0}
	local -A parents=()
	pid=$BASHPID
	while [ "$pid" -gt 1 ]; do
		parents[$pid]=1
		pid=$(sed -n 's/^PPid:\t//p' "/proc/$pid/status" 2>/dev/null) ||
			break
	done
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		[ -z "${parents[$pid]:-}" ] || continue
		grep -q '^State:.*Z' "$dir/status" 2>/dev/null && continue
		uid=$(stat -c %u "$dir" 2>/dev/null) || continue
		if [ "$base" -gt 0 ] && [ "$uid" -ge "$base" ] &&
			[ "$uid" -lt $((base + 200)) ] ||
			grep -qzxF "ARK_RUN=$ARK_RUN" "$dir/environ" 2>/dev/null; then
			# Not what watches over this test, and not what this
			# very pipeline runs.
			! tr '\0' ' ' <"$dir/cmdline" 2>/dev/null | grep -q \
				-e '/bats-core/' -e "^sleep ${BATS_TEST_TIMEOUT:-x} " ||
				continue
			[ "$(sed -n 's/^PPid:\t//p' "$dir/status" 2>/dev/null)" \
				= "$BASHPID" ] ||
				echo "$pid $(tr '\0' ' ' <"$dir/cmdline" 2>/dev/null |
					cut -c 1-80)"
		fi
	done
}

# mark RUN: the hash that ark's names of kernel objects carry (FNV-1a).
mark() {
	local i code hash=2166136261 path
	path=$(readlink -m "$1")
	for ((i = 0; i < ${#path}; i++)); do
		printf -v code %d "'${path:i:1}"
		hash=$(((hash ^ code) * 16777619 & 0xffffffff))
	done
	printf %08x "$hash"
}

# groups_of RUN: its cgroups; those of other files are none of ours.
groups_of() {
	find /sys/fs/cgroup -type d -path '*/ark/*' -name "????-$(mark "$1")"
}

# sweep DIR: all of a test file's state, and whoever still uses it.
sweep() {
	kill_slots "$1/run"
	kill_slots "$1/run2"
	local run group i
	for run in "$1/run" "$1/run2"; do
		for group in $(groups_of "$run"); do
			for i in {1..20}; do
				! rmdir "$group" 2>/dev/null || break
				sleep 0.1
			done
		done
	done
	rm -rf --one-file-system "$1"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
	[ "$1" = sweep ] && sweep "$2"
	exit
fi
bats_require_minimum_version 1.5.0

# ---- per file ---------------------------------------------------------------

# Call from setup_file.  ark_files [IMAGE...]: directories with these images.
ark_files() {
	local image
	exec </dev/null
	mkdir -p "$ARK_TEST_DIR"
	work=$(mktemp -d "$ARK_TEST_DIR/$(basename "$BATS_TEST_FILENAME" .bats).XXXXXX")
	export ARK_ROOT=$work/root ARK_RUN=$work/run ARK_CONF=$work/ark.conf work
	# Slots are 1..65534, ours only ever some dozen.
	export ARK_TEST_UIDS=$((1000000 + $$ % 4000000 * 200))
	unset ARK_ACCEL
	export ARK_VMM=${ARK_TEST_VMM:-}
	export PATH="$tree/bin:$PATH" LC_ALL=C.UTF-8
	mkdir -m 700 "$ARK_ROOT" "$ARK_RUN"
	mkdir -m 700 "$ARK_ROOT/image" "$ARK_ROOT/vm" "$ARK_ROOT/kernel"
	for image; do
		cp -al "$ARK_TEST_IMAGES/image/$image" "$ARK_ROOT/image/"
	done
	# What is told once per host is told in run.bats.
	touch "$ARK_ROOT/tcg-told"
	printf 'image = mini\nmemory = 256M\ndisk = 1G\nuid_base = %s\n' \
		"$ARK_TEST_UIDS" >"$ARK_CONF"
}

# another_image NAME [PORTS...]: the image mini under that name as well, which
# declares these ports.
another_image() {
	local dir=$work/image.$1
	mkdir "$dir"
	ln "$ARK_ROOT/image/mini"/{kernel,initrd,base,disk} "$dir/"
	jq -r .kernel_release "$ARK_ROOT/image/mini/manifest.json" \
		>"$dir/kernel_release"
	[ $# = 1 ] || printf '%s\n' "${@:2}" >"$dir/ports"
	ark disk import -l "$dir" "$1"
	rm -r "$dir"
}

# Call from teardown_file.
ark_end() {
	kill_slots "$ARK_RUN"
	sweep "$work"
}

# ---- commands and what they say ---------------------------------------------

# expect CODE COMMAND...: run it; its exit code must be CODE ("fail": any but 0).
# Sets $code, and $stdout and $stderr without their last newline; the files are
# $out and $err.
expect() {
	local want=$1
	shift
	# In setup_file there is no test yet, and other files run beside us.
	local dir=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}
	out=$dir/out err=$dir/err code=0
	"$@" >"$out" 2>"$err" || code=$?
	stdout=$(tr -d '\0' <"$out") stderr=$(tr -d '\0' <"$err")
	[ "$want" != fail ] || [ "$code" = 0 ] || return 0
	[ "$code" = "$want" ] || wrong "exit code $code, not $want: $*"
}

# wrong TEXT: fail, and show what the last command has said.
wrong() {
	echo "$1"
	echo "stdout: $(head -c 2000 "$out" | cat -v)"
	echo "stderr: $(head -c 2000 "$err" | cat -v)"
	return 1
}

# equal GOT WANT [WHAT]
equal() {
	[ "$1" = "$2" ] || {
		printf '%s\n got: %q\nwant: %q\n' "${3:-differs}" \
			"${1:0:2000}" "${2:0:2000}"
		return 1
	}
}

# says TEXT: the last command put nothing on stdout and exactly one line on
# stderr: "program: ...TEXT...", printable.
says() {
	[ ! -s "$out" ] || wrong 'something on stdout' || return
	[ "$(wc -l <"$err")" = 1 ] || wrong 'not one line on stderr' || return
	[ "$(tail -c 1 "$err" | od -An -tx1)" = ' 0a' ] ||
		wrong 'no newline at the end' || return
	! grep -qP '[\x00-\x08\x0b-\x1f\x7f]' "$err" ||
		wrong 'control bytes on stderr' || return
	[[ $stderr =~ ^ark[a-z-]*:\  ]] || wrong 'no program name' || return
	[[ $stderr == *"$1"* ]] || wrong "nothing about: $1"
}

# quiet: nothing on either.
quiet() {
	[ ! -s "$out" ] || wrong 'something on stdout' || return
	[ ! -s "$err" ] || wrong 'something on stderr'
}

# silent: nothing on stderr.
silent() {
	[ ! -s "$err" ] || wrong 'should say nothing on stderr'
}

# ---- sandboxes --------------------------------------------------------------

# boot NAME [OPTION...]: a running sandbox.
boot() {
	local name=$1
	shift
	expect 0 ark run --name "$name" "$@" mini </dev/null &&
		equal "$stdout" "$name"
}

# rm_all: every sandbox, by force.
rm_all() {
	local names
	mapfile -t names < <(ark ps -q)
	[ "${#names[@]}" = 0 ] || ark rm -f "${names[@]}"
}

# state NAME: the word in `ark ps`, with the reason of dead.
state() {
	ark ps -o name,state --no-header |
		awk -v n="$1" '$1 == n { sub(/^[^ ]+ +/, ""); sub(/ +$/, ""); print }'
}

# slot NAME: its directory below ARK_RUN.
slot() {
	echo "$ARK_RUN/$(cat "$ARK_ROOT/vm/$1/slot")"
}

pid_of() { # vmm|keeper NAME
	alive "$(slot "$2")/$1"
}

# within SECONDS: so many, times that on a host that is ARK_TEST_SLOW as slow.
within() {
	echo $(($1 * ${ARK_TEST_SLOW:-1}))
}

# soon SECONDS COMMAND...: true within that time.
soon() {
	local end=$((SECONDS + $(within "$1")))
	local said=${BATS_TEST_TMPDIR:-$BATS_FILE_TMPDIR}/soon
	shift
	until "$@" >"$said" 2>&1; do
		[ "$SECONDS" -lt "$end" ] || {
			echo "not in time: $*"
			cat "$said"
			return 1
		}
		sleep 0.1
	done
}

# state_is NAME PATTERN
state_is() {
	# shellcheck disable=SC2053 # a pattern
	[[ $(state "$1") == $2 ]]
}

# left NAME TEXT: the guest's processes that have TEXT in their words.
left() {
	ark exec -n "$1" -- ps -o pid,stat,args | awk '$2 !~ /Z/' | grep -F -e "$2"
}

none_left() {
	! left "$@"
}

gone() { # PID
	! kill -0 "$1" 2>/dev/null ||
		grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}

no_sandbox() {
	[ "$(ark ps -q)" = '' ] || { ark ps; return 1; }
}

nobody() {
	equal "$(ours)" '' 'something of ours runs'
}

# ended: nothing runs; a keeper may have recorded itself, or its VMM, only now.
ended() {
	kill_slots "$ARK_RUN"
	nobody
}

no_slot() {
	equal "$(ls "$ARK_RUN" | grep -xE '[0-9a-f]{4}')" '' 'a slot is left'
}

# keep SANDBOX SNAPSHOT: these (either may be empty), and remove all others.
keep() {
	local names
	mapfile -t names < <(ark ps -q | grep -vx "$1")
	[ "${#names[@]}" = 0 ] || ark rm -f "${names[@]}"
	mapfile -t names < <(ark snaps -q | grep -vx "$2")
	[ "${#names[@]}" = 0 ] || ark-snap rm "${names[@]}"
}

# ---- faults -----------------------------------------------------------------

# traced CALL FAULT COMMAND...: with that fault in its calls, and in those of
# the processes that it becomes.  strace itself stays behind with these (-D).
# Not with --seccomp-bpf, which makes it forget signals.
traced() {
	timeout -s KILL 60 strace -D -f -qq -o /dev/null \
		-e trace="$1" -e inject="$1:$2" "${@:3}"
}

# killed CALL N COMMAND...: kill -9 at its N-th CALL.  False when it has not
# come to that.
killed() {
	local code=0
	traced "$1" "signal=KILL:when=$2" "${@:3}" \
		>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" || code=$?
	[ "$code" = 137 ]
}

# ---- leaks ------------------------------------------------------------------

# inventory: everything of ours that a host can hold, one line each.  Network
# namespaces and unbound sockets live by the processes that are listed here, or
# by mounts below our directories.
inventory() {
	ours | sed 's/^[0-9]* /process /'
	# Files beside the slots are hints that anybody may lose.
	# Folders that requests leave are none; what may be in them is.
	find "$ARK_RUN" -mindepth 1 ! \( -type f ! -path "$ARK_RUN/*/*" \) \
		! \( -type d \( -path "$ARK_RUN/audit" -o -path "$ARK_RUN/tenant" \
		-o -path "$ARK_RUN/tenant/*" \) \) ! -name bucket \
		-printf 'run %P\n'
	find "$ARK_ROOT" -mindepth 1 ! -name tcg-told -printf 'root %P %y\n'
	ip -o link | sed -n '/LOOPBACK/!s/^[0-9]*: \([^:@]*\).*/link \1/p'
	iptables-save | grep -o 'ark:[0-9a-f:]*' | sed 's/^/rule /' || :
	grep -F -e "$work" /proc/self/mountinfo | sed 's/^/mount /' || :
	groups_of "$ARK_RUN" | sed 's/^/cgroup /'
	losetup -n -O BACK-FILE 2>/dev/null | grep -F "$work" | sed 's/^/loop /' || :
}

# remember / nothing_new: nothing of ours may have come since.
remember() {
	inventory | sort >"$BATS_FILE_TMPDIR/before"
}

same_inventory() {
	inventory | sort >"$BATS_FILE_TMPDIR/after"
	cmp -s "$BATS_FILE_TMPDIR/before" "$BATS_FILE_TMPDIR/after"
}

nothing_new() {
	# A process that has just been told to end may take a moment.
	soon "${1:-5}" same_inventory ||
		diff "$BATS_FILE_TMPDIR/before" "$BATS_FILE_TMPDIR/after"
}

# fresh: no sandbox; nothing_new compares with this.
fresh() {
	rm_all
	ark gc >/dev/null
	remember
}

# removed NAME: by force from any state, twice, and nothing of it is left.
removed() {
	expect 0 ark rm -f "$1"
	quiet
	expect 0 ark rm -f "$1"
	quiet
	equal "$(ark ps -q)" ''
	expect 0 ark gc
	nothing_new 5
	expect 0 ark gc
	quiet
}
