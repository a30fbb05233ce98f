# Snapshots: what is in them, what is not, and who may touch them; taking one
# is killed, starved and disturbed at every step.

load helper

setup_file() {
	ark_files mini
	export snaps=$ARK_ROOT/snap
	ark run --name v -p 80 mini >/dev/null </dev/null
	ark exec -n v -- sh -c 'mkdir /www && echo v >/www/who && httpd -p 80 -h /www'
	# Counts in memory, into a file that it keeps open, and into a tmpfs.
	ark exec -d v -- sh -c 'exec 3>/root/open; i=0
		while i=$((i + 1)); do
			echo $i >&3; echo $i >/run/.tick; mv /run/.tick /run/tick
			sleep 0.05
		done' >/dev/null
}

teardown_file() {
	ark_end
}

setup() {
	[ "$(state v)" = running ]
	remember
}

# Everything but the fixture.
teardown() {
	keep v ''
	[ "$(state v)" != paused ] || ark resume v
}

taken() { # SANDBOX NAME
	expect 0 ark snap "$1" "$2" && equal "$stdout" "$2" && silent
}

restored() { # SNAPSHOT NAME
	expect 0 ark restore "$1" "$2" && equal "$stdout" "$2" && silent
}

counts() { # NAME
	ark exec -n "$1" cat /run/tick
}

# The file that it has open is 1, 2, 3 ... without a gap, up to where it is.
unbroken() { # NAME
	expect 0 ark exec -n "$1" -- sh -c \
		'a=$(cat /run/tick); awk "\$1 != NR { exit 1 }" /root/open &&
		 b=$(wc -l </root/open) && [ "$b" -ge "$a" ] && [ "$b" -le $((a + '"$(within 40)"')) ]'
}

no_half() {
	equal "$(ls -A "$snaps" | grep -vxF "$(ark snaps -q)")" '' 'half a snapshot'
}

# answers NAME: an exec within ten seconds.
answers() {
	expect 0 timeout "$(within 10)" ark exec -n "$1" echo yes && equal "$stdout" yes
}

works() { # SNAPSHOT: it can be restored
	restored "$1" "of-$1" && answers "of-$1" && expect 0 ark rm -f "of-$1"
}

# bats test_tags=lab
@test "a program goes on from the snapshot's count, and the original too" {
	soon 10 ark exec -n v -- sh -c '[ $(cat /run/tick) -ge 5 ]'
	before=$(counts v)
	taken v one
	after=$(counts v)
	[ "$after" -ge "$before" ]
	# The original gets ahead.
	sleep 2
	restored one r
	first=$(counts r)
	[ "$first" -ge "$before" ] || equal "$first" "from $before on"
	# 2 s are some 35 counts.
	[ "$first" -lt "$(counts v)" ] || equal "$first" 'behind the original'
	unbroken r
	unbroken v
	soon 10 ark exec -n r -- sh -c "[ \$(cat /run/tick) -gt $((first + 5)) ]"
	unbroken r
	# And twice from the same one.
	restored one q
	[ "$(counts q)" -ge "$before" ]
	[ "$(counts q)" -lt "$(counts v)" ]
	ark exec -n q -- sh -c 'echo q >/root/mine; echo q >/run/mine'
	expect 1 ark exec -n r -- ls /root/mine /run/mine
	expect 1 ark exec -n v -- ls /root/mine /run/mine
}

@test "what runs at the snapshot is a detached exec in the clone" {
	ark exec -n v -- sh -c 'echo begun; sleep 300; echo over' >"$BATS_TEST_TMPDIR/o" 2>&1 &
	client=$!
	soon 10 left v 'sleep 300'
	taken v one
	restored one r
	kill -0 $client
	expect 0 ark exec ls --json r
	jq -se 'all(.detached)' "$out" >/dev/null || wrong 'one that is not detached'
	id=$(jq -r 'select(.command == "sh -c echo begun; sleep 300; echo over").id' "$out")
	expect 0 ark exec kill r "$id"
	soon 5 none_left r 'sleep 300'
	expect 137 ark exec wait r "$id"
	# The source's client still has it.
	expect 0 left v 'sleep 300'
	expect 0 ark exec kill v "$id"
	code=0
	wait $client || code=$?
	equal "$code" 137
	equal "$(head -n 1 "$BATS_TEST_TMPDIR/o")" begun
}

host_port() { # NAME
	ark port --json "$1" | jq -r '.. | objects | select(.host? and .guest? == 80) | .host' |
		head -n 1
}

