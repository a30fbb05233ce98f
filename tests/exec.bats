# Commands in a sandbox: words, streams, codes, environment, limits.

load helper

setup_file() {
	ark_files mini
	ark run --name vm mini
}

teardown_file() {
	ark_end
}

# What --status-fd says.
status() {
	expect "$1" ark exec --status-fd 9 "${@:3}" 9>"$BATS_TEST_TMPDIR/status"
	equal "$(cat "$BATS_TEST_TMPDIR/status")" "$2" "status of: ${*:3}"
}

@test "exit codes" {
	for n in 0 1 3 124 125 126 127 128 200 255; do
		expect $n ark exec vm -- sh -c "exit $n"
		quiet
	done
	expect 0 ark exec vm true
	expect 1 ark exec vm false
	expect 127 ark exec vm nosuch
	says nosuch
	expect 127 ark exec vm /no/such
	says /no/such
	expect 126 ark exec vm /etc/passwd
	says /etc/passwd
	expect 126 ark exec vm /etc
	says /etc
	expect fail ark exec vm ''
	[[ $code == 126 || $code == 127 ]] || wrong code
	says ''
	# Not 3, which the shell of busybox ignores.
	for signal in 1 2 6 9 11 15 31; do
		expect $((128 + signal)) ark exec vm -- sh -c "kill -$signal \$\$"
		[ ! -s "$out" ] || wrong stdout
	done
}

@test "words arrive as they are" {
	expect 0 ark exec vm -- printf '[%s]' '' ' ' 'a b' $'a\nb' 'é€🐧' '$HOME' \
		'*' '"' "'" '\' -- -x --help $'\e[31m' $'\xff'
	equal "$stdout" $'[][ ][a b][a\nb][é€🐧][$HOME][*]["][\'][\\][--][-x][--help][\e[31m][\xff]'
	# Without "--", the command's options are still its own.
	expect 0 ark exec vm echo -n -t --timeout 5
	equal "$stdout" '-t --timeout 5'
	expect 0 ark exec vm -- echo -- x
	equal "$stdout" '-- x'
	big=$(printf 'x%.0s' {1..100000})
	expect 0 ark exec vm -- sh -c 'echo ${#1}' sh "$big"
	equal "$stdout" 100000
	expect 0 ark exec vm -- sh -c 'echo $#' sh $(seq 2000)
	equal "$stdout" 2000
	# More than the guest's kernel or the protocol takes.
	too_much=()
	for _ in {1..30}; do
		too_much+=("$big")
	done
	ulimit -s unlimited
	expect 126 ark exec vm -- true "${too_much[@]}"
	says ''
	expect 0 ark exec vm true
}

# bats test_tags=lab
@test "stdout and stderr are apart, byte for byte, also NUL" {
	expect 0 ark exec vm -- sh -c 'echo o; echo e >&2'
	equal "$stdout" o
	equal "$stderr" e
	expect 0 ark exec vm -- sh -c 'printf "a\0b\377"; printf "c\0d" >&2'
	equal "$(od -An -tx1 <"$out")" ' 61 00 62 ff'
	equal "$(od -An -tx1 <"$err")" ' 63 00 64'
	expect 0 ark exec vm -- sh -c 'exec >&- 2>&-; exit 0'
	quiet
	expect 0 ark exec vm -- sh -c 'printf unfinished'
	equal "$(wc -c <"$out")" 10
}

@test "stdout is not held back" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	ark exec vm -- sh -c 'printf now; sleep 30' >"$BATS_TEST_TMPDIR/fifo" 2>&1 &
	exec 5<"$BATS_TEST_TMPDIR/fifo"
	read -r -t 10 -N 3 word <&5
	equal "$word" now
	kill $!
	wait $! || :
	exec 5<&-
}

