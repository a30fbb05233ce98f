# Forks: many at once of one snapshot, each with an identity of its own, all or
# none.

load helper

setup_file() {
	ark_files mini
	export snaps=$ARK_ROOT/snap
	ark run --name v mini >/dev/null </dev/null
	# shellcheck disable=SC2016 # for the guest
	ark exec -d v -- sh -c 'i=0; while i=$((i + 1)); do
		echo $i >/run/.tick; mv /run/.tick /run/tick; sleep 0.1; done' >/dev/null
	ark exec -n v -- sh -c 'echo before >/root/before'
	ark snap v s >/dev/null
}

teardown_file() {
	ark_end
}

setup() {
	[ "$(state v)" = running ]
	remember
}

teardown() {
	keep v s
}

sums() {
	(cd "$snaps/s" && sha256sum -- * && stat -c '%n %s %Y %a' -- *)
}

all_exec() { # COMMAND: in all of $names at once; the answers in order
	local i=0 name pids=()
	for name in $names; do
		i=$((i + 1))
		ark exec -n "$name" -- sh -c "$1" >"$BATS_TEST_TMPDIR/x.$i" 2>&1 &
		pids+=($!)
	done
	# Those alone: bats has a child that waits for its time limit.
	wait "${pids[@]}" || :
	for name in $(seq $i); do
		cat "$BATS_TEST_TMPDIR/x.$name"
	done
}

distinct() { # WHAT COUNT: of the lines on stdin
	local lines
	lines=$(cat)
	equal "$(sort -u <<<"$lines" | grep -c .)" "$2" "$1: $lines"
}

made_of() { # SANDBOX SNAPSHOT: with a change that is in the snapshot
	expect 0 ark snap "$1" "$2"
	silent
}

# bats test_tags=lab
@test "many at once of one whose source runs: each somebody else, nothing shared" {
	many=${ARK_TEST_CLONES:-8}
	sums >"$BATS_TEST_TMPDIR/sums"
	before=$(date +%s%N)
	expect 0 ark fork -c "$many" --name f s
	silent
	names=$(cat "$out")
	equal "$(sort -V <<<"$names")" "$(seq -f 'f-%g' "$many")"
	# The very first exec of each.
	# shellcheck disable=SC2016 # for the guest
	all_exec 'u=$(cat /proc/sys/kernel/random/uuid); r=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d " \n")
		echo "$u $r $(cat /etc/machine-id) $(hostname) $(cat /run/ark/generation) $(date +%s) $(cat /etc/hostname 2>/dev/null)"' \
		>"$BATS_TEST_TMPDIR/ids"
	after=$(date +%s)
	equal "$(wc -l <"$BATS_TEST_TMPDIR/ids")" "$many" "$(cat "$BATS_TEST_TMPDIR/ids")"
	for field in 1 2 3 4 5; do
		cut -d ' ' -f $field "$BATS_TEST_TMPDIR/ids" | distinct "field $field" "$many"
	done
	# Nor the source's.
	for file in /etc/machine-id /run/ark/generation; do
		mine=$(ark exec -n v cat $file)
		expect 1 grep -F "$mine" "$BATS_TEST_TMPDIR/ids"
	done
	equal "$(cut -d ' ' -f 4 "$BATS_TEST_TMPDIR/ids" | sort -V)" "$names"
	while read -r clock; do
		[ "$clock" -ge $((before / 1000000000 - 1)) ] && [ "$clock" -le $((after + 1)) ] ||
			equal "$clock" "$((before / 1000000000)) to $after"
	done < <(cut -d ' ' -f 6 "$BATS_TEST_TMPDIR/ids")
	# The host knows the same generations.
	for name in $names; do
		grep -q " $name $(cat "$(slot "$name")/generation") " "$BATS_TEST_TMPDIR/ids"
	done
	# shellcheck disable=SC2016 # for the guest
	all_exec 'h=$(hostname); echo $h >/root/of-$h; echo $h >/run/of-$h; dd if=/dev/urandom of=/root/big bs=1M count=3 2>/dev/null; sync
		cat /root/before; echo $h; cat /run/tick' >"$BATS_TEST_TMPDIR/one"
	equal "$(grep -c before "$BATS_TEST_TMPDIR/one")" "$many"
	# shellcheck disable=SC2016 # for the guest
	all_exec 'echo $(ls /root/of-* /run/of-*) $(hostname)' >"$BATS_TEST_TMPDIR/files"
	for name in $names; do
		grep -qx "/root/of-$name /run/of-$name $name" "$BATS_TEST_TMPDIR/files" ||
			equal "$(cat "$BATS_TEST_TMPDIR/files")" "only $name"
	done
	expect 1 ark exec -n v -- sh -c 'ls /root/of-* /run/of-*'
	all_exec 'sha256sum </root/big' | distinct 'disks' "$many"
	sums | cmp - "$BATS_TEST_TMPDIR/sums"
	expect 0 ark-snap verify s
	quiet
	# Slots, uids, addresses: each its own.
	for name in $names; do
		stat -c %u "/proc/$(pid_of vmm "$name")"
	done | distinct uids "$many"
	# shellcheck disable=SC2086 # names
	expect 0 ark rm -f $names
	sums | cmp - "$BATS_TEST_TMPDIR/sums"
	nothing_new
}

