# One cgroup of version 2 around each VMM: made before it runs, gone after it,
# and with the limits that this host can give.  Where version 2 is there without
# controllers there is the group and no limit, and both must be told; the tests
# of the limits themselves are for hosts with all of them (lab-only).

load helper

setup_file() {
	ark_files mini
	top=/sys/fs/cgroup
	[ "$(stat -f -c %T $top)" = cgroup2fs ] || top=$top/unified
	[ "$(stat -f -c %T $top)" = cgroup2fs ]
	export top
	# shellcheck disable=SC2155 # fails below if at all
	export hash=$(mark "$ARK_RUN")
	boot source
	expect 0 ark snap source s
	rm_all
}

teardown_file() {
	rmdir "$top/ark/00aa-0badcafe" "$top/ark/00aa-$hash" 2>/dev/null || :
	ark_end
}

setup() {
	rm_all
	ark gc >/dev/null
	remember
}

# group NAME: the directory of its group.
group() {
	echo "$top/ark/$(cat "$ARK_ROOT/vm/$1/slot")-$hash"
}

no_group() {
	equal "$(groups_of "$ARK_RUN")" '' 'a group is left'
}

limits() { # NAME FILTER
	ark inspect "$1" | jq -c ".limits | $2"
}

@test "a VMM is in the group of its slot and in no other one" {
	boot a
	expect 0 ark restore s b
	for name in a b; do
		equal "$(cat "$(group $name)/cgroup.procs")" "$(pid_of vmm $name)"
		equal "$(limits $name .cgroup)" "\"$(basename "$(group $name)")\""
		equal "$(cat "/proc/$(pid_of vmm $name)/oom_score_adj")" 500
		equal "$(sed -n 's/^0:://p' "/proc/$(pid_of keeper $name)/cgroup")" \
			"$(sed -n 's/^0:://p' /proc/self/cgroup)"
	done
	[ "$(group a)" != "$(group b)" ]
	expect 0 ark stop a
	expect 0 ark inspect a
	jq -e 'has("limits") | not' "$out" || wrong 'limits of one that stopped'
}

@test "what inspect and doctor say is what the kernel says" {
	boot a
	has=$(cat "$top/cgroup.controllers")
	expect 0 ark inspect a
	for pair in memory:memory cpus:cpu weight:cpu pids:pids; do
		null=$(jq ".limits.${pair%:*} == null" "$out")
		case " $has " in
		*" ${pair#*:} "*) equal "$null" false "$pair" ;;
		*) equal "$null" true "$pair" ;;
		esac
	done
	level=ok
	[ "$top" = /sys/fs/cgroup ] || level=warn
	for controller in memory cpu pids io; do
		[[ " $has " == *" $controller "* ]] || level=warn
	done
	line=$(ark doctor --json | jq -c 'select(.what == "cgroup")')
	equal "$(jq -r .level <<<"$line")" $level "$line"
	[ $level = ok ] || [[ $(jq -r .mend <<<"$line") == *cgroup* ]]
	# A VMM that is outside of its group is under none of its limits.
	pid_of vmm a >"$top/cgroup.procs"
	equal "$(limits a .)" null 'limits of a VMM that left'
}

@test "every way to end removes the group" {
	boot a
	[ -d "$(group a)" ]
	expect 0 ark stop a
	no_group
	expect 0 ark start a
	kill -KILL "$(pid_of vmm a)"
	soon 5 state_is a 'dead(VMM killed by signal 9 (Killed))'
	soon 5 no_group
	expect 0 ark start a
	ark exec -n a poweroff -f >/dev/null 2>&1 || :
	soon 5 state_is a 'dead(*)'
	soon 5 no_group
	expect 0 ark start a
	expect 0 ark rm -f a
	no_group
	expect 0 ark run --rm mini -- true
	no_group
	nothing_new
}