@test "stdin: as it is, none, and the end of it" {
	expect 0 ark exec vm -- wc -l < <(seq 100000)
	equal "$stdout" 100000
	expect 0 ark exec -i vm cat <<<'text'
	equal "$stdout" text
	expect 0 ark exec -n vm cat <<<'text'
	quiet
	expect 0 ark exec vm cat </dev/null
	quiet
	expect 0 ark exec vm cat <&-
	[ ! -s "$out" ] || wrong stdout
	printf 'a\0b\377\n' >"$BATS_TEST_TMPDIR/bytes"
	expect 0 ark exec vm cat <"$BATS_TEST_TMPDIR/bytes"
	cmp "$out" "$BATS_TEST_TMPDIR/bytes"
	# A command that does not read ends all the same.
	expect 0 ark exec vm true < <(yes)
	expect 0 ark exec vm head -n 1 < <(yes)
	equal "$stdout" y
	# Loops are not eaten with -n.
	while read -r line; do
		ark exec -n vm echo "$line"
	done <<<$'1\n2\n3' >"$BATS_TEST_TMPDIR/lines"
	equal "$(cat "$BATS_TEST_TMPDIR/lines")" $'1\n2\n3'
}

# bats test_tags=lab
@test "8 MiB go through in both directions unchanged" {
	head -c 8388608 /dev/urandom >"$work/random"
	sum=$(sha256sum <"$work/random")
	expect 0 ark exec vm sha256sum <"$work/random"
	equal "$stdout" "$sum"
	expect 0 ark exec vm -- sh -c 'cat >/tmp/random' <"$work/random"
	expect 0 ark exec vm cat /tmp/random
	equal "$(sha256sum <"$out")" "$sum"
	expect 0 ark exec vm cat <"$work/random"
	equal "$(sha256sum <"$out")" "$sum" 'both at once'
	expect 0 ark exec vm -- sh -c 'cat >&2' <"$work/random"
	equal "$(sha256sum <"$err")" "$sum" stderr
	expect 0 ark exec vm rm /tmp/random
	rm "$work/random"
}