# bats test_tags=lab
@test "memory is shared: an idle clone has few pages of its own" {
	expect 0 ark fork -c 4 --name f s
	names=$(cat "$out")
	all_exec true
	sleep 1
	for name in $names; do
		own=$(awk '/^[0-9a-f]+-[0-9a-f]+ / { ram = /ark-ram/ }
			ram && /^Anonymous:/ { kb += $2 } END { print kb + 0 }' \
			"/proc/$(pid_of vmm "$name")/smaps")
		size=$(awk '/^[0-9a-f]+-[0-9a-f]+ / { ram = /ark-ram/ }
			ram && /^Size:/ { kb += $2 } END { print kb + 0 }' \
			"/proc/$(pid_of vmm "$name")/smaps")
		equal "$size" $((256 << 10)) 'memory of that name'
		echo "# $name: $own kB of $size are its own" >&3
		[ "$own" -gt 0 ] && [ $((own * 20)) -le "$size" ]
		# One file for all of them.
		stat -L -c %d:%i "$(find "/proc/$(pid_of vmm "$name")/fd" -lname '*ark-ram*' | head -n 1)"
	done >"$BATS_TEST_TMPDIR/inodes"
	equal "$(wc -l <"$BATS_TEST_TMPDIR/inodes")" 4
	distinct inodes 1 <"$BATS_TEST_TMPDIR/inodes"
	# The next one finds it, too, also when only one is left, and its keeper
	# is another.
	# shellcheck disable=SC2046 # names
	expect 0 ark rm -f $(sed 1d <<<"$names")
	kill -KILL "$(pid_of keeper f-1)"
	expect 0 ark exec -n f-1 true
	expect 0 ark restore s g
	expect 0 ark exec -n g cat /root/before
	equal "$stdout" before
	expect 0 ark exec -n f-1 cat /root/before
	# A clone of a clone whose keeper is a second one has the memory whole.
	ark exec -n f-1 -- sh -c 'head -c 3000000 /dev/urandom >/run/mem; sha256sum </run/mem >/run/sum'
	kill -KILL "$(pid_of keeper f-1)"
	expect 0 ark snap f-1 again
	expect 0 ark restore again h
	expect 0 ark exec -n h -- sh -c 'sha256sum </run/mem | cmp - /run/sum'
}

@test "of a sandbox: take and fork; rm of the snapshot under running clones" {
	expect 0 ark fork -c 2 v
	equal "$(sort "$out")" $'v-1-1\nv-1-2' || equal "$(sort "$out")" $'v-1\nv-2'
	names=$(cat "$out")
	expect 0 ark snaps -q
	equal "$stdout" $'s\nv-1'
	expect 0 ark-snap rm v-1
	quiet
	expect 66 ark restore v-1
	all_exec 'sync; echo 3 >/proc/sys/vm/drop_caches; cat /root/before; ls /bin | wc -l; sha256sum /bin/busybox | cut -c 1-64' \
		>"$BATS_TEST_TMPDIR/o"
	equal "$(grep -c before "$BATS_TEST_TMPDIR/o")" 2
	equal "$(grep -xE '[0-9a-f]{64}' "$BATS_TEST_TMPDIR/o" | sort -u)" \
		"$(ark exec -n v sha256sum /bin/busybox | cut -c 1-64)"
	# They can be taken themselves, stopped, and booted.
	one=$(head -n 1 <<<"$names")
	expect 0 ark snap "$one" w
	expect 0 ark stop "$one"
	expect 0 ark start "$one"
	expect 0 ark exec -n "$one" cat /root/before
	equal "$stdout" before
	expect 0 ark restore w x
	expect 0 ark exec -n x cat /root/before
	# Default count, numbers behind those that are there.
	expect 0 ark fork s
	equal "$stdout" s-1
	expect 0 ark fork -c 2 s
	equal "$(sort "$out")" $'s-2\ns-3'
}

@test "depth 4: every depth's files, in memory and on disk" {
	from=s
	for depth in 1 2 3 4; do
		expect 0 ark restore "$from" "d$depth"
		expect 0 ark exec -n "d$depth" -- sh -c "
			for place in /run /root; do
				cd \$place
				head -c 4000000 /dev/urandom >f$depth
				sha256sum f* >sums
			done"
		expect 0 ark snap "d$depth" "s$depth"
		[ "$depth" = 1 ] || jq -e --arg p "$from" '.parent == $p' \
			"$snaps/s$depth/manifest.json" >/dev/null
		from=s$depth
	done
	expect 0 ark fork -c 2 --name e s4
	names="e-1 e-2 d4 d3"
	# shellcheck disable=SC2016 # for the guest
	all_exec 'sync; echo 3 >/proc/sys/vm/drop_caches; for p in /run /root; do cd $p; sha256sum -c sums; done | grep -c OK$' |
		xargs >"$BATS_TEST_TMPDIR/ok"
	equal "$(cat "$BATS_TEST_TMPDIR/ok")" '8 8 8 6'
	expect 1 ark exec -n d1 -- ls /run/f2 /root/f2
	# The middle of the chain goes; both ends go on.
	expect 0 ark-snap rm s1 s2 s3
	expect 0 ark rm -f d1 d2 d3 d4 e-1 e-2
	expect 0 ark restore s4 z
	names=z
	# shellcheck disable=SC2016 # for the guest
	equal "$(all_exec 'for p in /run /root; do cd $p; sha256sum -c sums; done | grep -c OK$')" 8
	expect 0 ark-snap verify s4
}

@test "a reseed that fails: refused, and nothing is left" {
	expect 0 ark restore s r
	expect 0 ark exec -n r -- sh -c 'echo fixed >/run/fake && mount --bind /run/fake /dev/random'
	made_of r noseed
	expect 0 ark rm -f r
	remember
	expect fail ark restore noseed x
	[ "$code" -ge 64 ] && [ "$code" -le 78 ] || wrong "$code"
	says identity
	equal "$(ark ps -q)" v
	nothing_new
	expect fail ark fork -c 3 noseed
	[ ! -s "$out" ] || wrong 'names of clones'
	equal "$(ark ps -q)" v
	nothing_new
}

@test "hooks: in order, with their environment; one that fails refuses" {
	expect 0 ark restore s r
	# shellcheck disable=SC2016 # for the guest
	expect 0 ark exec -n r -- sh -c '
		mkdir -p /etc/ark/restore.d && cd /etc/ark/restore.d
		for n in 10-a 20-b 9-z .hidden; do
			printf "%s\n" "#!/bin/sh" "echo \$0 \$ARK_GENERATION \$ARK_HOSTNAME \$# >>/run/ran; id -u >>/run/ran; ls /run/ark/generation >/dev/null && cat /etc/machine-id >/run/mid" >$n
			chmod 755 $n
		done
		printf "%s\n" "#!/bin/sh" "exit 3" >30-not-executable
		: >/run/ran'
	made_of r hooked
	ark rm -f r
	expect 0 ark restore hooked h
	expect 0 ark exec -n h -- cat /run/ran
	generation=$(cat "$(slot h)/generation")
	equal "$stdout" "$(for n in 10-a 20-b 9-z; do
		echo "/etc/ark/restore.d/$n $generation h 0"
		echo 0
	done)"
	expect 0 ark exec -n h -- sh -c 'cmp /run/mid /etc/machine-id'
	# A fork whose fourth fails: none, or with --partial the others.
	expect 0 ark exec -n h -- sh -c 'printf "%s\n" "#!/bin/sh" "case \$ARK_HOSTNAME in *-4) exit 7 ;; esac" >/etc/ark/restore.d/50-four && chmod 755 /etc/ark/restore.d/50-four'
	made_of h fourth
	ark rm -f h
	remember
	expect fail ark fork -c 8 --name f fourth
	[ "$code" -ge 64 ] && [ "$code" -le 78 ] || wrong "$code"
	[ ! -s "$out" ] || wrong 'names of clones that are gone'
	[[ $stderr == *"'f-4'"*"hook '50-four' ended with 7"* ]] || wrong 'no reason'
	[[ $stderr == *'1 of 8 clones failed'* ]] || wrong 'no report'
	equal "$(wc -l <"$err")" 2
	equal "$(ark ps -q)" v
	nothing_new
	expect fail ark fork -c 5 --name f --partial fourth
	equal "$(sort "$out" | xargs)" 'f-1 f-2 f-3 f-5'
	[[ $stderr == *'1 of 5 clones failed'* ]] || wrong 'no report'
	names=$(cat "$out")
	equal "$(all_exec hostname | sort | xargs)" 'f-1 f-2 f-3 f-5'
	equal "$(ark ps -q | xargs)" 'f-1 f-2 f-3 f-5 v'
	# A hook that hangs, one that is killed, one that is no program.
	expect 0 ark restore fourth j
	# shellcheck disable=SC2016 # for the guest
	expect 0 ark exec -n j -- sh -c 'cd /etc/ark/restore.d && rm * && printf "%s\n" "#!/bin/sh" "kill -9 \$\$" >k && chmod 755 k'
	made_of j killed
	expect fail ark restore killed x
	says "hook 'k' was killed by signal 9"
	expect 0 ark exec -n j -- sh -c 'cd /etc/ark/restore.d && rm * && echo junk >k && chmod 755 k'
	made_of j junk
	expect fail ark restore junk x
	says "hook 'k' ended with"
	[ ! -e "$ARK_ROOT/vm/x" ]
}

@test "one VMM of eight killed while they come up: none is left" {
	remember
	ark fork -c 8 --name f s >"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" &
	pid=$!
	killed=
	for _ in {1..400}; do
		[ -e "$ARK_ROOT/vm/f-4/slot" ] && killed=$(pid_of vmm f-4) &&
			kill -KILL "$killed" && break
		sleep 0.01
	done
	[ -n "$killed" ]
	code=0
	wait $pid || code=$?
	# Killed before it was ready, or after that: then it came up, and is dead.
	if [ "$code" = 0 ]; then
		soon 5 state_is f-4 'dead(*)'
	else
		equal "$(cat "$BATS_TEST_TMPDIR/o")" ''
		grep -q "'f-4'" "$BATS_TEST_TMPDIR/e"
		equal "$(ark ps -q)" v
		nothing_new
	fi
}

@test "killed or interrupted: what is left is whole, or goes with gc" {
	remember
	for signal in TERM KILL; do
		for after in 0.05 0.3 0.7; do
			setsid ark-snap fork -c 3 --name "k$signal" s >"$BATS_TEST_TMPDIR/o" 2>&1 &
			pid=$!
			sleep $after
			kill -$signal $pid 2>/dev/null || :
			wait $pid || :
			# What has come up meanwhile is whole; the rest goes.
			soon 30 settled
			ark gc >"$BATS_TEST_TMPDIR/gc" 2>&1
			for name in $(ark ps -q | grep -vx v); do
				[[ $(state "$name") != running ]] ||
					expect 0 timeout 10 ark exec -n "$name" true
				expect 0 ark rm -f "$name"
			done
			expect 0 ark gc
			nothing_new
		done
	done
	expect 0 ark-snap verify s
}

# Nobody starts and nobody forks; keepers have the words of who made them.
settled() {
	local pid
	! ark ps -o state --no-header | grep -q starting || return
	for pid in $(ours | grep '[a]rk-snap fork' | cut -d ' ' -f 1); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null || echo ark-keeper)" = ark-keeper ] ||
			return
	done
}