@test "kill -9 of keeper and VMM: the group goes with the slot" {
	for how in 'ark gc' 'ark rm -f a' 'ark stop a' 'ark start a'; do
		ark rm -f a
		boot a
		left=$(group a)
		vmm=$(pid_of vmm a)
		kill -KILL "$(pid_of keeper a)"
		kill -KILL "$vmm"
		soon 5 gone "$vmm"
		[ -d "$left" ]
		expect 0 $how
		[ ! -d "$left" ] || wrong "left by $how"
	done
	# A keeper that took over buries as well.
	kill -KILL "$(pid_of keeper a)"
	expect 0 ark exec a true
	kill -KILL "$(pid_of vmm a)"
	soon 5 no_group
}

@test "kill -9 while it starts, at any moment: gc removes all" {
	for ms in 0 4 8 15 30 60 120; do
		ark restore s "k$ms" >/dev/null 2>&1 &
		pid=$!
		sleep "0.$(printf %03d "$ms")"
		kill -KILL $pid || :
		wait $pid || :
		soon 20 ended
	done
	rm_all
	expect 0 ark gc
	no_group
	no_slot
	nothing_new
}

@test "gc removes what is ours and nobody holds, and nothing else" {
	boot a
	slot=$(cat "$ARK_ROOT/vm/a/slot")
	# Of another ARK_RUN; of nobody; no group of a slot; ours, but in use.
	mkdir "$top/ark/00aa-0badcafe" "$top/ark/00aa-$hash" "$top/ark/zz"
	sleep 100 3>&- &
	pid=$!
	mkdir "$top/ark/00ab-$hash"
	echo $pid >"$top/ark/00ab-$hash/cgroup.procs"
	expect 0 ark gc
	equal "$stdout" "removed cgroup 00aa-$hash"
	for name in 00aa-0badcafe zz "00ab-$hash" "$slot-$hash"; do
		[ -d "$top/ark/$name" ] || wrong "$name is gone"
	done
	kill $pid
	wait $pid || :
	expect 0 ark gc
	equal "$stdout" "removed cgroup 00ab-$hash"
	rmdir "$top/ark/00aa-0badcafe" "$top/ark/zz"
	expect 0 ark exec a true
}

@test "a group of its slot that somebody lives in fails the start" {
	expect 0 ark create a
	next=$(printf %04x "$(cat "$ARK_RUN/next")")
	mkdir "$top/ark/$next-$hash"
	sleep 100 3>&- &
	pid=$!
	echo $pid >"$top/ark/$next-$hash/cgroup.procs"
	expect 69 ark start a
	says 'cannot make its cgroup'
	no_slot
	kill -0 $pid
	[ -d "$top/ark/$next-$hash" ]
	kill $pid
	wait $pid || :
	expect 0 ark start a
	ark gc >/dev/null
}

@test "--io-rate: checked, kept, and told when it does not hold" {
	for bad in 0 1 1023K 2T x -1 20M/s; do
		expect 64 ark run --io-rate "$bad" mini -- true
		says "bad --io-rate '$bad'"
		expect 64 ark create --io-rate "$bad" mini
		says "bad --io-rate '$bad'"
	done
	expect 0 ark run --name a --io-rate 20M
	equal "$(cat "$ARK_ROOT/vm/a/io-rate")" 20971520
	if [ "$(limits a .io)" = null ]; then
		[[ $stderr == *"no limit on the disk of 'a'"* ]] || wrong 'not told'
	else
		silent
		equal "$(limits a .io)" 20971520
	fi
	expect 0 ark snap a i
	expect 0 ark restore i b
	equal "$(cat "$ARK_ROOT/vm/b/io-rate")" 20971520
	ark snap rm i
}

# ---- with all controllers ---------------------------------------------------

