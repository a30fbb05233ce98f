# kill -9 of everything at any time: afterwards `ark ps` tells the truth, what
# lives still works, `ark rm -f` works twice, and nothing is left.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

setup() {
	fresh
}

# bats test_tags=lab
@test "kill -9 of the VMM" {
	boot v
	ark wait v >"$BATS_TEST_TMPDIR/wait" &
	kill -KILL "$(pid_of vmm v)"
	soon 5 state_is v 'dead(VMM killed by signal 9 (Killed))'
	wait $!
	equal "$(cat "$BATS_TEST_TMPDIR/wait")" 'dead: VMM killed by signal 9 (Killed)'
	expect 125 ark exec v true
	says 'killed by signal 9'
	expect 73 ark pause v
	says dead
	expect 0 ark logs v
	expect 0 ark start v
	expect 0 ark exec v echo again
	equal "$stdout" again
	kill -KILL "$(pid_of vmm v)"
	removed v
}

# bats test_tags=lab
@test "kill -9 of the keeper: the VM goes on, and the next command mends it" {
	boot v
	vmm=$(pid_of vmm v)
	expect 0 ark exec -d v sleep 1000
	kill -KILL "$(pid_of keeper v)"
	soon 5 state_is v running
	expect 0 ark inspect v
	jq -e '.state == "running" and (.keeper | not)' "$out" || wrong inspect
	begin=$SECONDS
	expect 0 ark exec v echo mended
	equal "$stdout" mended
	silent
	[ $((SECONDS - begin)) -le "$(within 10)" ]
	keeper=$(pid_of keeper v)
	equal "$(pid_of vmm v)" "$vmm"
	expect 0 ark exec v -- sh -c 'echo marker >/dev/console'
	soon 5 bash -c 'ark logs v | grep -q marker'
	# The new one knows pauses and ends, too.
	expect 0 ark pause v
	equal "$(state v)" paused
	expect 0 ark resume v
	equal "$(pid_of keeper v)" "$keeper"
	ark exec -n v poweroff -f >/dev/null 2>&1 || :
	soon 5 state_is v 'dead(*)'
	equal "$(state v)" 'dead(guest powered off)'
	removed v
}

# bats test_tags=lab
@test "kill -9 of the keeper, then stop, pause, kill, gc and rm -f" {
	boot v
	kill -KILL "$(pid_of keeper v)"
	expect 0 ark pause v
	equal "$(state v)" paused
	expect 0 ark resume v
	expect 0 ark stop v
	quiet
	equal "$(state v)" stopped
	expect 0 ark start v
	keeper=$(pid_of keeper v)
	kill -KILL "$keeper"
	# To gc one that is still dying is one that lives.
	soon 5 gone "$keeper"
	expect 0 ark gc
	[[ $stdout == *keeper*v* ]] || wrong 'gc did nothing about it'
	soon 5 pid_of keeper v
	expect 0 ark exec v true
	kill -KILL "$(pid_of keeper v)"
	removed v
}

@test "kill -9 of both, in both orders" {
	boot v
	vmm=$(pid_of vmm v)
	kill -KILL "$(pid_of keeper v)"
	kill -KILL "$vmm"
	soon 5 state_is v 'dead(*)'
	expect 125 ark exec v true
	says dead
	expect 0 ark wait v
	[[ $stdout == dead:* ]] || wrong wait
	expect 0 ark gc
	[[ $(state v) == dead* ]]
	expect 0 ark start v
	expect 0 ark exec v echo again
	vmm=$(pid_of vmm v) keeper=$(pid_of keeper v)
	kill -STOP "$keeper"
	kill -KILL "$vmm"
	kill -KILL "$keeper"
	soon 5 state_is v 'dead(*)'
	removed v
}

@test "ark run --rm killed: the sandbox is dead or gone, and gc takes the rest" {
	ark run --rm --name v mini -- sleep 100 >/dev/null 2>&1 &
	pid=$!
	soon 20 state_is v running
	soon 10 left v 'sleep 100'
	kill -KILL $pid
	wait $pid || :
	# Whoever is left can be removed; a client that died took its exec along.
	removed v
	ark run --rm --name v mini -- sleep 100 >/dev/null 2>&1 &
	pid=$!
	soon 20 state_is v running
	kill -TERM $pid
	code=0
	wait $pid || code=$?
	equal "$code" 143
	soon 10 no_sandbox
	nothing_new 10
}