@test "environment, directory, user" {
	expect 0 ark exec -e A=1 -e 'B=two words' -e C= -e $'D=a\nb' -e É=é vm \
		-- sh -c 'printf "%s|" "$A" "$B" "${C-unset}" "$D"; '
	equal "$stdout" $'1|two words||a\nb|'
	expect 0 ark exec -e É=é vm env
	grep -qx 'É=é' "$out" || wrong 'not ASCII'
	FROM_HERE=yes expect 0 ark exec -e FROM_HERE vm -- sh -c 'echo $FROM_HERE'
	equal "$stdout" yes
	FROM_HERE=yes expect 0 ark exec vm -- sh -c 'echo "${FROM_HERE-unset}"'
	equal "$stdout" unset
	expect 0 ark exec vm env
	[[ $stdout != *ARK_* ]] || wrong 'environment of the host'
	[[ $stdout == *PATH=* && $stdout == *HOME=/root* ]] || wrong env
	expect 0 ark exec -e PATH=/none -e HOME=/x vm /bin/sh -c 'echo $PATH $HOME'
	equal "$stdout" '/none /x'

	expect 0 ark exec -w /tmp vm pwd
	equal "$stdout" /tmp
	expect 0 ark exec vm pwd
	first=$stdout
	[[ $first == /* ]] || wrong pwd
	for directory in /no/such /etc/passwd; do
		expect fail ark exec -w $directory vm true
		[[ $code == 125 || $code == 126 ]] || wrong code
		says $directory
	done
	expect fail ark exec -w relative vm true
	says relative

	expect 0 ark exec -u user vm -- sh -c 'id -u; id -g; echo $HOME $USER $LOGNAME; echo x >/home/user/mine'
	equal "$stdout" $'1000\n1000\n/home/user user user'
	expect 0 ark exec -u 1000:65534 vm -- sh -c 'id -u; id -g'
	equal "$stdout" $'1000\n65534'
	expect 0 ark exec -u user:nogroup vm id -g
	equal "$stdout" 65534
	expect 0 ark exec -u 4242 vm -- id -u
	equal "$stdout" 4242
	expect 0 ark exec -u 0 vm id -u
	equal "$stdout" 0
	for user in nosuch nosuch:user user:nosuch : '' -1 4294967295 4294967296 \
		99999999999999999999 user: :user ../x 'a b'; do
		code=0
		ark exec "--user=$user" vm true >"$BATS_TEST_TMPDIR/o" \
			2>"$BATS_TEST_TMPDIR/e" || code=$?
		[[ $code == 64 || $code == 125 || $code == 126 ||
			($code == 0 && ($user == user: || $user == :user)) ]] ||
			equal "$code" 126 "user '$user'"
		[ "$code" = 0 ] || equal "$(wc -l <"$BATS_TEST_TMPDIR/e")" 1 "'$user'"
	done
	expect 1 ark exec -u user vm -- sh -c 'cat /etc/shadow 2>/dev/null'
	expect 0 ark exec -u user vm -- sh -c 'grep -E "^Cap(Eff|Prm|Inh|Amb)" /proc/self/status'
	! grep -v '0000000000000000' "$out" || wrong 'capabilities of a user'
	expect 0 ark exec -u user vm -- sh -c 'id -G'
	equal "$stdout" 1000
}

@test "what a command finds" {
	# No descriptor of the agent's, signals as usual, a process group of its own.
	expect 0 ark exec vm -- sh -c 'ls /proc/self/fd | xargs'
	[[ $stdout =~ ^0\ 1\ 2(\ 3)?$ ]] || wrong descriptors
	expect 0 ark exec vm grep -E '^Sig(Blk|Ign)' /proc/self/status
	! grep -v '0000000000000000' "$out" || wrong signals
	expect 0 ark exec vm nproc
	equal "$stdout" 1
	expect 0 ark exec vm -- sh -c 'cat /proc/self/oom_score_adj; cat /proc/1/oom_score_adj'
	equal "$stdout" $'0\n-1000'
	expect 0 ark exec vm -- sh -c 'echo x >/dev/null; test -c /dev/zero -a -c /dev/urandom -a -d /dev/pts -a -d /dev/shm; test -e /dev/fd/0 -a -e /dev/stdin; hostname; ulimit -n'
	silent
	expect 0 ark exec vm -- sh -c 'mount | grep " / "; echo x >/new && cat /new'
	[[ $stdout == *x ]] || wrong 'root is not writable'
	expect 0 ark exec vm -- sh -c 'ping -c 1 -w 2 10.0.2.1 >/dev/null 2>&1; ip -o addr show eth0'
	[[ $stdout == *10.0.2.2/30* ]] || wrong address
	expect 0 ark exec vm cat /etc/resolv.conf
	[[ $stdout == *'nameserver 10.0.2.1'* ]] || wrong 'name server'
}

@test "status of every kind of end" {
	none='"timeout":false,"oom":false,"error":null'
	status 0 '{"exit":0,"signal":null,'"$none}" vm true
	status 3 '{"exit":3,"signal":null,'"$none}" vm -- sh -c 'exit 3'
	status 125 '{"exit":125,"signal":null,'"$none}" vm -- sh -c 'exit 125'
	status 143 '{"exit":null,"signal":15,'"$none}" vm -- sh -c 'kill $$'
	status 137 '{"exit":null,"signal":9,'"$none}" vm -- sh -c 'kill -9 $$'
	expect 124 ark exec --timeout 1 --status-fd 9 vm sleep 30 9>"$work/status"
	equal "$(wc -l <"$work/status")" 1
	jq -e '.timeout and (.oom | not) and .error == null' "$work/status" ||
		cat "$work/status"
	expect 127 ark exec --status-fd 9 vm nosuch 9>"$work/status"
	jq -e '.exit == null and .signal == null and (.timeout | not) and
		(.error | contains("nosuch"))' "$work/status"
	expect 126 ark exec --status-fd 9 vm /etc/passwd 9>"$work/status"
	jq -e '.exit == null and (.error | contains("/etc/passwd"))' "$work/status"
	# The command does not inherit it, and what it says is not lost in it.
	expect 0 ark exec --status-fd 1 vm echo hi
	equal "$stdout" $'hi\n{"exit":0,"signal":null,'"$none}"
	for place in 'name-with-"-and-\' $'a\nb' $'\xff\e'; do
		expect 127 ark exec --status-fd 9 vm "$place" 9>"$work/status"
		jq -e . "$work/status" >/dev/null || cat -v "$work/status"
		equal "$(wc -l <"$work/status")" 1
	done
}

@test "a timeout takes the whole tree within its time" {
	begin=$(date +%s%N)
	expect 124 ark exec --timeout 2 vm -- sh -c 'setsid sleep 777 & sleep 777 & wait'
	ms=$((($(date +%s%N) - begin) / 1000000))
	[ "$ms" -ge 1900 ] && [ "$ms" -le 4000 ] || wrong "took $ms ms"
	none_left vm 'sleep 777'
	# Children that ignore signals, daemons, and what was printed before.
	expect 124 ark exec --timeout 1s vm -- sh -c \
		'trap "" TERM INT HUP; echo before; (setsid sh -c "trap \"\" TERM; sleep 776; sleep 776" &) ; sleep 776'
	equal "$stdout" before
	none_left vm 'sleep 776'
	expect 0 ark exec --timeout 60 vm true
	expect 124 ark exec --timeout 300ms vm sleep 60
	expect 7 ark exec --timeout 60 vm -- sh -c 'exit 7'
	expect 0 ark exec vm -- sh -c 'ls /sys/fs/cgroup/ark | grep -c "^[0-9]" || :'
	[ "$stdout" -le 2 ] || wrong 'cgroups are left'
}

@test "a child that holds the streams does not hold the exec" {
	begin=$SECONDS
	expect 0 ark exec vm -- sh -c 'sleep 555 & echo done'
	equal "$stdout" done
	[ $((SECONDS - begin)) -le 10 ] || wrong 'waited for the child'
	# It is a daemon now, as it would be on any machine.
	expect 0 left vm 'sleep 555'
	expect 0 ark exec vm killall sleep
	begin=$SECONDS
	expect 0 ark exec vm -- sh -c 'yes & exec true'
	[ $((SECONDS - begin)) -le 10 ] || wrong 'waited for the child'
	ark exec vm killall yes || :
}

@test "a client that dies takes its exec with it" {
	for command in 'ark exec -n vm --' 'ark exec -t vm --' 'ark exec vm --'; do
		mkfifo "$BATS_TEST_TMPDIR/fifo"
		# shellcheck disable=SC2086 # words
		$command sh -c 'trap "" TERM HUP INT; setsid sleep 444 & echo started; sleep 444' \
			>"$BATS_TEST_TMPDIR/fifo" 2>/dev/null &
		read -r -t 10 word <"$BATS_TEST_TMPDIR/fifo"
		equal "${word%$'\r'}" started
		soon 5 left vm 'sleep 444'
		kill -KILL $!
		wait $! || :
		rm "$BATS_TEST_TMPDIR/fifo"
		soon 5 none_left vm 'sleep 444'
	done
}

@test "signals are passed on to the command" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	for signal in TERM HUP USR1 USR2; do
		env --default-signal=$signal ark exec -n vm -- sh -c \
			"trap 'echo got $signal; exit 9' $signal; echo ready; while :; do sleep 0.1; done" \
			>"$BATS_TEST_TMPDIR/fifo" 2>/dev/null &
		pid=$!
		exec 5<"$BATS_TEST_TMPDIR/fifo"
		read -r -t 10 word <&5
		equal "$word" ready
		kill -$signal $pid
		read -r -t 10 word <&5 || word=nothing
		exec 5<&-
		code=0
		wait $pid || code=$?
		equal "$word $code" "got $signal 9"
	done
}

@test "a reader that goes away ends the command" {
	begin=$SECONDS
	timeout 30 bash -c 'ark exec vm yes | head -n 1' >"$BATS_TEST_TMPDIR/out"
	equal "$(cat "$BATS_TEST_TMPDIR/out")" y
	[ $((SECONDS - begin)) -le 10 ]
	soon 5 none_left vm 'yes'
	code=0
	ark exec vm yes >/dev/full 2>"$BATS_TEST_TMPDIR/err" || code=$?
	[[ $code == 74 || $code == 125 ]] || equal "$code" 74
	equal "$(wc -l <"$BATS_TEST_TMPDIR/err")" 1
	grep -q 'No space left' "$BATS_TEST_TMPDIR/err"
	code=0
	ark exec vm echo x >/dev/full 2>/dev/null || code=$?
	[[ $code == 74 || $code == 125 ]] || equal "$code" 74
	soon 5 none_left vm 'yes'
}

@test "fifty at once all answer" {
	for i in {1..50}; do
		ark exec vm -- sh -c 'read x; echo "$x"; exit '$((i % 7)) <<<"word $i" \
			>"$BATS_TEST_TMPDIR/o$i" 2>"$BATS_TEST_TMPDIR/e$i" &
		pids[i]=$!
	done
	for i in {1..50}; do
		code=0
		wait "${pids[i]}" || code=$?
		equal "$code" $((i % 7)) "exec $i"
		equal "$(cat "$BATS_TEST_TMPDIR/o$i")" "word $i"
		equal "$(cat "$BATS_TEST_TMPDIR/e$i")" ''
	done
}

@test "ninety that wait keep nobody out" {
	for i in {1..90}; do
		ark exec -n vm -- sleep 20 >/dev/null 2>&1 &
		pids+=($!)
	done
	expect 0 ark exec vm echo fine
	equal "$stdout" fine
	kill "${pids[@]}"
	wait "${pids[@]}" || :
	soon 10 none_left vm 'sleep 20'
}

@test "a memory bomb ends as a result, and the next exec works" {
	expect fail ark exec --status-fd 9 vm -- sh -c \
		'x=$(head -c 200000 /dev/zero | tr "\0" x); while :; do x=$x$x; done' \
		9>"$work/status"
	jq -e '.oom' "$work/status" || cat "$work/status"
	[[ $code == 137 || $code == 2 || $code == 1 ]] || wrong "code $code"
	expect 0 ark exec vm echo alive
	equal "$stdout" alive
	equal "$(state vm)" running
	expect fail ark exec --status-fd 9 vm -- sh -c \
		'mkdir -p /tmp/mem; mount -t tmpfs none /tmp/mem -o size=90%; dd if=/dev/zero of=/tmp/mem/x bs=1M' \
		9>"$work/status"
	ark exec vm -- sh -c 'umount /tmp/mem' || :
	expect 0 ark exec vm echo alive
}

@test "a fork bomb ends as a result, and the next exec works" {
	expect 124 ark exec --timeout 6 vm -- sh -c 'f() { f | f & }; f; sleep 60' \
		2>/dev/null
	expect 0 ark exec --timeout 30 vm echo alive
	equal "$stdout" alive
	soon 20 none_left vm 'f | f'
	equal "$(state vm)" running
}

@test "a guest killed in the middle is 125, with the cause" {
	ark exec --status-fd 9 -n vm sleep 300 >"$work/o" 2>"$work/e" 9>"$work/status" &
	pid=$!
	soon 10 left vm 'sleep 300'
	kill -KILL "$(pid_of vmm vm)"
	code=0
	wait $pid || code=$?
	equal "$code" 125
	equal "$(wc -l <"$work/e")" 1
	grep -q 'killed by signal 9' "$work/e" || cat "$work/e"
	jq -e '.exit == null and (.error | length > 0)' "$work/status"
	expect 125 ark exec vm true
	says 'killed by signal 9'
	expect 125 ark exec --status-fd 9 vm true 9>"$work/status"
	jq -e '.exit == null and (.error | length > 0)' "$work/status"
}
