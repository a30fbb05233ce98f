# --ttl: how long a virtual machine may run.

load helper

setup_file() {
	ark_files mini
	# A clone of it has the time anew, and with it all that is tested here.
	boot source --ttl 1h
	ark snap source s >/dev/null
	ark rm -f source
}

teardown_file() {
	ark_end
}

setup() {
	fresh
}

# left_of NAME: milliseconds until its end, by its slot.
left_of() {
	local up
	read -r up _ </proc/uptime
	echo $(($(cat "$(slot "$1")/expires") - ${up/./}0))
}

# expire NAME SECONDS: let its time end so much from now.  What a keeper of it
# does is what one does that has waited.
expire() {
	local up
	read -r up _ </proc/uptime
	echo $((${up/./}0 + $2 * 1000)) >"$(slot "$1")/expires"
	kill -KILL "$(pid_of keeper "$1")"
	soon 5 eval "! pid_of keeper $1"
}

@test "--ttl: checked, and kept" {
	for bad in '' 0 -1 x 0.5 500ms 1.5 11y 20000d; do
		expect 64 ark run --ttl "$bad" mini -- true
		says "bad --ttl '$bad'"
		expect 64 ark create --ttl "$bad" a
		says "bad --ttl '$bad'"
	done
	while read -r text seconds; do
		expect 0 ark create --ttl "$text" a
		equal "$(cat "$ARK_ROOT/vm/a/ttl")" "$seconds" "$text"
		expect 0 ark rm a
	done <<-'END'
	90 90
	30s 30
	10m 600
	2h 7200
	1d 86400
	END
	expect 0 ark create a
	[ ! -e "$ARK_ROOT/vm/a/ttl" ]
	expect 0 ark rm a
	nothing_new
}

# bats test_tags=lab
@test "it ends with that reason, running or paused, and can be started again" {
	boot v --ttl 10m
	left=$(left_of v)
	[ "$left" -gt 400000 ] && [ "$left" -le 600000 ] || equal "$left" '10 min'
	expect 0 ark stop -t 0 v
	# Not every boot is quick, but each has a time of its own.
	within 20 >"$ARK_ROOT/vm/v/ttl"
	expect 0 ark start v
	begin=$(left_of v)
	ark wait v >"$BATS_TEST_TMPDIR/wait" &
	[ "$begin" -gt 0 ]
	expect 0 ark pause v
	wait $!
	equal "$(cat "$BATS_TEST_TMPDIR/wait")" 'dead: expired'
	equal "$(state v)" 'dead(expired)'
	expect 125 ark exec v true
	says expired
	nobody
	expect 0 ark inspect v
	jq -e '.state == "dead" and .reason == "expired"' "$out" || wrong inspect
	expect 0 ark start v
	[ "$(left_of v)" -gt 0 ]
	expect 0 ark rm -f v
	nothing_new
}

@test "a start that takes longer is none" {
	expect 69 ark run --name v --ttl 1s mini
	says 'expired'
	nothing_new
}

@test "with --rm nothing is left" {
	expect 0 ark run -d --rm --ttl "$(within 20)s" --name v mini
	expect 125 ark run --rm --ttl "$(within 20)s" mini -- sleep 1000
	soon 10 no_sandbox
	nothing_new
}

@test "a snapshot keeps it, and each clone has all of it" {
	equal "$(cat "$ARK_ROOT/snap/s/ttl")" 3600
	expect 0 ark fork -c 2 --name c s
	for name in c-1 c-2; do
		equal "$(cat "$ARK_ROOT/vm/$name/ttl")" 3600
		[ "$(left_of $name)" -gt 3500000 ]
		[ "$(left_of $name)" -le 3600000 ]
	done
	expect 0 ark-snap verify s
	expire c-1 -1
	expect 125 ark exec -n c-1 sleep 10
	soon 5 state_is c-1 'dead(expired)'
	equal "$(state c-2)" running
	expect 0 ark rm -f c-1 c-2
	nothing_new
}

# bats test_tags=lab
@test "kill -9 of the keeper does not lose it" {
	expect 0 ark restore s v
	vmm=$(pid_of vmm v)
	expires=$(cat "$(slot v)/expires")
	kill -KILL "$(pid_of keeper v)"
	soon 5 eval '! pid_of keeper v'
	expect 0 ark exec v true
	equal "$(cat "$(slot v)/expires")" "$expires"
	expire v 10
	begin=$SECONDS
	expect 0 ark exec v true
	equal "$(pid_of vmm v)" "$vmm"
	soon 20 state_is v 'dead(expired)'
	[ $((SECONDS - begin)) -ge 5 ]
	expect 0 ark rm v
	# One whose time is over while nobody watches: the next keeper ends it.
	expect 0 ark restore s v
	expire v -1
	equal "$(state v)" running
	expect 0 ark gc
	soon 10 state_is v 'dead(expired)'
	expect 0 ark rm -f v
	nothing_new
}

@test "a time that cannot be watched is none: it ends" {
	expect 0 ark restore s v
	kill -KILL "$(pid_of keeper v)"
	soon 5 eval '! pid_of keeper v'
	echo never >"$(slot v)/expires"
	ark exec -n v true || :
	soon 10 state_is v 'dead(cannot watch its time: *)'
	expect 0 ark rm v
	# Nor is one that cannot be read at the start.
	expect 0 ark create v
	echo never >"$ARK_ROOT/vm/v/ttl"
	expect 74 ark start v
	says 'cannot record when'
	soon 5 state_is v 'dead(*)'
	expect 0 ark rm v
	nothing_new
}
