# kill -9 and failing calls at every step of create, start and rm, by strace:
# afterwards the state is a true one, and nothing is left.

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

not_starting() {
	[ "$(state "$1")" != starting ]
}

@test "ark start killed at random" {
	for i in 1 2 3 4 5 6; do
		expect 0 ark create "r$i"
		ark start "r$i" >/dev/null 2>&1 &
		pid=$!
		sleep "0.$((RANDOM % 10))$((RANDOM % 10))"
		kill -KILL $pid 2>/dev/null || :
		wait $pid || :
		word=$(state "r$i")
		[[ $word == created || $word == starting || $word == running ||
			$word == dead* || $word == stopped ]] ||
			equal "$word" 'a state'
	done
	# A start whose command was killed either comes up or is dead.
	for i in 1 2 3 4 5 6; do
		soon 60 not_starting "r$i"
		word=$(state "r$i")
		if [ "$word" = running ]; then
			expect 0 ark exec "r$i" echo "$i"
		fi
		expect 0 ark rm -f "r$i"
		quiet
	done
	expect 0 ark gc
	nothing_new
}

# Each process counts its own calls: first ark-vm is killed at its N-th call,
# then the keeper at its, the child that becomes the VMM, and who says hello.
@test "ark start killed at every step" {
	expect 0 ark create v
	hits=0
	while read -r call counts; do
		for n in $counts; do
			killed "$call" "$n" ark start v && hits=$((hits + 1))
			case $(state v) in
			created | stopped | dead* | running | starting) ;;
			*) equal "$(state v)" "a state after $call $n" ;;
			esac
			soon 60 not_starting v
			[ "$(state v)" != running ] || ark exec -n v true ||
				equal "$call $n" 'one that works'
			expect 0 ark kill v
			ark gc >"$BATS_TEST_TMPDIR/gc"
			soon 5 nobody || equal "$call $n" nothing
			no_slot || equal "$call $n" nothing
		done
	done <<-'END'
		renameat 1 2 3 4 5
		fsync 2 4
		unlinkat 1 4 6
		mkdirat 1
		clone 1 2
		mknodat 1
		bind 1 2
		memfd_create 1
		flock 1 2
		setresuid 1
		connect 1
		execve 1 2 3
	END
	# The rest of them has hit other processes than the first.
	[ "$hits" -ge 8 ] || equal "$hits" '8 or more'
	# And it still starts.
	expect 0 ark start v
	expect 0 ark exec v echo fine
	equal "$stdout" fine
	removed v
}

@test "ark create and rm killed at every step" {
	hits=0
	for call in renameat2 renameat mkdirat linkat unlinkat ioctl copy_file_range; do
		for n in 1 3; do
			killed $call $n ark create c && hits=$((hits + 1))
			word=$(state c)
			[[ $word == '' || $word == created ]] ||
				equal "$word" "created or nothing after $call $n"
			killed $call $n ark rm -f c && hits=$((hits + 1))
			expect 0 ark ps
			silent
			expect 0 ark rm -f c
			quiet
			expect 0 ark gc
			nothing_new
		done
	done
	[ "$hits" -ge 6 ] || equal "$hits" '6 or more'
}

@test "errors instead of calls: one line, and nothing is left" {
	failed=()
	for inject in mkdirat:error=ENOSPC linkat:error=EMLINK linkat:error=EXDEV \
		fsync:error=EIO renameat:error=EIO renameat2:error=ENOSPC \
		ftruncate:error=ENOSPC; do
		code=0
		traced "${inject%%:*}" "${inject#*:}" ark create c \
			>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" || code=$?
		if [ "$code" != 0 ]; then
			[ "$(wc -l <"$BATS_TEST_TMPDIR/e")" = 1 ] ||
				failed+=("$inject: $(cat "$BATS_TEST_TMPDIR/e");")
			equal "$(state c)" '' "$inject"
			nothing_new
		else
			expect 0 ark rm c
		fi
	done
	expect 0 ark create c
	for inject in memfd_create:error=ENOMEM mknodat:error=ENOSPC \
		bind:error=EADDRINUSE unshare:error=EPERM \
		setresuid:error=EAGAIN pidfd_open:error=EMFILE \
		clone:error=EAGAIN fsync:error=EIO; do
		code=0
		traced "${inject%%:*}" "${inject#*:}" ark-vm start c \
			>"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" || code=$?
		[ "$code" != 0 ] || {
			expect 0 ark kill c
			continue
		}
		[ "$code" -ge 64 ] && [ "$code" -lt 124 ] ||
			failed+=("$inject: $code;")
		[ "$(wc -l <"$BATS_TEST_TMPDIR/e")" = 1 ] &&
			! grep -q 'Broken pipe' "$BATS_TEST_TMPDIR/e" ||
			failed+=("$inject: $(cat "$BATS_TEST_TMPDIR/e");")
		soon 5 nobody || equal "$inject" nothing
		expect 0 ark gc
		no_slot
	done
	equal "${failed[*]}" ''
	removed c
}

