# What a sandbox takes of the host, as ark ps and ark inspect show it.

load helper

setup_file() {
	ark_files mini
	# It shows what is done to it; its clones show what they share.
	boot v
	ark snap v s >/dev/null
}

teardown_file() {
	ark_end
}

# cell NAME COLUMN
cell() {
	ark ps --no-header -o "name,$2" | awk -v n="$1" '$1 == n { print $2 }'
}

# field NAME FIELD: as ark inspect has it.
field() {
	ark inspect "$1" | jq -r ".$2"
}

# grown NAME FIELD THAN
grown() {
	[ "$(field "$1" "$2")" -gt "$3" ]
}

@test "processor time: rises while the guest works" {
	before=$(field v cpu_ms) up=$(field v up_ms)
	id=$(ark exec -d v -- sh -c 'while :; do :; done')
	soon 30 grown v cpu_ms $((before + 300))
	expect 0 ark exec kill v "$id"
	after=$(field v cpu_ms) up=$(($(field v up_ms) - up))
	[ $((after - before)) -le $((4 * up)) ]
	[[ $(cell v cpu) =~ ^[0-9]+\.[0-9]$ ]]
	# The column is the quotient of the two.
	percent=$(cell v cpu)
	want=$(ark inspect v | jq '.cpu_ms * 100 / .up_ms')
	awk -v a="$percent" -v b="$want" \
		'BEGIN { exit !(a > b * 0.8 && a < b * 1.2 + 0.2) }' ||
		equal "$percent" "$want"
}

@test "memory: private grows with what the guest touches, clones share" {
	expect 0 ark fork -c 2 --name c s
	private=$(field c-1 private) resident=$(field c-1 resident)
	[ "$private" -gt 0 ] && [ "$private" -lt "$resident" ]
	expect 0 ark exec c-1 -- dd if=/dev/zero of=/dev/shm/x bs=1M count=48
	grown c-1 private $((private + (40 << 20)))
	grown c-1 resident $((resident + (40 << 20)))
	# Its sibling has not.
	[ "$(field c-2 private)" -lt $((private + (20 << 20))) ]
	[[ $(cell c-1 private) =~ ^[0-9.]+M$ ]]
	[[ $(cell c-1 resident) =~ ^[0-9.]+M$ ]]
	# Where it is not asked for, nobody walks page tables for it.
	expect 0 ark ps --json
	jq -se 'length == 3 and all(has("resident") and
		(has("private") | not))' "$out" >/dev/null || wrong json
	expect 0 ark ps --json -o private
	jq -se 'all(.private > 0)' "$out" >/dev/null || wrong json
	expect 0 strace -f -o "$BATS_TEST_TMPDIR/trace" ark-ps
	equal "$(grep -cE 'smaps_rollup|net/dev' "$BATS_TEST_TMPDIR/trace")" 0 \
		'reads more than it shows'
	expect 0 strace -f -o "$BATS_TEST_TMPDIR/trace" ark-ps -o private,rx
	grep -q smaps_rollup "$BATS_TEST_TMPDIR/trace"
	grep -q net/dev "$BATS_TEST_TMPDIR/trace"
}

@test "network: what comes in and what goes out" {
	rx=$(field v rx) tx=$(field v tx)
	head -c 3000000 /dev/urandom >"$BATS_TEST_TMPDIR/blob"
	expect 0 ark exec v sh -c 'mkdir -p /www && httpd -h /www'
	expect 0 ark cp "$BATS_TEST_TMPDIR/blob" v:/www/
	# By the agent's connection, which is none of the sandbox' network.
	[ "$(field v rx)" -lt $((rx + 1000000)) ]
	expect 0 ark publish v 127.0.0.1:8099:80
	expect 0 curl -sS -m 60 -o /dev/null http://127.0.0.1:8099/blob
	grown v tx $((tx + 3000000))
	grown v rx "$rx"
	[ "$(field v rx)" -lt $((rx + 1000000)) ]
	[[ $(cell v tx) =~ ^[0-9.]+M$ ]]
}

@test "disk, parent, expiry: and - for what there is not" {
	disk=$(field c-1 disk_used)
	expect 0 ark exec c-1 -- sh -c \
		'dd if=/dev/urandom of=/root/x bs=1M count=8 && sync'
	grown c-1 disk_used $((disk + (7 << 20)))
	equal "$(field c-1 parent) $(cell c-1 parent)" 's s'
	equal "$(field v parent) $(cell v parent)" 'null -'
	equal "$(cell v expires) $(field v expires)" '- null'
	expect 0 ark create --ttl 2h cold
	equal "$(field cold ttl)" 7200
	all=$(ark ps --no-header \
		-o name,cpu,expires,isolation,parent,resident,private,rx,tx,pid,slot,answers)
	grep -qxE 'cold( +-){11}' <<<"$all" || equal "$all" 'cold -...'
	expect 0 ark inspect cold
	jq -e '[has("cpu_ms", "up_ms", "resident", "private", "rx", "tx",
		"expires", "parent", "slot")] | any | not' "$out" >/dev/null ||
		wrong json
	expect 0 ark rm cold
	# Half a minute, which is shown and goes by.
	rm_all
	expect 0 ark restore s v
	expect 0 ark ps -o name,expires
	slot=$(slot v)
	read -r up _ </proc/uptime
	echo $((${up/./}0 + 30000)) >"$slot/expires"
	left=$(cell v expires)
	[[ $left =~ ^(30|2[0-9])s$ ]] || equal "$left" '30s'
	seconds=$(($(field v expires) - $(date +%s)))
	[ "$seconds" -ge 20 ] && [ "$seconds" -le 31 ] || equal "$seconds" 30
	soon 5 eval '[ "${left%s}" -gt "$(cell v expires | tr -d s)" ]'
	expect 0 ark rm -f v
}