@test "a full host disk at fork: told, 74, nothing left, the source runs" {
	mkdir -p "$work/full"
	expect 0 unshare -mn bash -c '
		set -eu
		ip link set lo up
		mount -t tmpfs -o size=200m none "$work/full"
		mkdir -m 700 "$work/full/image" "$work/full/vm" "$work/full/kernel" \
			"$work/full/snap"
		cp -a "$ARK_ROOT/image/mini" "$work/full/image/"
		export ARK_ROOT=$work/full ARK_RUN=$work/run2
		mkdir -m 700 "$ARK_RUN"
		touch "$ARK_ROOT/tcg-told"
		fill() { dd if=/dev/zero of="$ARK_ROOT/filler" bs=4k 2>/dev/null || :; }
		trap "ark rm -f a 2>/dev/null" EXIT
		ark run --name a mini >/dev/null </dev/null
		listing() { (cd "$ARK_ROOT" && find . ! -name console.log | sort; ls -I qemu-version -I ch-version "$ARK_RUN"); }
		# A snapshot that has no room.
		fill
		before=$(listing)
		code=0
		ark snap a t >"$work/o" 2>"$work/e" || code=$?
		[ "$code" = 74 ] || { echo "snap: code $code"; cat "$work/e"; exit 1; }
		[ ! -s "$work/o" ] && [ "$(wc -l <"$work/e")" = 1 ] || { cat "$work/o" "$work/e"; exit 2; }
		grep -q "No space left" "$work/e" || { cat "$work/e"; exit 3; }
		[ "$(listing)" = "$before" ] || { listing; exit 4; }
		[ "$(timeout 10 ark exec -n a echo alive)" = alive ] || exit 5
		[ -z "$(ark snaps -q)" ] || exit 6
		# Room for a part of it.
		truncate -s -8M "$ARK_ROOT/filler"
		before=$(listing)
		code=0
		ark snap a t >"$work/o" 2>"$work/e" || code=$?
		[ "$code" = 74 ] && [ "$(wc -l <"$work/e")" = 1 ] || { echo "part: $code"; cat "$work/e"; exit 7; }
		[ "$(listing)" = "$before" ] || { listing; exit 8; }
		[ "$(timeout 10 ark exec -n a echo alive)" = alive ] || exit 9
		rm "$ARK_ROOT/filler"
		ark snap a t >/dev/null
		# A fork that has none.
		fill
		before=$(listing)
		code=0
		ark fork -c 3 t >"$work/o" 2>"$work/e" || code=$?
		[ "$code" = 74 ] || { echo "fork: code $code"; cat "$work/e"; exit 10; }
		[ ! -s "$work/o" ] || exit 11
		grep -q "3 of 3 clones failed" "$work/e" || { cat "$work/e"; exit 12; }
		[ "$(listing)" = "$before" ] || { listing; exit 13; }
		[ "$(timeout 10 ark exec -n a echo alive)" = alive ] || exit 14
		rm "$ARK_ROOT/filler"
		ark restore t b >/dev/null
		[ "$(ark exec -n b hostname)" = b ] || exit 15
		ark rm -f a b'
	nobody_but_v
}

nobody_but_v() {
	soon 5 same_inventory || diff "$BATS_FILE_TMPDIR/before" "$BATS_FILE_TMPDIR/after" || :
	rmdir "$work/full"
	rm -rf "$work/run2" "$work/o" "$work/e"
}
