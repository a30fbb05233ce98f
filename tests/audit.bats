# ark audit: whatever is done to the log is found, and writers may be killed.
# Records are written by build/unit/test-audit-crash, through the library; what the
# endpoint puts on record is tested with it.

load helper

setup_file() {
	ark_files
	export writer=$tree/build/unit/test-audit-crash
}

teardown_file() {
	ark_end
}

setup() {
	rm -rf "$ARK_ROOT"/audit.* "$ARK_RUN/audit"
	log=$ARK_ROOT/audit.log
}

write() { # COUNT ACTION [OBJECT]
	"$writer" write "$@"
}

good() { # COUNT
	expect 0 ark audit verify
	silent
	[[ $stdout == "$1 records, the last is $1:"* ]] || wrong "not $1 records"
}

# found TEXT: verify tells exactly one fault.
found() {
	expect 65 ark audit verify
	says "$1"
}

@test "a log, and nothing but a log" {
	expect 0 ark audit verify
	equal "$stdout" 'no records'
	expect 0 ark audit show
	quiet
	write 3 start alice.web
	good 3
	equal "$(stat -c %a "$log")" 600
	jq -es 'length == 3 and all(.[]; keys_unsorted == ["seq", "time", "id",
		"tenant", "token", "address", "action", "object", "result",
		"ms", "prev", "hash"])' "$log" >/dev/null
	# The chain as the manual says it, by other means.
	prev=$(printf '0%.0s' {1..64})
	while IFS= read -r line; do
		equal "$(jq -r .prev <<<"$line")" "$prev"
		prev=$(printf %s "${line%,\"hash\":*}" | sha256sum |
			cut -d ' ' -f 1)
		equal "$(jq -r .hash <<<"$line")" "$prev"
	done <"$log"
	no_notes
}

no_notes() {
	equal "$(ls -A "$ARK_RUN/audit")" '' 'a note is left'
}

@test "edited, removed, moved, cut lines are found" {
	write 9 start alice.web
	cp -a "$log" "$BATS_TEST_TMPDIR/log"
	while IFS='|' read -r change text; do
		sed -i "$change" "$log"
		found "$text"
		cp -a "$BATS_TEST_TMPDIR/log" "$log"
	done <<-EOF
	5s/alice/bobby/|audit.log:5: was changed
	5s/"result":200/"result":403/|audit.log:5: was changed
	1s/20/21/|audit.log:1: was changed
	9s/start/stop!/|audit.log:9: was changed
	5d|audit.log:5: record 6 after 4: those between are missing
	4,6d|audit.log:4: record 7 after 3: those between are missing
	1d|audit.log:1: begins with record 2: those before are missing
	1,8d|audit.log:1: begins with record 9: those before are missing
	5p|audit.log:6: record 5 after 5: put in or moved
	9d|ends with record 8, and audit.head says 9: those behind are missing
	2,9d|ends with record 1, and audit.head says 9: those behind are missing
	1,9d|ends with record 0, and audit.head says 9: those behind are missing
	5i{"seq":5}|audit.log:5: is not a record
	5s/,/, /|audit.log:5: was changed
	EOF
	good 9
	sed -i '5{h;d};6G' "$log"
	expect 65 ark audit verify
	[[ $stderr == *'audit.log:5: record 6 after 4'* ]] || wrong 'a swap'
	rm "$log"
	found 'audit.head says 9'
}

@test "what only the system log can tell" {
	write 9 start alice.web
	head=$(ark audit verify | sed 's/.* //')
	expect 0 ark audit verify --head "$head"
	sed -i '$d' "$log"
	rm "$ARK_ROOT/audit.head"
	good 8
	expect 65 ark audit verify --head "$head"
	says '9 of --head is missing'
	write 1 stop alice.web
	good 9
	expect 65 ark audit verify --head "$head"
	says 'record 9 is not the one of --head'
	for bad in '' x 1 1: ":${head#*:}" "0:${head#*:}" "1:${head#*:}0"; do
		expect 64 ark audit verify --head "$bad"
		says 'bad head'
	done
}

@test "number and hash of each record go to syslog" {
	mkdir "$work/dev"
	cat >"$work/logger.py" <<-'PY'
	import socket, sys
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind("/dev/log")
	s.settimeout(20)
	print("ready", flush=True)
	for _ in range(3):
	    print(s.recv(1000).decode(), flush=True)
	PY
	# A /dev of its own, so that nothing of this host's is in the way.
	expect 0 unshare -m sh -c 'mount -t tmpfs none /dev &&
		mknod -m 666 /dev/null c 1 3 && mkfifo /dev/ready &&
		{ python3 "$work/logger.py" >"$work/said" & } &&
		while ! grep -q ready "$work/said"; do sleep 0.05; done &&
		"$writer" write 3 start x && wait'
	want=$(jq -r '"ark audit \(.seq):\(.hash)"' "$log")
	equal "$(grep -o 'ark audit .*' "$work/said")" "$want"
	# LOG_AUTHPRIV | LOG_NOTICE
	equal "$(grep -c '^<85>' "$work/said")" 3
}