# bats test_tags=lab,lab-only
@test "limits: memory, swap, processors, weight, pids" {
	boot a -c 2 -m 256M
	expect 0 ark restore s b
	for pair in a:2:256 b:1:256; do
		IFS=: read -r name cpus mib <<<"$pair"
		own=128
		[ "$(cat "$(slot $name)/accel")" = kvm ] || own=$((128 + 256))
		want=$(((mib + own) * 1048576 + mib * 1048576 / 64))
		equal "$(limits $name 'del(.cgroup)')" \
			"{\"memory\":$want,\"swap\":0,\"cpus\":$((cpus + 1)),\"weight\":$((cpus * 100)),\"pids\":$((cpus + 128)),\"io\":null}"
		equal "$(cat "$(group $name)/memory.oom.group")" 1
	done
}

# bats test_tags=lab,lab-only
@test "memory: a guest that uses all of its own lives, and so does its VMM" {
	boot a -m 128M
	ark exec a -- sh -c 'dd if=/dev/zero of=/f bs=1M count=200; dd if=/dev/zero of=/dev/null bs=500M count=1; ls -lR / >/dev/null; :'
	expect 0 ark exec a echo alive
	equal "$stdout" alive
	[ "$(sed -n 's/^oom_kill //p' "$(group a)/memory.events")" = 0 ]
	[ "$(cat "$(group a)/memory.swap.max")" = 0 ]
}

# bats test_tags=lab,lab-only
@test "memory: a VMM over its limit is ended, and that is told" {
	boot a -m 256M
	# It has about that already: what the guest takes now is too much.
	echo $(($(cat "$(group a)/memory.current") + (16 << 20))) \
		>"$(group a)/memory.max"
	timeout 60 ark exec a -- dd if=/dev/zero of=/dev/shm/f bs=1M count=150 \
		>/dev/null 2>&1 || :
	soon 20 state_is a 'dead(*)'
	[[ $(state a) == 'dead(VMM killed: out of memory, its limit is '* ]] ||
		{ state a; false; }
	soon 5 no_group
	expect 0 ark start a
	expect 0 ark exec a true
}

# bats test_tags=lab,lab-only
@test "processors and pids: no more than that for whatever a VMM becomes" {
	boot a
	# A program of ours in its place.
	bash -c 'echo $$ >"$0/cgroup.procs"; for ((i = 0; i < 300; i++)); do sleep 100 & done' \
		"$(group a)" >/dev/null 2>"$work/forks" 3>&- || :
	grep -q 'fork' "$work/forks"
	[ "$(cat "$(group a)/pids.current")" -le 129 ]
	# A VMM that cannot have a thread may die of that.
	grep -v "^$(pid_of vmm a)\$" "$(group a)/cgroup.procs" |
		xargs kill -KILL
	expect 0 ark rm -f a
	soon 5 no_group
	nobody
}

# bats test_tags=lab,lab-only
@test "--io-rate holds on a disk" {
	truncate -s 1G "$work/disk.img"
	loop=$(losetup -f --show "$work/disk.img")
	mkfs.ext4 -q "$loop"
	mkdir "$work/mnt"
	mount "$loop" "$work/mnt"
	mkdir -m 700 "$work/mnt/root" "$work/mnt/root/image"
	cp -a --sparse=always "$ARK_ROOT/image/mini" "$work/mnt/root/image/"
	touch "$work/mnt/root/tcg-told"
	ARK_ROOT=$work/mnt/root
	expect 0 ark run --name a --io-rate 2M
	silent
	equal "$(limits a .io)" 2097152
	equal "$(cut -d ' ' -f 1 "$(group a)/io.max")" "$(cat "/sys/class/block/${loop#/dev/}/dev")"
	begin=$SECONDS
	expect 0 ark exec a -- sh -c 'dd if=/dev/urandom of=/f bs=1M count=16 && sync'
	sync -f "$work/mnt"
	[ $((SECONDS - begin)) -ge 5 ]
	ark rm -f a
	umount "$work/mnt"
	losetup -d "$loop"
}