@test "ARK_RUN of another boot" {
	boot v
	boot w
	ark stop w
	# Nothing of a boot lives on in the next: end it as a crash would.
	kill_slots "$ARK_RUN"
	soon 5 nobody
	echo 00000000-0000-4000-8000-000000000000 >"$ARK_RUN/boot_id"
	cp -r "$ARK_RUN" "$work/before"
	expect 0 ark ps -o name,state --no-header
	equal "$(sed 's/  */ /g; s/ $//' "$out")" $'v stopped\nw stopped'
	expect 0 ark ps --json
	expect 125 ark exec v true
	says stopped
	expect 0 ark stop v
	expect 0 ark wait v
	equal "$stdout" stopped
	expect 0 ark logs v
	expect 0 ark start v
	equal "$(state v)" running
	equal "$(cat "$ARK_RUN/boot_id")" "$(cat /proc/sys/kernel/random/boot_id)"
	expect 0 ark exec v echo fine
	expect 0 ark rm -f v w
	rm -r "$work/before"
	# gc on one that is stale.
	mkdir -p "$ARK_RUN/0042"
	echo x >"$ARK_RUN/0042/vm"
	echo 00000000-0000-4000-8000-000000000000 >"$ARK_RUN/boot_id"
	expect 0 ark gc
	[ ! -e "$ARK_RUN/0042" ]
	rm -rf "$ARK_RUN"
	expect 0 ark ps
	expect 0 ark gc
	mkdir -p -m 700 "$ARK_RUN"
	nothing_new
}

@test "gc takes what has no holder, and only that" {
	boot v
	mkdir "$ARK_RUN/00aa" "$ARK_ROOT/vm/.half.999999.tmp" \
		"$ARK_ROOT/image/.half.999999.tmp"
	echo gone >"$ARK_RUN/00aa/vm"
	touch "$ARK_ROOT/vm/.half.999999.tmp/disk"
	mkdir "$ARK_RUN/00bb" "$ARK_ROOT/vm/.held.999999.tmp"
	exec 7<"$ARK_RUN/00bb" 8<"$ARK_ROOT/vm/.held.999999.tmp"
	flock 7
	flock 8
	expect 0 ark gc
	silent
	equal "$(wc -l <"$out")" 3
	[ ! -e "$ARK_RUN/00aa" ]
	[ ! -e "$ARK_ROOT/vm/.half.999999.tmp" ]
	[ -e "$ARK_RUN/00bb" ]
	[ -e "$ARK_ROOT/vm/.held.999999.tmp" ]
	exec 7<&- 8<&-
	expect 0 ark gc
	equal "$(wc -l <"$out")" 2
	equal "$(state v)" running
	expect 0 ark exec v echo fine
	# Ten of them and a start at once do not hurt each other.
	for _ in {1..10}; do
		ark gc >>"$BATS_TEST_TMPDIR/gc" 2>&1 &
		pids+=($!)
		ark create >>"$BATS_TEST_TMPDIR/names" &
		pids+=($!)
	done
	wait "${pids[@]}"
	equal "$(ark ps -q | wc -l)" 11
	equal "$(cat "$BATS_TEST_TMPDIR/gc")" ''
	expect 0 ark exec v echo fine
	expect 0 rm_all
	nothing_new
}

@test "--rm of one whose VM ends: removed, also when it was killed" {
	for how in stop kill VMM poweroff; do
		boot v --rm
		case $how in
		stop | kill) expect 0 ark $how v ;;
		VMM) kill -KILL "$(pid_of vmm v)" ;;
		poweroff) ark exec -n v poweroff -f >/dev/null 2>&1 || : ;;
		esac
		soon 10 no_sandbox || equal "$how" removed
		nothing_new 10
	done
	# The keeper that should do it is dead: gc does.
	boot v --rm
	vmm=$(pid_of vmm v)
	kill -KILL "$(pid_of keeper v)"
	kill -KILL "$vmm"
	soon 5 state_is v 'dead(*)'
	expect 0 ark gc
	equal "$(ark ps -q)" ''
	nothing_new
}
