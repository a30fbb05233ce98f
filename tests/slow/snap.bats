# Snapshots that take long: large files, deep chains, old ones, many failures.

load ../helper

setup_file() {
	ark_files mini
	export snaps=$ARK_ROOT/snap
}

teardown_file() {
	ark_end
}

setup() {
	rm_all
	ark-snap rm $(ark snaps -q) 2>/dev/null || :
	remember
}

@test "depth 4 with 100 MB in memory and on disk at each depth" {
	boot v -m 1G --disk 2G
	expect 0 ark snap v s0
	for depth in 1 2 3 4; do
		expect 0 ark restore "s$((depth - 1))" "d$depth"
		expect 0 ark exec -n "d$depth" -- sh -c "
			mount -o remount,size=800m /run || mount -t tmpfs -o size=800m x /run
			for place in /run /root; do
				cd \$place && head -c 100000000 /dev/urandom >f$depth || exit 1
				sha256sum f* >sums
			done; sync"
		expect 0 ark snap "d$depth" "s$depth"
	done
	expect 0 ark rm -f v d1 d2 d3 d4
	expect 0 ark fork -c 2 --name e s4
	for name in e-1 e-2; do
		# shellcheck disable=SC2016 # for the guest
		expect 0 ark exec -n $name -- sh -c 'echo 3 >/proc/sys/vm/drop_caches
			for p in /run /root; do cd $p; sha256sum -c sums; done | grep -c OK$'
		equal "$stdout" 8
	done
	expect 0 ark-snap verify s0 s1 s2 s3 s4
}

@test "the clock of a clone of a snapshot that is 90 s old" {
	boot v
	expect 0 ark snap v old
	sleep 90
	expect 0 ark fork -c 4 --name f old
	for name in f-1 f-2 f-3 f-4; do
		before=$(date +%s)
		expect 0 ark exec -n $name date +%s
		after=$(date +%s)
		[ "$stdout" -ge $((before - 1)) ] && [ "$stdout" -le $((after + 1)) ] ||
			equal "$stdout" "$before to $after"
	done
	# The one that went on all the time is right as well.
	expect 0 ark exec -n v date +%s
	[ $(($(date +%s) - stdout)) -le 2 ]
}

# The shortest of five.
restore_ms() { # SNAPSHOT
	local best=100000 begin ms
	for _ in 1 2 3 4 5; do
		begin=$(date +%s%N)
		ark restore "$1" r >/dev/null
		ms=$((($(date +%s%N) - begin) / 1000000))
		[ $ms -ge $best ] || best=$ms
		ark rm -f r
	done
	echo $best
}

@test "a restore with live siblings takes as long at 2 GiB as at 256 MiB" {
	boot small
	boot big -m 2G --disk 4G
	# Memory that is in use.
	ark exec -n big -- sh -c 'mount -t tmpfs -o size=1500m x /mnt && head -c 1000000000 /dev/urandom >/mnt/x'
	expect 0 ark snap small s
	expect 0 ark snap big b
	expect 0 ark fork -c 1 --name keep-s s
	expect 0 ark fork -c 1 --name keep-b b
	small=$(restore_ms s) big=$(restore_ms b)
	echo "# 256 MiB: $small ms, 2 GiB: $big ms" >&3
	[ "$big" -le $((small * 3 / 2 + 100)) ]
	expect 0 ark exec -n keep-b-1 -- sh -c 'sha256sum </mnt/x'
	sum=$stdout
	expect 0 ark exec -n big -- sh -c 'sha256sum </mnt/x'
	equal "$stdout" "$sum"
}

@test "200 clones that fail leave nothing" {
	boot v
	# shellcheck disable=SC2016 # for the guest
	ark exec -n v -- sh -c 'mkdir -p /etc/ark/restore.d && printf "%s\n" "#!/bin/sh" "exit 1" >/etc/ark/restore.d/no && chmod 755 /etc/ark/restore.d/no'
	expect 0 ark snap v s
	remember
	ip -o link | wc -l >"$BATS_TEST_TMPDIR/links"
	iptables-save | grep -v '^[#:]' | sort >"$BATS_TEST_TMPDIR/rules"
	find /proc/[0-9]*/ns/net -printf '%l\n' 2>/dev/null | sort -u | wc -l >"$BATS_TEST_TMPDIR/spaces"
	for _ in {1..25}; do
		expect fail ark fork -c 8 s
		[ ! -s "$out" ] || wrong names
		[[ $stderr == *'8 of 8 clones failed'* ]] || wrong report
	done
	nothing_new
	equal "$(ip -o link | wc -l)" "$(cat "$BATS_TEST_TMPDIR/links")" links
	iptables-save | grep -v '^[#:]' | sort | diff "$BATS_TEST_TMPDIR/rules" -
	expect 0 ark exec -n v echo alive
	expect 0 ark gc
	quiet
}
