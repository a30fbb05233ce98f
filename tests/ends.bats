# How VMs end by themselves, each with its reason; and guests that print for
# ever.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

setup() {
	rm_all
}

# ends NAME REASON COMMAND...: the guest runs it, and is dead for that reason.
ends() {
	local name=$1 reason=$2
	shift 2
	ark wait "$name" >"$BATS_TEST_TMPDIR/waited" &
	waiter=$!
	ark exec -n "$name" -- "$@" >"$BATS_TEST_TMPDIR/o" 2>&1 || :
	wait $waiter
	equal "$(cat "$BATS_TEST_TMPDIR/waited")" "dead: $reason"
	equal "$(state "$name")" "dead($reason)"
	expect 0 ark inspect "$name"
	jq -e --arg r "$reason" '.state == "dead" and .reason == $r and
		(.ready | not)' "$out" || wrong inspect
	expect 125 ark exec "$name" true
	says "$reason"
	nobody
	expect 0 ark wait "$name"
	equal "$stdout" "dead: $reason"
}

# bats test_tags=lab
@test "a guest that powers off, reboots, panics: dead with that reason; and starts again" {
	boot v
	ends v 'guest powered off' poweroff -f
	expect 0 ark start v
	equal "$(state v)" running
	ends v 'guest rebooted' reboot -f
	expect 0 ark start v
	ends v 'guest panicked' sh -c 'echo 1 >/proc/sys/kernel/sysrq; echo c >/proc/sysrq-trigger'
	# The reason outlives the slot, and what is gone stays gone.
	expect 0 ark gc
	equal "$(state v)" 'dead(guest panicked)'
	expect 0 ark stop v
	quiet
	equal "$(state v)" 'dead(guest panicked)'
	expect 0 ark rm v
	quiet
}

@test "a guest that kills its agent, its init or its network does not hang anybody" {
	boot v
	# PID 1 takes no signal that it has no handler for.
	ark exec -n v -- sh -c 'kill -9 1; kill -STOP 1; kill -SEGV 1; kill -ABRT 1; kill -HUP 1'
	expect 0 ark exec --timeout 10 v echo alive
	equal "$stdout" alive
	ark exec -d v -- sh -c 'sleep 0.5; ip link set eth0 down' >/dev/null
	sleep 1.5
	expect 0 ark ps --probe -o name,answers --no-header
	[[ $stdout =~ ^v\ +no ]] || wrong probe
	begin=$SECONDS
	expect 125 timeout 60 ark exec v true
	says v
	[ $((SECONDS - begin)) -le 30 ] || wrong 'hung'
	begin=$SECONDS
	expect 0 ark stop -t 2 v
	quiet
	[ $((SECONDS - begin)) -le 10 ] || wrong 'hung'
	expect 0 ark rm v
}

@test "console flood: the log stays under its cap and the VM answers" {
	boot v
	follow=$BATS_TEST_TMPDIR/follow
	timeout 60 ark logs -f v >/dev/null &
	id=$(ark exec -d v -- sh -c 'yes "a line of the flood" >/dev/ttyS0')
	most=0
	for _ in {1..10}; do
		sleep 1
		size=$(stat -c %s "$ARK_ROOT/vm/v/console.log")
		[ "$size" -le "$most" ] || most=$size
		equal "$(ark exec --timeout 20 v echo answers)" answers
	done
	[ "$most" -le $((1 << 20)) ] || equal "$most" 'at most 1 MiB'
	[ "$most" -gt 100000 ] || equal "$most" 'more than that'
	expect 0 ark exec kill v "$id"
	expect 0 ark exec v -- sh -c 'echo; echo last words >/dev/console'
	soon 20 bash -c 'ark logs v | tail -n 5 | grep -q "last words"'
	equal "$(ls -A "$ARK_ROOT/vm/v" | grep -c console)" 1
	# The keeper is idle when the guest is.
	expect 0 ark stop v
	expect 0 ark rm v
}

@test "a console that nobody reads does not stop the guest" {
	boot v
	kill -KILL "$(pid_of keeper v)"
	vmm=$(pid_of vmm v)
	# More than a FIFO holds, with no keeper there: the next command brings
	# one, which reads it.
	expect 0 timeout 60 ark exec v -- sh -c 'yes | head -c 300000 >/dev/ttyS0 & echo started'
	equal "$stdout" started
	expect 0 timeout 60 ark exec v echo answers
	soon 5 pid_of keeper v
	equal "$(pid_of vmm v)" "$vmm" 'the VMM was ended'
	expect 0 ark rm -f v
	quiet
}
