# The life of a sandbox: create, start, pause, resume, stop, kill, wait, logs,
# inspect, ps, rm.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

@test "create prints the name and makes what was asked for" {
	expect 0 ark create --image mini -m 128M --cpus 2 --disk 64M a
	equal "$stdout" a
	silent
	cd "$ARK_ROOT/vm/a"
	equal "$(cat image)" mini
	equal "$(cat memory)" $((128 << 20))
	equal "$(cat cpus)" 2
	equal "$(cat disk-size)" $((64 << 20))
	[[ $(cat id) =~ ^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$ ]]
	[ $(($(date +%s) - $(cat created))) -le 5 ]
	equal "$(stat -c %a "$ARK_ROOT" "$ARK_ROOT/vm" . disk | xargs)" \
		'700 700 700 600'
	for link in kernel initrd base; do
		equal "$(stat -c %i $link)" \
			"$(stat -c %i "$ARK_ROOT/image/mini/$link")" "$link"
	done
	equal "$(state a)" created
	expect 73 ark create a
	says exists
	equal "$(state a)" created
	expect 0 ark rm a
	quiet
	[ ! -e "$ARK_ROOT/vm/a" ]
}

@test "made-up names are good ones and differ" {
	for _ in 1 2 3; do
		expect 0 ark create
		[[ $stdout =~ ^[a-z]+-[a-z]+-[0-9]+$ ]] || wrong name
		names+=("$stdout")
	done
	equal "$(printf '%s\n' "${names[@]}" | sort -u | wc -l)" 3
	expect 0 ark ps -q
	equal "$stdout" "$(printf '%s\n' "${names[@]}" | sort)"
	expect 0 ark rm "${names[@]}"
	quiet
}

@test "twenty creates of one name at once: one wins" {
	for i in {1..20}; do
		ark create same >"$BATS_TEST_TMPDIR/o$i" 2>"$BATS_TEST_TMPDIR/e$i" &
		pids+=($!)
	done
	won=0
	for pid in "${pids[@]}"; do
		code=0
		wait "$pid" || code=$?
		[ "$code" = 0 ] && won=$((won + 1)) || equal "$code" 73
	done
	equal "$won" 1
	equal "$(cat "$BATS_TEST_TMPDIR"/o*)" same
	equal "$(cat "$BATS_TEST_TMPDIR"/e* | wc -l)" 19
	equal "$(ls -A "$ARK_ROOT/vm")" same
	expect 0 ark rm same
}

# bats test_tags=lab
@test "start, and each state's refusals" {
	remember
	expect 0 ark create --image mini v
	for verb in pause resume; do
		expect 73 ark $verb v
		says v
	done
	expect 0 ark stop v
	quiet
	expect 0 ark wait v
	equal "$stdout" created
	expect 125 ark exec v true
	says 'created'
	expect 0 ark logs v
	quiet
	equal "$(state v)" created

	expect 0 ark start v
	[ ! -s "$out" ] || wrong 'start prints'
	equal "$(state v)" running
	expect 73 ark start v
	says running
	expect 73 ark rm v
	says running
	expect 0 ark resume v
	quiet
	expect 73 ark disk resize v 9G
	says running
	equal "$(state v)" running
	expect 0 ark exec v -- hostname
	equal "$stdout" v
	silent
}