@test "show: all, the last, of one tenant, marked when changed" {
	write 2 start alice.one
	write 2 stop alice.two
	expect 0 ark audit show
	equal "$(wc -l <"$out")" 4
	[[ $(head -n 1 "$out") =~ ^1\ [0-9T:.-]+Z\ alice\ 0123456789ab\ 127.0.0.1\ start\ alice.one\ 200\ [0-9]+ms$ ]] ||
		wrong 'not a record'
	expect 0 ark audit show -n 3
	equal "$(cut -d ' ' -f 1 "$out" | tr '\n' ' ')" '2 3 4 '
	expect 0 ark audit show --json -n 1
	equal "$stdout" "$(tail -n 1 "$log")"
	expect 0 ark audit show --tenant bob
	quiet
	expect 0 ark audit show --tenant alice
	equal "$(wc -l <"$out")" 4
	sed -i '2s/one/two/' "$log"
	expect 0 ark audit show
	equal "$(grep -n CHANGED "$out" | cut -d : -f 1)" 2
	while IFS='|' read -r words text; do
		# shellcheck disable=SC2086 # words
		expect 64 ark audit $words
		says "$text"
	done <<-EOF
	|usage
	prove|no command 'prove'
	show x|unexpected 'x'
	show -n 0|bad count
	show --tenant A|bad tenant
	show --head 1:x|bad head
	verify --json|verify takes --head only
	EOF
}

@test "hostile words are a line of text" {
	write 1 $'a\nb\e[31m' $'\xff\xfe"\\,"hash":"'
	good 1
	expect 0 ark audit show
	equal "$(wc -l <"$out")" 1
	! grep -qP '[^\x20-\x7e\n]' "$out" || wrong 'control bytes'
}

@test "an older file goes before" {
	write 5 start a
	mv "$log" "$log.1"
	write 2 start b
	found 'begins with record 6'
	expect 0 ark audit verify "$log.1"
	[[ $stdout == '7 records, the last is 7:'* ]] || wrong 'not seven'
	sed -i '$d' "$log.1"
	expect 65 ark audit verify "$log.1"
	says 'record 6 after 4'
	expect 66 ark audit verify "$work/none"
	says none
}

# Every request leaves one line, killed or not; nothing is torn.
@test "a writer killed at every step" {
	write 1 first
	lines=1
	for call in openat write pwrite64 fsync flock unlinkat mkdirat lseek \
		sendto ftruncate getdents64; do
		case $call in
		openat) steps=$(seq 10 60) ;; # before these the loader opens
		*) steps=$(seq 1 30) ;;
		esac
		for n in $steps; do
			end=0
			timeout -s KILL 30 strace -D -f -qq \
				-o /dev/null -e trace="$call" \
				-e inject="$call:signal=KILL:when=$n" \
				"$writer" write 1 killed "$call.$n" \
				>/dev/null 2>&1 || end=$?
			begun=$(cat "$ARK_RUN"/audit/* 2>/dev/null | wc -l)
			expect 0 ark audit verify
			silent
			write 1 after "$call.$n"
			now=$(wc -l <"$log")
			killed=$(grep -c "\"killed\",\"object\":\"$call.$n\"" "$log") || :
			[ "$killed" -le 1 ] || equal "$killed" 1 "$call $n"
			# A note that was whole is a line now.
			[ "$end" != 0 ] || equal "$killed" 1 "$call $n"
			equal "$now" "$((lines + 1 + killed))" "$call $n"
			[ "$begun" = 0 ] || equal "$killed" 1 "$call $n"
			lines=$now
			[ "$end" != 0 ] || break
		done
	done
	good "$lines"
	no_notes
	[ "$(jq 'select(.result == null) | .seq' "$log" | wc -l)" -ge 5 ]
}

@test "many writers at once, some killed: one chain" {
	for i in 1 2 3 4 5 6; do
		"$writer" write 40 start "w$i" &
		good="${good:-} $!"
	done
	for i in 1 2 3 4; do
		"$writer" write 100000 loop "k$i" &
		pids="${pids:-} $!"
	done
	sleep 0.4
	# shellcheck disable=SC2086 # numbers
	kill -KILL $pids
	# shellcheck disable=SC2086 # numbers
	wait $pids || :
	# shellcheck disable=SC2086 # numbers
	wait $good
	write 1 last
	good "$(wc -l <"$log")"
	for i in 1 2 3 4 5 6; do
		equal "$(grep -c "\"object\":\"w$i\"" "$log")" 40
	done
	no_notes
}

@test "a full disk: told, nothing torn" {
	mkdir "$work/small"
	expect 0 unshare -m sh -c 'mount -t tmpfs -o size=1200k none "$work/small" &&
		export ARK_ROOT=$work/small && "$writer" write 5 start a &&
		head -c 400k /dev/zero >"$work/small/fill"
		! "$writer" write 1 start b 2>"$work/said" &&
		ark audit verify && rm "$work/small/fill" &&
		"$writer" write 1 start c && ark audit verify'
	equal "$(cat "$work/said")" 'test-audit-crash: no room for the audit log'
	[[ $stdout == '5 records'*$'\n''6 records'* ]] || wrong 'not five, then six'
	rmdir "$work/small"
}
