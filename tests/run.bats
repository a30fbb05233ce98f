# ark run: create, start and exec in one.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

@test "the first start on a host says what an emulator is not, once" {
	rm "$ARK_ROOT/tcg-told"
	remember
	expect 3 env ARK_ACCEL=tcg ark run --rm mini -- sh -c 'echo out; exit 3'
	equal "$stdout" out
	[[ $stderr == *TCG* ]] || wrong 'not told'
	equal "$(wc -l <"$err")" 1
	expect 0 env ARK_ACCEL=tcg ark run --rm mini -- sh -c 'echo out; echo err >&2'
	equal "$stdout" out
	equal "$stderr" err
	nothing_new
}

@test "without --: the first word is the image" {
	expect 5 ark run --rm mini sh -c 'echo "$#"; exit 5' sh a b
	equal "$stdout" 2
	expect 0 ark run --rm -- echo 'image of ark.conf'
	equal "$stdout" 'image of ark.conf'
	nothing_new
}

# bats test_tags=lab
@test "without a command: starts it and prints its name" {
	remember
	expect 0 ark run --name v -m 128M --cpus 2 --disk 64M
	equal "$stdout" v
	silent
	equal "$(state v)" running
	expect 0 ark exec v -- sh -c 'nproc; df -k / | tail -n 1; free -m | sed -n 2p'
	[[ $stdout == 2$'\n'* ]] || wrong cpus
	[ "$(awk 'NR == 2 { print $2 }' "$out")" -le 65536 ] || wrong disk
	[ "$(awk 'NR == 3 { print $2 }' "$out")" -le 128 ] || wrong memory
	expect 73 ark run --name v mini
	says exists
	expect 73 ark run --rm --name v mini -- true
	says exists
	equal "$(state v)" running
	expect 0 ark rm -f v
	nothing_new
}

@test "-d with a command: it runs on, the name is printed" {
	expect 0 ark run -d --name v -e A=1 -u user -w /tmp mini -- sh -c 'id -u; pwd; echo $A; sleep 300'
	equal "$stdout" v
	silent
	id=$(ark exec ls -q v)
	soon 10 bash -c "ark exec logs v $id | grep -qx 1"
	expect 0 ark exec logs v "$id"
	equal "$stdout" $'1000\n/tmp\n1'
	expect 0 ark rm -f v
	# A command that cannot be run: its code; the name is told all the same.
	code=0
	ark run -d --name w mini -- nosuch >"$work/o" 2>"$work/e" || code=$?
	equal "$code" 127
	ark rm -f w
	nothing_new
}

@test "options of exec, its codes, and that the sandbox is gone after each" {
	expect 124 ark run --rm --timeout 1 mini -- sleep 60
	expect 127 ark run --rm mini -- nosuch
	says nosuch
	expect 137 ark run --rm --status-fd 9 mini -- sh -c 'kill -9 $$' 9>"$work/status"
	jq -e '.signal == 9' "$work/status"
	expect 0 ark run --rm -i mini -- wc -c <<<'12345'
	equal "$stdout" 6
	nothing_new
}

@test "signals end the command and the sandbox" {
	for signal in INT TERM HUP; do
		env --default-signal=$signal ark run --rm --name v mini -- sleep 100 \
			>/dev/null 2>"$work/e" &
		pid=$!
		soon 20 left v 'sleep 100'
		kill -$signal $pid
		wait $pid && code=0 || code=$?
		case $signal in
		INT) equal "$code" 130 ;;
		TERM) equal "$code" 143 ;;
		HUP) equal "$code" 129 ;;
		esac
		soon 10 no_sandbox
		nothing_new
	done
	# And already while it boots.
	env --default-signal=TERM ark run --rm --name v mini -- true >/dev/null 2>&1 &
	pid=$!
	sleep 0.7
	kill -TERM $pid
	wait $pid || :
	soon 15 no_sandbox
	nothing_new
}

@test "a guest that dies during the command: 125 with the cause, and it is removed" {
	expect 125 ark run --rm mini -- poweroff -f
	says 'powered off'
	nothing_new
}

@test "four at once" {
	for i in 1 2 3 4; do
		ark run --rm mini -- sh -c "echo $i; exit $i" >"$work/o$i" 2>"$work/e$i" &
		pids[i]=$!
	done
	for i in 1 2 3 4; do
		code=0
		wait "${pids[i]}" || code=$?
		equal "$code $(cat "$work/o$i" "$work/e$i")" "$i $i"
		rm "$work/o$i" "$work/e$i"
	done
	nothing_new
}
