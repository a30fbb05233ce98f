# ark top: the columns again and again, on a terminal and on none.

load helper

setup_file() {
	ark_files mini
	boot v
	ark snap v s >/dev/null
	ark fork -c 2 --name c s >/dev/null
	ark pause c-2
	ark create cold >/dev/null
	# Whose last words would drive a terminal.
	ark create evil >/dev/null
	printf 'dead: \033[2J\033]0;title\007\n' >"$ARK_ROOT/vm/evil/exit"
	printf '\033[31m\n' >"$ARK_ROOT/vm/evil/image"
	ark exec -d v -- sh -c 'while :; do :; done' >/dev/null
}

teardown_file() {
	ark_end
}

pty() {
	timeout -s KILL 60 python3 "$tests/terminal.py" "$@"
}

# looks: the listings of $out, by paragraphs: 2, 4 ... are tables.
paragraph() {
	awk -v RS= -v n="$1" 'NR == n' "$out"
}

@test "into a pipe: one after the other, those that compute first" {
	expect 0 ark top -d 1 -n 3
	silent
	equal "$(awk -v RS= 'END { print NR }' "$out")" 6
	! grep -q $'\033' "$out" || wrong 'drives a terminal'
	# 14:00:01  5 sandboxes ...: a second between two.
	read -r first _ < <(paragraph 1)
	read -r last _ < <(paragraph 5)
	took=$((($(date -d "$last" +%s) - $(date -d "$first" +%s) + 86400) % 86400))
	[ "$took" -ge 2 ] || equal "$took" 2
	paragraph 1 | head -n 1 | grep -qxE \
		'[0-9:]{8}  5 sandboxes, 2 running, 1 paused' || wrong totals
	paragraph 1 | tail -n 1 | grep -qxE "memory: 768M given of [0-9.]+[MGT],\
 [0-9.]+[MG] private; processors: [0-9]+\.[0-9] of $(nproc)00 %" || wrong totals
	equal "$(paragraph 2 | head -n 1 | xargs)" \
		'NAME CPU MEMORY PRIVATE RESIDENT DISK RX TX AGE EXPIRES PARENT STATE'
	equal "$(paragraph 6 | awk '{ print $1 }' | xargs)" 'NAME v c-1 c-2 cold evil'
	# Since the listing before: that a paused one has computed earlier, to
	# be where it is, is not told any more.
	paragraph 6 | awk '$1 == "v" { v = $2 } $1 == "c-1" { c = $2 }
		END { exit !(v > 0 && v > 2 * c) }' || wrong 'a busy one'
	paragraph 2 | awk '$1 == "c-2" { exit !($2 > 0) }' || wrong 'at first'
	equal "$(paragraph 6 | awk '$1 == "c-2" { print $2, $12 }')" '0.0 paused'
	equal "$(paragraph 6 | awk '$1 == "cold" { print $2, $4, $11 }')" '- - -'
	equal "$(paragraph 6 | awk '$1 == "c-1" { print $11 }')" s
}

@test "private memory is summed up" {
	expect 0 ark top -n 1 -o name,private
	sum=$(paragraph 2 | awk '{ sub(/M$/, "", $2); s += $2 } END { print int(s) }')
	told=$(sed -n 's/.* \([0-9]*\)M private.*/\1/p' "$out")
	[ $((sum - told)) -le 3 ] && [ $((told - sum)) -le 3 ] ||
		equal "$told" "$sum"
}

@test "columns and the order are as one likes" {
	expect 0 ark top -n 1 -o parent,name -s name
	equal "$(paragraph 2 | awk '{ print $2 }' | xargs)" 'NAME c-1 c-2 cold evil v'
	expect 0 ark top -n 1 -o name --sort private --columns name,image
	equal "$(paragraph 2 | awk '{ print $1 }' | sed -n '1,2p;5,6p' | xargs)" \
		'NAME v cold evil'
	equal "$(paragraph 2 | awk '$1 == "evil" { print $2 }')" '?[31m'
	expect 0 ark top -n 1 -s state
	[[ $(paragraph 2) == *'dead(?[2J?]0;title?)'* ]] || wrong reason
	for bad in '-d 0' '-d x' '-d 50ms' '-d 2h' '-n 0' '-n x' '-o nosuch' \
		'-o json' '-s nosuch' '-s name,cpu' nosuch; do
		# shellcheck disable=SC2086 # words
		expect 64 ark top $bad
		says ''
	done
}