@test "inspect and ps tell the same" {
	expect 0 ark inspect v
	silent
	equal "$(wc -l <"$out")" 1
	jq -e --arg slot "$((16#$(cat "$ARK_ROOT/vm/v/slot")))" \
		--arg pid "$(pid_of vmm v)" '
		.name == "v" and .state == "running" and .ready and
		.reason == null and .image == "mini" and .cpus == 1 and
		.memory == 268435456 and .disk == 1073741824 and
		(.slot | tostring) == $slot and (.vmm_pid | tostring) == $pid and
		.keeper and (.generation | length) == 36 and
		(.vmm | startswith("qemu ")) and
		(.isolation | test("^(kvm|none \\(tcg\\))$"))' "$out" ||
		wrong inspect
	expect 0 ark ps --json
	jq -e '.name == "v" and .state == "running"' "$out" || wrong json
	expect 0 ark ps -o json
	jq -e '.name == "v"' "$out" || wrong json
	expect 0 ark ps
	equal "$(wc -l <"$out")" 2
	[[ ${stdout##*$'\n'} =~ ^v\ +running\ +mini\ +1\ +256M\ +[0-9]+\.[0-9]\ +[0-9.]+[KM]\ +[0-9]+[sm]\ +-\ +(kvm|none\ \(tcg\))$ ]] ||
		wrong row
	expect 0 ark ps --probe -o name,answers --no-header
	[[ $stdout =~ ^v\ +yes ]] || wrong probe
	expect 0 ark ps -a -o state,name --no-header
	[[ $stdout =~ ^running\ +v$ ]] || wrong columns
	expect 0 ark ps -q -a
	equal "$stdout" v
	expect 0 ark ls
}

# bats test_tags=lab
@test "pause and resume: the guest's time stands still" {
	expect 0 ark exec -d v -- sh -c 'while sleep 0.2; do echo x >>/tmp/ticks; done'
	soon 10 ark exec v test -s /tmp/ticks
	expect 0 ark pause v
	quiet
	equal "$(state v)" paused
	expect 0 ark pause v
	quiet
	expect 125 ark exec v true
	says paused
	expect 73 ark start v
	says paused
	expect 73 ark rm v
	says paused
	expect 0 ark ps --probe -o name,answers --no-header
	[[ $stdout =~ ^v\ +(-|no) ]] || wrong probe
	expect 0 ark resume v
	quiet
	equal "$(state v)" running
	# Five ticks a second, but for the time of the pause.
	begin=$(date +%s%N) paused=$(within 2)
	expect 0 ark exec v -- sh -c 'wc -l </tmp/ticks'
	before=$stdout
	expect 0 ark pause v
	sleep "$paused"
	expect 0 ark unpause v
	expect 0 ark exec v -- sh -c 'wc -l </tmp/ticks'
	ran=$((($(date +%s%N) - begin) / 1000000 - paused * 1000))
	[ $((stdout - before)) -le $((ran / 200 + 3)) ] || wrong 'time went on'
}

@test "logs hold the console, and -f goes on until the end" {
	expect 0 ark logs v
	silent
	[[ $stdout == *'ark: agent ready'* ]] || wrong log
	ark logs -f v >"$BATS_TEST_TMPDIR/follow" 2>&1 &
	follower=$!
	expect 0 ark exec v -- sh -c 'echo marker-one >/dev/console'
	soon 5 grep -q marker-one "$BATS_TEST_TMPDIR/follow"
	expect 0 ark exec v -- sh -c 'echo marker-two >/dev/console'
	soon 5 grep -q marker-two "$BATS_TEST_TMPDIR/follow"
	kill -0 $follower
	# A reader that goes away ends it.
	timeout 20 bash -c 'ark logs -f v | head -n 1' >/dev/null
	ark wait v >"$BATS_TEST_TMPDIR/wait" 2>&1 &
	waiter=$!
	expect 0 ark stop v
	quiet
	wait $follower
	wait $waiter
	equal "$(cat "$BATS_TEST_TMPDIR/wait")" stopped
	equal "$(state v)" stopped
	expect 0 ark wait v
	equal "$stdout" stopped
	expect 0 ark stop v
	quiet
	expect 0 ark kill v
	quiet
	expect 0 ark inspect v
	jq -e '.state == "stopped" and .reason == null' "$out" || wrong inspect
	nobody
	expect 0 ark logs v
	[[ $stdout == *marker-two* ]] || wrong 'log is gone'
}

@test "a second start has the disk's files and a new generation" {
	expect 0 ark start v
	expect 0 ark exec v -- sh -c 'echo kept >/root/file; sync; cat /proc/sys/kernel/random/boot_id'
	boot=$stdout
	generation=$(ark inspect v | jq -r .generation)
	expect 0 ark kill v
	quiet
	equal "$(state v)" stopped
	expect 0 ark start v
	expect 0 ark exec v -- cat /root/file /proc/sys/kernel/random/boot_id
	[[ $stdout == kept* ]] || wrong 'file is lost'
	[[ $stdout != *"$boot"* ]] || wrong 'same boot'
	[ "$(ark inspect v | jq -r .generation)" != "$generation" ]
	expect 0 ark exec v -- sh -c 'dd if=/dev/urandom bs=16 count=1 2>/dev/null | od -An -tx1; date +%s'
	[ $(($(date +%s) - $(tail -n 1 "$out"))) -le 2 ] || wrong 'wrong clock'
}

@test "a guest that does not power off is forced after -t, a paused one too" {
	# Processes that ignore all there is to ignore.
	expect 0 ark exec -d v -- sh -c 'trap "" TERM INT HUP; while :; do sleep 100; done'
	begin=$SECONDS
	expect 0 ark stop -t 3 v
	quiet
	[ $((SECONDS - begin)) -le 8 ] || wrong 'took too long'
	equal "$(state v)" stopped
	expect 0 ark start v
	expect 0 ark pause v
	begin=$SECONDS
	expect 0 ark stop v
	quiet
	[ $((SECONDS - begin)) -le 15 ] || wrong 'took too long'
	equal "$(state v)" stopped
}

@test "many names: goes on after a failure, first failure's code" {
	expect 0 ark create w
	expect 66 ark start nosuch v w
	equal "$(wc -l <"$err")" 1
	[[ $stderr == *nosuch* ]] || wrong stderr
	equal "$(state v) $(state w)" 'running running'
	expect 73 ark start v nosuch w
	equal "$(wc -l <"$err")" 3
	expect 0 ark pause v w
	expect 0 ark resume v w
	expect 66 ark kill v nosuch w
	equal "$(state v) $(state w)" 'stopped stopped'
	expect 0 ark wait v w
	equal "$stdout" $'v: stopped\nw: stopped'
	expect 66 ark rm nosuch v w
	equal "$(wc -l <"$err")" 1
	equal "$(ark ps -q)" ''
}

@test "start and rm -f of one at once, then everything is gone" {
	rm_all
	ark gc >/dev/null
	remember
	expect 0 ark create race
	ark start race >/dev/null 2>"$BATS_TEST_TMPDIR/start" &
	sleep "0.$((RANDOM % 9))"
	expect 0 ark rm -f race
	wait $! || :
	[ "$(wc -l <"$BATS_TEST_TMPDIR/start")" -le 2 ] ||
		cat "$BATS_TEST_TMPDIR/start"
	expect 0 ark rm -f race
	quiet
	expect 0 ark gc
	nothing_new
}

# A reader that has gone: descriptor 6 is a pipe that nobody reads.
open_broken_pipe() {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	exec 5<>"$BATS_TEST_TMPDIR/fifo"
	exec 6>"$BATS_TEST_TMPDIR/fifo" 5<&-
	rm "$BATS_TEST_TMPDIR/fifo"
}

@test "output to a full disk is 74 and told, to a closed pipe quiet" {
	ark rm -f one
	expect 0 ark create one
	said=$BATS_TEST_TMPDIR/said failed=()
	for command in 'ps' 'ps -q' 'ps --json' 'inspect one' 'wait one' 'help' \
		'help run' '--help' '--version' 'image ls' 'image inspect mini' \
		'image --help' 'disk ls' 'disk ls --json' 'ps --help' 'run --help' \
		'exec --help' 'cp --help' 'gc --help' 'disk --help' 'doctor --help'; do
		code=0
		# shellcheck disable=SC2086 # words
		ark $command >/dev/full 2>"$said" || code=$?
		[ "$code $(wc -l <"$said")" = '74 1' ] && grep -q '^ark.*No space' "$said" ||
			failed+=("full, $command: $code $(cat "$said");")
		for signal in --default-signal=PIPE --ignore-signal=PIPE; do
			code=0
			open_broken_pipe
			# shellcheck disable=SC2086 # words
			env $signal ark $command >&6 2>"$said" || code=$?
			exec 6>&-
			[[ $code == 74 || $code == 141 ]] && [ ! -s "$said" ] ||
				failed+=("pipe, $command: $code $(cat "$said");")
		done
	done
	equal "${failed[*]}" ''
	code=0
	ark create >/dev/full 2>/dev/null || code=$?
	equal "$code" 74 'create to a full disk'
	expect 0 rm_all
}

@test "two hundred sandboxes on disk are listed in time" {
	rm_all
	remember
	for i in {1..200}; do
		ark create "many-$i" >/dev/null
	done
	TIMEFORMAT='%U %S'
	{ time ark ps >"$BATS_TEST_TMPDIR/ps"; } 2>"$BATS_TEST_TMPDIR/time"
	equal "$(wc -l <"$BATS_TEST_TMPDIR/ps")" 201
	# 0.3 ms each: of processor time, which others on the host do not add to.
	awk -v limit="$(within 60)" '{ exit !(($1 + $2) * 1000 <= limit) }' \
		"$BATS_TEST_TMPDIR/time" ||
		equal "$(cat "$BATS_TEST_TMPDIR/time")" '60 ms'
	# Disks are sparse: a sandbox that was never started is small.
	[ "$(du -sk "$ARK_ROOT/vm" | cut -f 1)" -lt 400000 ] ||
		equal "$(du -sk "$ARK_ROOT/vm")" small
	expect 0 ark rm $(ark ps -q)
	quiet
	nothing_new
}