@test "published ports lead to the clone, on free ports; connections are reset" {
	ark exec -d v -- sh -c 'while :; do echo x; sleep 0.2; done | nc -l -p 81' >/dev/null
	expect 0 ark publish v 81
	port=$(ark port --json v | jq -r '.. | objects | select(.guest? == 81) | .host' | head -n 1)
	[ "$port" -gt 0 ] || { ark port --json v; false; }
	soon 10 bash -c "exec 5<>/dev/tcp/127.0.0.1/$port"
	# busybox' nc takes one connection: that was it.  Another one.
	ark exec -d v -- sh -c 'while :; do echo x; sleep 0.2; done | nc -l -p 81' >/dev/null
	sleep 0.5
	exec 5<>"/dev/tcp/127.0.0.1/$port"
	read -r -t 10 -u 5 line
	equal "$line" x
	taken v one
	restored one r
	[ -n "$(host_port r)" ] || { ark port --json r; false; }
	[ "$(host_port r)" != "$(host_port v)" ]
	ark exec -n r -- sh -c 'echo r >/www/who'
	equal "$(curl -s -m 10 "http://127.0.0.1:$(host_port r)/who")" r
	equal "$(curl -s -m 10 "http://127.0.0.1:$(host_port v)/who")" v
	# The source's connection lives, the clone's is dead at once.
	stale() {
		! ark exec -n r netstat -tn | grep ESTABLISHED | grep -q ':81 '
	}
	soon 5 stale
	read -r -t 5 -u 5 line
	equal "$line" x
	expect 0 ark exec -n v netstat -tn
	[[ $stdout == *:81\ *ESTABLISHED* ]] || wrong 'the original lost it'
	exec 5>&-
	expect 0 ark unpublish v "$port"
}

@test "of a paused one: it stays paused, the clone runs" {
	expect 0 ark pause v
	taken v one
	equal "$(state v)" paused
	sleep 0.5
	equal "$(state v)" paused
	restored one r
	equal "$(state r)" running
	equal "$(state v)" paused
	answers r
	expect 0 ark resume v
	answers v
	unbroken v
	unbroken r
}

@test "of a stopped and of a new one: the disk alone, booted" {
	taken v one
	restored one r
	expect 0 ark exec -n r -- sh -c 'echo kept >/root/kept; echo lost >/run/lost; sync'
	expect 0 ark stop r
	taken r cold
	equal "$(state r)" stopped
	jq -e '.memory == false and .source == "r" and .parent == "one"' \
		"$snaps/cold/manifest.json" >/dev/null
	[ ! -e "$snaps/cold/ram" ] && [ ! -e "$snaps/cold/state" ]
	expect 0 ark-snap verify cold
	restored cold c
	expect 0 ark exec -n c -- sh -c 'cat /root/kept; hostname; cut -d . -f 1 /proc/uptime'
	equal "$(head -n 2 <<<"$stdout")" $'kept\nc'
	# A boot, not a memory.
	[ "$(tail -n 1 <<<"$stdout")" -le 30 ]
	expect 1 ark exec -n c -- ls /run/lost
	expect 0 ark create --image mini n
	taken n new
	restored new m
	answers m
}

@test "names: hostile, taken, unknown; usage" {
	taken v one
	x63=$(printf 'x%.0s' {1..63})
	ls -A "$snaps" "$ARK_ROOT/vm" >"$BATS_TEST_TMPDIR/before"
	for name in ../x /x a/b . .. .hidden 'a b' "x$x63" $'a\nb' $'\033[1m' é '' ' '; do
		for words in 'snap v' 'restore one' 'fork -c 2 one --name'; do
			# shellcheck disable=SC2086 # words
			expect 64 ark $words "$name"
			says ''
		done
		for words in 'restore' 'fork' 'snap' 'inspect'; do
			case $words in inspect) words='ark-snap inspect' ;; *) words="ark $words" ;; esac
			# shellcheck disable=SC2086 # words
			expect 64 $words "$name"
			says ''
		done
		for verb in rm verify; do
			expect 64 ark-snap $verb "$name"
			says ''
		done
	done
	for verb in restore fork inspect verify rm; do
		expect 66 ark-snap $verb nosuch
		says 'nosuch'
	done
	expect 66 ark snap nosuch
	says nosuch
	expect 73 ark snap v one
	says "'one' exists"
	expect 73 ark restore one v
	says "'v' exists"
	expect 64 ark restore one ls
	says ls
	# No room for the number.
	expect 64 ark fork -c 2 --name "$x63" one
	says number
	for count in 0 -1 x '' 1001 1.5; do
		expect 64 ark fork -c "$count" one
		says "'$count'"
	done
	expect 64 ark restore
	expect 64 ark restore one a b
	expect 64 ark snap
	expect 64 ark snap v a b
	expect 64 ark fork one two
	expect 64 ark snaps one
	expect 64 ark-snap rm
	expect 64 ark snap -c 2 v
	expect 64 ark restore --json one
	ls -A "$snaps" "$ARK_ROOT/vm" >"$BATS_TEST_TMPDIR/after"
	cmp "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
	# The longest there is.
	taken v "$x63"
	expect 0 ark restore "$x63" "$x63"
	answers "$x63"
}

