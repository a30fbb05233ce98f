# Detached commands: ls, logs, attach, kill, wait, and what is kept of them.

load helper

setup_file() {
	ark_files mini
	ark run --name vm mini
}

teardown_file() {
	ark_end
}

# detach COMMAND...: sets id
detach() {
	expect 0 ark exec -d vm -- "$@"
	silent
	id=$stdout
	[[ $id =~ ^[0-9]+$ ]] || wrong 'no id'
}

@test "-d prints an id at once and goes on without its client" {
	begin=$SECONDS
	detach sh -c 'sleep 2; echo out; echo err >&2; exit 7'
	[ $((SECONDS - begin)) -le 2 ]
	expect 0 ark exec ls -q vm
	grep -qx "$id" "$out" || wrong 'not listed'
	expect 0 ark exec ls --json vm
	jq -e "select(.id == $id or .id == \"$id\")" "$out" >/dev/null ||
		wrong 'not listed'
	expect 7 ark exec wait vm "$id"
	quiet
	expect 7 ark exec wait vm "$id"
	expect 0 ark exec logs vm "$id"
	equal "$stdout" out
	equal "$stderr" err
	expect 0 ark exec ls vm
	[[ $stdout == *"$id"*exited*7* ]] || wrong 'how it ended is not listed'
	expect 7 ark exec attach vm "$id"
	equal "$stdout" out
	equal "$stderr" err
}

# attaches ID: an attach of its own goes on in the background; sets second.
attaches() {
	ark exec attach vm "$1" >"$work/a2" 2>&1 &
	second=$!
	sleep 0.5
	kill -0 $second
}

@test "attach shows what was and what comes, and ends with its code" {
	detach sh -c 'echo one; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo two; exit 5'
	soon 5 bash -c "ark exec logs vm $id | grep -qx one"
	ark exec attach vm "$id" >"$work/a1" 2>&1 &
	first=$!
	soon 5 grep -qx one "$work/a1"
	# One client at a time.
	expect 73 ark exec attach vm "$id"
	says "$id"
	# One that goes away does not take it along, and makes room.
	kill -KILL $first
	wait $first || :
	soon 5 attaches "$id"
	soon 5 grep -qx one "$work/a2"
	expect 0 ark exec vm touch /tmp/go
	code=0
	wait "$second" || code=$?
	equal "$code" 5
	equal "$(cat "$work/a2")" $'one\ntwo'
	expect 5 ark exec wait vm "$id"
}

@test "kill takes the whole tree, or sends one signal" {
	detach sh -c 'setsid sleep 333 & sleep 333; echo never'
	soon 5 left vm 'sleep 333'
	expect 0 ark exec kill vm "$id"
	quiet
	expect 137 ark exec wait vm "$id"
	soon 5 none_left vm 'sleep 333'
	detach sh -c 'trap "echo got it; exit 3" TERM; echo ready; while :; do sleep 0.1; done'
	soon 5 bash -c "ark exec logs vm $id | grep -qx ready"
	expect 0 ark exec kill -s TERM vm "$id"
	expect 3 ark exec wait vm "$id"
	expect 0 ark exec logs vm "$id"
	equal "$stdout" $'ready\ngot it'
	detach sleep 100
	expect 0 ark exec kill -s 15 vm "$id"
	expect 143 ark exec wait vm "$id"
	expect 0 ark exec kill -s SIGHUP vm "$(ark exec -d vm sleep 100)"
}

@test "a timeout of a detached one" {
	expect 0 ark exec -d --timeout 1 vm -- sh -c 'setsid sleep 222 & sleep 222'
	expect 124 ark exec wait vm "$stdout"
	soon 5 none_left vm 'sleep 222'
}

@test "ids that are none: 66" {
	for word in logs attach wait kill; do
		expect 66 ark exec $word vm 4000000000
		says 4000000000
	done
	detach true
	expect 0 ark exec wait vm "$id"
	expect 0 ark exec kill vm "$id"
}

@test "of 1 MiB of output the head and the tail are kept, and it is said" {
	detach sh -c 'seq 1 150000; echo END'
	expect 0 ark exec wait vm "$id"
	expect 0 ark exec logs vm "$id"
	size=$(wc -c <"$out")
	[ "$size" -le $((300 * 1024)) ] || wrong "kept $size bytes"
	[ "$size" -ge $((128 * 1024)) ] || wrong "kept $size bytes only"
	equal "$(head -n 2 "$out")" $'1\n2'
	equal "$(tail -n 1 "$out")" END
	# The head is whole and in order up to where something is missing.
	head -c 60000 "$out" | sed '$d' >"$work/head"
	seq 1 "$(wc -l <"$work/head")" | cmp - "$work/head"
	grep -qiE '[0-9]+ bytes' "$out" "$err" || wrong 'nobody says what is missing'
	# An output that is never read stops nobody.
	detach sh -c 'yes | head -c 20000000; echo END'
	expect 0 ark exec wait vm "$id"
	expect 0 ark exec logs vm "$id"
	equal "$(tail -n 1 "$out")" END
	rm "$work/head"
}

@test "stdin of a detached one is /dev/null, its user and directory as asked" {
	expect 0 ark exec -d -u user -w /tmp -e A=b vm -- sh -c 'cat; id -u; pwd; echo $A' <<<'not this'
	id=$stdout
	expect 0 ark exec wait vm "$id"
	expect 0 ark exec logs vm "$id"
	equal "$stdout" $'1000\n/tmp\nb'
}

@test "a command that cannot be run" {
	expect 127 ark exec -d vm nosuch
	says nosuch
	expect 126 ark exec -d vm /etc/passwd
	says /etc/passwd
}

@test "wait and attach of one that ends by a signal, and --status of it" {
	detach sh -c 'kill -KILL $$'
	expect 137 ark exec wait vm "$id"
	expect 137 ark exec attach vm "$id"
}

@test "many that have ended do not fill the agent" {
	for i in {1..60}; do
		ark exec -d vm -- sh -c "echo $i; yes | head -c 400000" >>"$work/ids"
	done
	last=$(tail -n 1 "$work/ids")
	expect 0 ark exec wait vm "$last"
	soon 20 bash -c '! ark exec ls vm | grep running'
	expect 0 ark exec ls -q vm
	lines=$(wc -l <"$out")
	[ "$lines" -ge 8 ] && [ "$lines" -le 64 ] || wrong "$lines listed"
	expect 0 ark exec logs vm "$last"
	equal "$(head -n 1 "$out")" 60
	expect 0 ark exec ls --json vm
	equal "$(jq -s length "$out")" "$lines"
	rm "$work/ids"
}

@test "what a guest shows in the list drives no terminal" {
	detach sleep 5 $'\e[31m' $'a\tb\nc' $'\xff'
	expect 0 ark exec ls vm
	! grep -qP '\x1b|\xff' "$out" || wrong 'escape codes'
	expect 0 ark exec ls --json vm
	jq -es . "$out" >/dev/null || wrong json
	expect 0 ark exec kill vm "$id"
}

@test "lists and logs to a full disk" {
	detach seq 100
	expect 0 ark exec wait vm "$id"
	for words in "ls vm" "ls --json vm" "logs vm $id" "attach vm $id"; do
		code=0
		# shellcheck disable=SC2086 # words
		ark exec $words >/dev/full 2>"$BATS_TEST_TMPDIR/err" || code=$?
		[[ $code == 74 || $code == 125 ]] || equal "$code" 74 "$words"
		equal "$(wc -l <"$BATS_TEST_TMPDIR/err")" 1 "$words"
	done
}