@test "with no sandbox, and a reader that goes" {
	mkdir "$BATS_TEST_TMPDIR/root"
	expect 0 ark -R "$BATS_TEST_TMPDIR/root" top -n 1
	[[ $stdout == *' 0 sandboxes, 0 running, 0 paused'*'NAME '* ]] ||
		wrong empty
	begin=$SECONDS
	ark top -d 100ms 2>"$BATS_TEST_TMPDIR/err" | head -n 1 >/dev/null
	[ $((SECONDS - begin)) -le 20 ]
	equal "$(cat "$BATS_TEST_TMPDIR/err")" ''
	code=0
	ark top -n 1 >/dev/full 2>"$BATS_TEST_TMPDIR/err" || code=$?
	equal "$code $(wc -l <"$BATS_TEST_TMPDIR/err")" '74 1'
}

# given_back: the other screen was left, and last of all.
given_back() {
	[ "$(tail -c 19 "$out")" = $'\033[?7h\033[?25h\033[?1049l' ] ||
		wrong 'the terminal is left as it was'
	# What was sent: what the program itself needs, and text.
	! sed 's/\x1b\[\(?[0-9]*[hl]\|[HJK]\)//g' "$out" |
		grep -qP '[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]' ||
		wrong 'drives the terminal'
}

@test "on a terminal: fits the window, and q, ^C and signals give it back" {
	expect 0 pty 8x40 $'expect NAME\nraw\nexpect cold\nexpect NAME\nsend q' \
		ark top -d 500ms
	given_back
	# As high as the window and as wide: the last line, of evil, is not seen.
	sed 's/\x1b\[H/\n&/g' "$out" | tr -d '\r' |
		sed 's/\x1b\[[?0-9]*[a-zA-Z]//g' >"$BATS_TEST_TMPDIR/text"
	[ "$(wc -L <"$BATS_TEST_TMPDIR/text")" = 40 ] || wrong width
	! grep -q evil "$out" || wrong height
	grep -q cold "$out"
	while read -r script code; do
		expect "$code" pty 24x80 $'expect NAME\nraw\n'"${script//_/ }" \
			ark top
		given_back
	done <<-'END'
	send_q 0
	send_\x03 254
	send_\x1c 253
	kill_2 254
	kill_15 241
	kill_1 255
	END
	expect 0 pty 24x80 'expect NAME' ark top -n 1
	given_back
	# Not on the terminal's screen, and not for ever.
	expect 0 pty 24x80 '' ark top -b -n 2 -d 100ms
	! grep -q $'\033' "$out" || wrong 'no batch'
}

@test "a window that changes, a stop and what comes after it" {
	expect 0 pty 5x40 \
		$'expect NAME\nsize 24x100\nexpect PARENT\nexpect evil\nsend q' \
		ark top -d 1h
	given_back
	expect 0 pty 24x80 \
		$'expect NAME\nsend \\x1a\nstopped\ncooked\nkill 18\nexpect NAME\nraw\nsend q' \
		ark top -d 1h
	given_back
}

@test "it goes with its terminal" {
	pty 24x80 $'expect NAME\nkill 9' ark top >/dev/null || :
	python3 - <<-'END'
	import os, pty, select, time
	pid, fd = pty.fork()
	if pid == 0:
	    os.execvp('ark', ['ark', 'top', '-d', '1h'])
	seen = b''
	while b'NAME' not in seen:
	    seen += os.read(fd, 65536)
	os.close(fd)
	end = time.time() + 20
	while not os.waitpid(pid, os.WNOHANG)[0]:
	    assert time.time() < end, 'it stays'
	    time.sleep(0.1)
	END
}
