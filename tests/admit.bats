# How much may run at once: memory and processors of the host that ark.conf
# lets be promised, exact when many start at the same time and after kill -9.

load helper

setup_file() {
	ark_files mini
	cp "$ARK_CONF" "$work/conf"
	boot source
	expect 0 ark snap source s
	rm_all
}

teardown_file() {
	ark_end
}

setup() {
	rm_all
	cp "$work/conf" "$ARK_CONF"
	remember
}

# allow KEY=VALUE...: into ark.conf.
allow() {
	cp "$work/conf" "$ARK_CONF"
	printf '%s\n' "$@" >>"$ARK_CONF"
}

mib() {
	awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo
}

# memory_for N MIB: allow about so many sandboxes of that size; sets $fit, how
# many do fit, and $size, their MiB, so that these are between 2 and 4.
memory_for() {
	local percent=$((3 * $1 * 100 / $(mib) + 1))
	size=$1
	allow "memory_overcommit = $percent%"
	fit=$(($(mib) * percent / 100 / size))
	[ "$fit" -ge 2 ] && [ "$fit" -le 6 ]
}

# at_once N: so many restores of `s`, all at the same time; the exit codes go to
# $work/codes.
at_once() {
	local i pids=()
	rm -f "$work"/code.*
	for ((i = 1; i <= $1; i++)); do
		(
			code=0
			ark restore s "c$i" >/dev/null 2>"$work/err.$i" || code=$?
			echo $code >"$work/code.$i"
		) &
		pids+=($!)
	done
	wait "${pids[@]}"
}

count_of() { # CODE
	cat "$work"/code.* | grep -cxF "$1"
}

@test "memory: the start that is one too many is 75, with the numbers" {
	memory_for 256
	for ((i = 1; i < fit; i++)); do
		boot "m$i" -m "${size}M"
	done
	expect 0 ark create -m "${size}M" last
	expect 0 ark create -m "${size}M" more
	expect 0 ark start last
	before=$(ls "$ARK_RUN")
	expect 75 ark start more
	says "no room for sandbox 'more': $fit running have "
	[[ $stderr == *"memory, ${size}M more exceeds "*'(memory_overcommit in ark.conf)' ]] ||
		wrong 'no numbers'
	equal "$(state more)" created
	equal "$(ls "$ARK_RUN")" "$before"
	# Nothing is left of what `run` has made for it.
	expect 75 ark run --name again -m "${size}M"
	says 'no room'
	expect 66 ark inspect again
	# A smaller one has room, and what ends makes some.
	expect 0 ark stop m1
	expect 0 ark start more
	expect 75 ark start m1
	says "$fit running"
	equal "$(state m1)" stopped
}

@test "processors: the same" {
	cpus=$(getconf _NPROCESSORS_ONLN)
	allow 'cpu_overcommit = 200%'
	boot a -c $((cpus * 2 - 1))
	boot b
	expect 75 ark run --name c
	says "no room for sandbox 'c': 2 running have $((cpus * 2)) vCPUs, 1 more exceeds $((cpus * 2)), which is 200% of $cpus (cpu_overcommit in ark.conf)"
	expect 0 ark pause b
	expect 75 ark run --name c
	says 'no room'
	expect 0 ark kill b
	boot c
}

@test "many at once: exactly as many as there is room for" {
	cpus=$(getconf _NPROCESSORS_ONLN)
	allow "cpu_overcommit = $((350 / cpus))%"
	fit=$((cpus * (350 / cpus) / 100))
	[ "$fit" -ge 2 ]
	for round in 1 2; do
		at_once 8
		equal "$(count_of 0)" "$fit" "started in round $round"
		equal "$(count_of 75)" $((8 - fit)) 'refused'
		equal "$(ark ps -q | wc -l)" "$fit" 'sandboxes'
		cat "$work"/err.* | grep -v 'no room for sandbox' && wrong 'other words'
		rm_all
	done
	nothing_new
}

@test "after kill -9 of all of them there is room, without gc" {
	cpus=$(getconf _NPROCESSORS_ONLN)
	allow "cpu_overcommit = $((350 / cpus))%"
	fit=$((cpus * (350 / cpus) / 100))
	at_once 8
	equal "$(count_of 0)" "$fit" started
	# A VM without a keeper is still a VM.
	for name in $(ark ps -q); do
		kill -KILL "$(pid_of keeper "$name")"
	done
	expect 75 ark restore s more
	says "$fit running"
	kill_slots "$ARK_RUN"
	soon 5 nobody
	[ "$(find "$ARK_RUN" -name memory | wc -l)" -ge "$fit" ]
	for ((i = 1; i <= fit; i++)); do
		expect 0 ark restore s "new$i"
	done
	expect 75 ark restore s more
	says "$fit running"
}

@test "killed while they start: none is counted for ever" {
	cpus=$(getconf _NPROCESSORS_ONLN)
	allow "cpu_overcommit = $((250 / cpus))%"
	fit=$((cpus * (250 / cpus) / 100))
	for ms in 0 2 5 10 20 40 80 160; do
		ark restore s "k$ms" >/dev/null 2>&1 &
		pid=$!
		sleep "0.$(printf %03d "$ms")"
		kill -KILL $pid || :
		wait $pid || :
		soon 20 ended
	done
	rm_all
	for ((i = 1; i <= fit; i++)); do
		expect 0 ark restore s "new$i"
	done
	expect 75 ark restore s more
	says "$fit running"
	rm_all
	ark gc >/dev/null
	nothing_new
}

@test "clones: each in full, what they share once" {
	memory_for 256
	expect 75 ark fork -c "$fit" --name c s
	says "no room for $fit of snapshot 's': 0 running have 0B of memory"
	no_sandbox
	expect 0 ark fork -c $((fit - 1)) --name c s
	expect 75 ark restore s more
	says "$((fit - 1)) running"
	# What came up of those that have room stays when that was asked for.
	rm_all
	expect 75 ark fork --partial -c $((fit + 1)) --name c s
	equal "$(ark ps -q | wc -l)" $((fit - 1)) 'clones'
	# One is as much as its snapshot's memory and itself.
	rm_all
	expect 0 ark restore s one
	for ((i = 1; i < fit - 1; i++)); do
		boot "m$i" -m "${size}M"
	done
	expect 75 ark run --name more -m "${size}M"
	says "$((fit - 1)) running"
}