@test "ls, tree, inspect, verify, rm; made-up names" {
	expect 0 ark snaps -q
	quiet
	expect 0 ark snap v
	equal "$stdout" v-1
	expect 0 ark snap -v v
	equal "$stdout" v-2
	[[ $stderr =~ stood\ still\ for\ [0-9.]+\ ms ]] || wrong 'no times'
	equal "$(wc -l <"$err")" 1
	expect 0 ark restore v-1
	equal "$stdout" v-1-1
	taken v-1-1 deep
	expect 0 ark snaps -q
	equal "$stdout" $'deep\nv-1\nv-2'
	silent
	expect 0 ark snaps
	equal "$(wc -l <"$out")" 4
	expect 0 ark snaps --json
	jq -se 'length == 3 and all(.memory and .image == "mini" and
		(.id | length) == 36) and .[0].parent == "v-1" and
		.[0].source == "v-1-1" and .[1].parent == ""' "$out" >/dev/null ||
		wrong json
	cp "$out" "$BATS_TEST_TMPDIR/all"
	expect 0 ark-snap inspect deep v-1 v-2
	cmp "$out" "$BATS_TEST_TMPDIR/all"
	expect 66 ark-snap inspect deep nosuch v-1
	equal "$(wc -l <"$out")" 2
	equal "$(wc -l <"$err")" 1
	expect 0 ark tree
	grep -v '^v ' "$out" >"$BATS_TEST_TMPDIR/tree"
	equal "$(cat "$BATS_TEST_TMPDIR/tree")" "$(printf '%s\n' \
		'v-1      snapshot' '  deep   snapshot' '  v-1-1  running' \
		'v-2      snapshot')" tree
	expect 0 ark-snap verify deep v-1 v-2
	quiet
	# The parent goes, its child stays a root.
	expect 0 ark-snap rm v-1
	quiet
	expect 66 ark-snap rm v-1
	says v-1
	expect 0 ark tree
	[[ $stdout == *deep* ]] || wrong 'an orphan is not drawn'
	works deep
	answers v-1-1
	expect 0 ark gc
	quiet
}

