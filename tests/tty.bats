# Terminals: -t, window sizes, control keys, and a terminal that is put back.

load helper

setup_file() {
	ark_files mini
	ark run --name vm mini
}

teardown_file() {
	ark_end
}

pty() {
	timeout -s KILL 60 python3 "$tests/terminal.py" "$@"
}

@test "on a terminal the command gets one, of its size, and its code comes back" {
	expect 3 pty 31x97 'expect 31 97' \
		ark exec vm -- sh -c 'tty; stty size; exit 3'
	[[ $stdout == */dev/pts/* ]] || wrong 'no terminal'
	expect 0 pty 24x80 '' ark exec -T vm -- sh -c 'tty || echo none'
	[[ $stdout == *none* ]] || wrong 'a terminal in spite of -T'
	expect 0 pty 24x80 '' ark exec -n vm -- sh -c 'tty || echo none'
	# Not both are terminals: none.
	expect 1 ark exec vm tty
	[[ $stdout == *'not a tty'* ]] || wrong 'a terminal without one'
	expect 0 ark exec -t vm tty
	[[ $stdout == /dev/pts/* ]] || wrong 'none in spite of -t'
	expect 0 ark exec -t vm -- sh -c 'echo out; echo err >&2'
	equal "$(tr -d '\r' <"$out")" $'out\nerr'
}

@test "a change of the window reaches the command" {
	expect 0 pty 24x80 $'expect ready\nsize 40x132\nexpect 40 132' \
		ark exec vm -- sh -c 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.1; done'
}

@test "^C, ^D, ^Z and ^\\ are the guest's" {
	expect 130 pty 24x80 $'expect ready\nsend \\x03' \
		ark exec vm -- sh -c 'echo ready; sleep 100'
	expect 9 pty 24x80 $'expect ready\nsend \\x03\nexpect got' \
		ark exec vm -- sh -c 'trap "echo got INT; exit 9" INT; echo ready; while :; do sleep 0.1; done'
	expect 0 pty 24x80 $'expect ready\nsend line\\n\\x04' \
		ark exec vm -- sh -c 'echo ready; cat >/dev/null'
	# Not in a shell: that of busybox ignores SIGQUIT.
	expect 131 pty 24x80 $'sleep 2\nsend \\x1c' ark exec vm sleep 100
	soon 5 none_left vm 'sleep 100'
}

@test "an interactive shell" {
	expect 4 pty 24x80 $'expect #\nsend echo $((6*7))\\n\nexpect 42\nsend exit 4\\n' \
		ark exec vm sh
	expect 4 pty 24x80 $'expect #\nsend echo $((6*7)) $TERM\\n\nexpect 42 ark-term\nsend exit 4\\n' \
		env TERM=ark-term ark shell vm
	expect 0 pty 24x80 $'send id -u\\n\nexpect 1000\nsend exit\\n' \
		ark shell -u user vm
}

@test "bytes are not changed on their way" {
	expect 0 pty 24x80 $'expect ready\nsend \\x01\\x02\\x1b[A\\xc3\\xa9\\r\nexpect 01 02 1b 5b 41 c3 a9 0d' \
		ark exec vm -- sh -c 'stty raw -echo; echo ready; head -c 8 | od -An -tx1'
}

@test "the terminal is put back when the client is killed or fails" {
	expect fail pty 24x80 $'expect ready\nsleep 0.3\nkill 15' \
		ark exec vm -- sh -c 'echo ready; sleep 100'
	[ "$code" -lt 90 ] || [ "$code" -gt 99 ] || wrong 'not restored'
	soon 5 none_left vm 'sleep 100'
	expect 127 pty 24x80 '' ark exec vm nosuch
	[[ $stdout == *nosuch* ]] || wrong 'no message'
	expect 66 pty 24x80 '' ark exec nosuch true
	expect 124 pty 24x80 '' ark exec --timeout 1 vm sleep 100
}

@test "a terminal that is closed is a hangup for the command" {
	timeout -s KILL 20 python3 - <<-'END'
		import os, pty, time
		pid, fd = pty.fork()
		if pid == 0:
		    os.execlp('ark', 'ark', 'exec', 'vm', '--', 'sh', '-c', 'echo ready; sleep 321')
		seen = b''
		while b'ready' not in seen:
		    seen += os.read(fd, 1000)
		os.close(fd)
		os.waitpid(pid, 0)
	END
	soon 5 none_left vm 'sleep 321'
}

@test "much output on a terminal is whole" {
	expect 0 pty 24x80 '' ark exec vm -- sh -c 'stty -onlcr; seq 50000'
	equal "$(tr -d '\r' <"$out" | sha256sum)" "$(seq 50000 | sha256sum)"
}

@test "with run as well" {
	expect 5 pty 33x99 'expect 33 99' ark run --rm mini -- sh -c 'stty size; exit 5'
	equal "$(ark ps -q)" vm
}

@test "a guest's messages on a terminal drive nothing" {
	expect 0 ark exec vm -- sh -c 'printf "\033]0;owned\a\033[31mred\n" >/dev/console'
	sleep 0.5
	expect 0 pty 24x80 '' ark logs vm
	[[ $stdout == *red* ]] || wrong 'console is lost'
	! grep -qP '\x1b\]0;owned' "$out" || wrong 'escape codes'
}