@test "sealed: modes, links, and what a VMM can reach" {
	taken v one
	equal "$(find "$snaps/one" -perm /222)" ''
	equal "$(find "$snaps/one" ! -user 0)" ''
	equal "$(stat -c %a "$snaps/one")" 555
	equal "$(stat -c %a "$ARK_ROOT")" 700
	for file in kernel initrd base; do
		[ "$snaps/one/$file" -ef "$ARK_ROOT/image/mini/$file" ]
	done
	restored one r
	vmm=$(pid_of vmm r)
	uid=$(stat -c %u "/proc/$vmm")
	[ "$uid" -ge "$ARK_TEST_UIDS" ]
	find "$snaps/one" "$snaps" >"$BATS_TEST_TMPDIR/files"
	while read -r file; do
		expect fail setpriv --reuid "$uid" --regid "$uid" --clear-groups \
			--inh-caps -all --bounding-set -all \
			sh -c 'exec 3>>"$1"' sh "$file"
		# Nor reach it by the hard links of the sandbox.
		expect fail setpriv --reuid "$uid" --regid "$uid" --clear-groups \
			--inh-caps -all --bounding-set -all \
			sh -c 'exec 3<"$1"' sh "$file"
	done <"$BATS_TEST_TMPDIR/files"
	# No descriptor of the VMM or its keeper can write one of its files.
	for pid in "$vmm" "$(pid_of keeper r)"; do
		for fd in /proc/"$pid"/fd/*; do
			for file in "$snaps"/one/*; do
				[ "$fd" -ef "$file" ] || continue
				flags=$(sed -n 's/^flags:\t//p' \
					"/proc/$pid/fdinfo/${fd##*/}")
				equal $((8#$flags & 3)) 0 "$file, open to write"
			done
		done
	done
	# The memory: whoever has a descriptor of it, even root, cannot.
	found=0
	for fd in /proc/"$vmm"/fd/*; do
		[[ $(readlink "$fd") == *memfd:ark-ram* ]] || continue
		found=1
		expect fail dd if=/dev/zero of="$fd" bs=4096 count=1 conv=notrunc
		expect fail truncate -s 0 "$fd"
		expect fail truncate -s +1M "$fd"
		expect fail setpriv --reuid "$uid" --regid "$uid" --clear-groups \
			dd if=/dev/zero of="$fd" bs=4096 count=1 conv=notrunc
	done
	equal "$found" 1
	answers r
	expect 0 ark-snap verify one
}

# swap FILE COMMAND...: the snapshot's FILE becomes what COMMAND prints, never
# through its hard links.
swap() {
	mv "$snaps/one/$1" "$BATS_TEST_TMPDIR/kept"
	"${@:2}" <"$BATS_TEST_TMPDIR/kept" >"$snaps/one/$1"
}

back() {
	mv -f "$BATS_TEST_TMPDIR/kept" "$snaps/one/$1"
}

flipped() { # the same but for one byte
	cp --sparse=always /dev/stdin "$BATS_TEST_TMPDIR/flip"
	printf '\252' | dd of="$BATS_TEST_TMPDIR/flip" bs=1 seek=5000 conv=notrunc status=none
	cat "$BATS_TEST_TMPDIR/flip"
}

@test "a file that has changed: restore refuses, verify tells which" {
	taken v one
	remember
	while IFS=: read -r file what; do
		swap $file cat
		expect 65 ark restore one r
		says "$what of snapshot 'one' has changed"
		expect 65 ark fork -c 2 one
		says "$what of snapshot 'one' has changed"
		back $file
		# Of the same size and time: that is what verify is for.
		swap $file flipped
		touch -r "$BATS_TEST_TMPDIR/kept" "$snaps/one/$file"
		expect 65 ark-snap verify one
		says "$what of snapshot 'one' has changed"
		rm "$snaps/one/$file"
		expect 65 ark restore one r
		says one
		ln -s "$BATS_TEST_TMPDIR/kept" "$snaps/one/$file"
		expect 65 ark restore one r
		says one
		back $file
	done <<-'END'
		kernel:kernel
		initrd:initrd
		base:base image
		disk:disk
		ram:memory
		state:device state
	END
	# The image is another one by now: the snapshot has its own.
	mv "$ARK_ROOT/image/mini" "$work/mini"
	works one
	mv "$work/mini" "$ARK_ROOT/image/mini"
	nothing_new
}

@test "a manifest that is broken, or of another host" {
	taken v one
	remember
	# By sed: the numbers are longer than those of jq.
	while IFS='|' read -r want code edit; do
		swap manifest.json sed -E "$edit"
		if cmp "$BATS_TEST_TMPDIR/kept" "$snaps/one/manifest.json"; then
			equal "$edit" 'an edit'
		fi
		expect "$code" ark restore one r
		says "$want"
		back manifest.json
	done <<-'END'
		version|69|s/("version": *)"[^"]*"/\1"9.9.9"/
		VMM|69|s/("vmm": *)"[^"]*"/\1"other"/
		processor|69|s/("cpu": *)"[^"]*"/\1"other"/
		accelerator|69|s/("accel": *)"tcg"/\1"KVM"/; s/("accel": *)"kvm"/\1"tcg"/; s/KVM/kvm/
		TSC|69|s/("tsc_khz": *)[0-9]+/\11234567/
		one|65|s/"id": *"[^"]*",?//
		one|65|s/("id": *)/"more": 1, \1/
		one|65|s/("name": *)"one"/\1"two"/
		one|65|s/("memory_size": *)/\1-/
		one|65|s/("parent": *)""/\1"..\/x"/
		one|65|s/("image": *)"mini"/\1"..\/..\/x"/
	END
	swap manifest.json head -c 100
	expect 65 ark restore one r
	says one
	back manifest.json
	swap manifest.json true
	expect 65 ark-snap inspect one
	says one
	expect 0 ark snaps -q
	equal "$stdout" one
	back manifest.json
	nothing_new
	works one
}

# bats test_tags=lab
@test "under disk writes: every finished file is whole in source and clone" {
	ark exec -d v -- sh -c 'mkdir /root/w; cd /root/w; i=0
		while [ $i -lt 400 ] && i=$((i + 1)); do
			head -c 150000 /dev/urandom >b$i
			sha256sum b$i >>sums
			dd if=/dev/urandom bs=64k count=4 2>/dev/null >/run/src
			dd if=/run/src of=d$i bs=64k oflag=direct conv=fsync 2>/dev/null
			(cd /run; sha256sum src) | sed "s/src/d$i/" >>sums
		done' >/dev/null
	soon 15 ark exec -n v -- sh -c '[ $(wc -l </root/w/sums) -ge 6 ]'
	taken v a
	taken v b
	for s in a b; do
		disk=$BATS_TEST_TMPDIR/disk
		cp --sparse=always "$snaps/$s/disk" "$disk"
		# A journal to replay is fine, anything else is not.
		e2fsck -p "$disk" >"$BATS_TEST_TMPDIR/fsck" 2>&1 || [ $? -le 1 ] ||
			equal "$(cat "$BATS_TEST_TMPDIR/fsck")" '' fsck
		expect 0 e2fsck -fn "$disk"
		rm "$disk"
	done
	restored a ra
	restored b rb
	for name in ra rb v; do
		ark exec -n $name -- sh -c 'ps -o pid,args | grep "[m]kdir /root/w" | { read -r p _; kill $p; }' || :
		# The last line may be one that was being written.
		expect 0 ark exec -n $name -- sh -c 'cd /root/w && sync &&
			echo 3 >/proc/sys/vm/drop_caches &&
			grep -E "^[0-9a-f]{64}  [bd][0-9]+$" sums >/run/sums &&
			[ $(grep -c "  b" /run/sums) -ge 3 ] &&
			[ $(grep -c "  d" /run/sums) -ge 2 ] &&
			sha256sum -c /run/sums | grep -v OK$
			[ $? = 1 ] && ! dmesg | grep -i "ext4.*error"'
		quiet
	done
	ark exec -n v rm -rf /root/w
	expect 0 ark stop ra
	expect 0 e2fsck -fn "$ARK_ROOT/vm/ra/disk"
}

@test "execs during the pause just wait" {
	(
		for i in {1..12}; do
			timeout 20 ark exec -n v -- sh -c "echo $i; exit 0" || echo "failed $?"
		done >"$BATS_TEST_TMPDIR/answers" 2>&1
	) &
	pid=$!
	for s in a b c; do
		taken v $s
	done
	wait $pid
	equal "$(cat "$BATS_TEST_TMPDIR/answers")" "$(seq 12)"
	equal "$(state v)" running
}

@test "two at once: one after the other; the same name: one of them" {
	ark snap v a >"$BATS_TEST_TMPDIR/o1" 2>&1 &
	one=$!
	ark snap v b >"$BATS_TEST_TMPDIR/o2" 2>&1 &
	two=$!
	wait $one
	wait $two
	equal "$(cat "$BATS_TEST_TMPDIR/o1" "$BATS_TEST_TMPDIR/o2")" $'a\nb'
	works a
	works b
	for i in 1 2 3 4; do
		ark snap v same >"$BATS_TEST_TMPDIR/s$i" 2>&1 &
		pids+=($!)
	done
	won=0
	for pid in "${pids[@]}"; do
		code=0
		wait "$pid" || code=$?
		[ "$code" = 0 ] && won=$((won + 1)) || equal "$code" 73
	done
	equal "$won" 1
	no_half
	# Made up ones at once do not lose any either.
	for i in 1 2 3; do
		ark snap v >"$BATS_TEST_TMPDIR/m$i" 2>&1 &
		pids[i]=$!
	done
	for i in 1 2 3; do
		code=0
		wait "${pids[i]}" || code=$?
		[ "$code" = 0 ] || equal "$(cat "$BATS_TEST_TMPDIR/m$i")" 'a name'
	done
	equal "$(cat "$BATS_TEST_TMPDIR"/m? | sort | xargs)" 'v-1 v-2 v-3'
	answers v
}

@test "kill -9 at every step: the VM goes on, no half snapshot" {
	failed=()
	while read -r call counts; do
		for n in $counts; do
			killed "$call" "$n" ark-snap v k || failed+=("$call $n: not met;")
			[ "$(timeout 10 ark exec -n v echo yes)" = yes ] ||
				failed+=("$call $n: no answer;")
			ark gc >"$BATS_TEST_TMPDIR/gc" 2>&1
			if [ "$(ark snaps -q)" = k ]; then
				ark-snap verify k || failed+=("$call $n: half;")
				ark-snap rm k
			fi
			[ -z "$(ls -A "$snaps")" ] || failed+=("$call $n: $(ls -A "$snaps");")
			# What it asked of the VMM must not spoil the next one.
			[ "$call" != sendmsg ] && [ "$call" != recvfrom ] || {
				taken v k
				works k
				ark-snap rm k
			}
		done
	done <<-'END'
		mkdirat 1
		linkat 1 3
		sendto 1 2
		sendmsg 1 2 3 4
		recvfrom 1 2
		pwrite64 1 100
		copy_file_range 1 5
		fchmod 1 5 8
		fsync 1 5 8
		renameat 1
		renameat2 1
		write 1
	END
	equal "${failed[*]}" ''
	equal "$(state v)" running
	unbroken v
	nothing_new
}

@test "errors instead of calls: one line, nothing left, the VM goes on" {
	failed=()
	for inject in mkdirat:error=ENOSPC linkat:error=EMLINK:when=2 \
		pwrite64:error=ENOSPC:when=50 pwrite64:error=EIO:when=1 \
		pread64:error=EIO:when=300 copy_file_range:error=EIO \
		copy_file_range:error=ENOSPC:when=3 fsync:error=EIO:when=4 \
		fsync:error=ENOSPC:when=7 renameat:error=ENOSPC renameat2:error=EIO \
		fchmod:error=EROFS:when=2 pidfd_open:error=EMFILE \
		sendmsg:error=EPIPE:when=3 connect:error=ECONNREFUSED; do
		code=0
		traced "${inject%%:*}" "${inject#*:}" ark-snap v k \
			>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" || code=$?
		if [ "$code" = 0 ]; then
			ark-snap verify k && ark-snap rm k || failed+=("$inject: half;")
			continue
		fi
		[ "$code" -ge 64 ] && [ "$code" -le 78 ] || failed+=("$inject: $code;")
		[ ! -s "$BATS_TEST_TMPDIR/o" ] && [ "$(wc -l <"$BATS_TEST_TMPDIR/e")" = 1 ] ||
			failed+=("$inject: $(cat "$BATS_TEST_TMPDIR/e");")
		[ -z "$(ls -A "$snaps")" ] || failed+=("$inject: left $(ls -A "$snaps");")
		[ "$(timeout 10 ark exec -n v echo yes)" = yes ] ||
			failed+=("$inject: no answer;")
	done
	equal "${failed[*]}" ''
	taken v k
	works k
}

# bats test_tags=lab
@test "the keeper, or the VMM, killed in the middle" {
	# Slow memory: there is time.
	traced pwrite64 delay_enter=1500000:when=20 ark-snap v k \
		>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" &
	pid=$!
	soon 5 bash -c 'ls -A "$snaps"/.k.*.tmp/ram'
	kill -KILL "$(pid_of keeper v)"
	answers v
	code=0
	wait $pid || code=$?
	equal "$code" 69
	equal "$(cat "$BATS_TEST_TMPDIR/o")" ''
	equal "$(wc -l <"$BATS_TEST_TMPDIR/e")" 1 "$(cat "$BATS_TEST_TMPDIR/e")"
	equal "$(ls -A "$snaps")" ''
	answers v
	[ -n "$(pid_of keeper v)" ]
	unbroken v
	taken v k
	restored k r
	# Without its keeper at all.
	kill -KILL "$(pid_of keeper r)"
	taken r deep
	works deep
	# The VMM.
	traced pwrite64 delay_enter=1500000:when=5 ark-snap r k2 \
		>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" &
	pid=$!
	soon 5 bash -c 'ls -A "$snaps"/.k2.*.tmp/ram'
	kill -KILL "$(pid_of vmm r)"
	code=0
	wait $pid || code=$?
	equal "$(cat "$BATS_TEST_TMPDIR/o")" ''
	[ "$code" = 69 ] || [ "$code" = 74 ] || equal "$code" 69
	equal "$(wc -l <"$BATS_TEST_TMPDIR/e")" 1 "$(cat "$BATS_TEST_TMPDIR/e")"
	equal "$(ls -A "$snaps" | xargs)" 'deep k'
	soon 5 state_is r 'dead(*)'
	answers v
}
