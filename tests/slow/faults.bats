# Random commands, and kill -9 of a random process of ours in the middle of
# each: afterwards the state is a true one, what runs answers, every snapshot is
# whole, and gc leaves nothing that nobody owns.
#
#	FAULT_ROUNDS	how many (30 here, 300 in `make check-faults`)
#	FAULT_SEED	the first of the random numbers; that of a run is told,
#			but time does its part, too: a round that has failed is
#			tried again with kill -9 at that step (inject.bats)

load ../helper

setup_file() {
	ark_files mini
	sed -i 's/^memory = .*/memory = 128M/' "$ARK_CONF"
	head -c 300000 /dev/urandom >"$work/file"
	mkdir -m 700 "$ARK_ROOT/snap"
	remember
}

teardown_file() {
	ark_end
}

# any N: one of 0..N-1, in $chosen; RANDOM in a subshell is always the same.
any() {
	chosen=$((RANDOM % $1))
}

# ---- what is done -----------------------------------------------------------

# action: sets $words, to a command for a sandbox v0..v3 and a snapshot s0..s2.
# Some do not fit the state that there is, and say so.
action() {
	local vm snap
	any 4 && vm=v$chosen
	any 3 && snap=s$chosen
	any 16
	# What is not there has to come from somewhere.
	[ -d "$ARK_ROOT/vm/$vm" ] || chosen=$((chosen % 3))
	[ -d "$ARK_ROOT/snap/$snap" ] || [ "$chosen" != 2 ] || chosen=0
	case $chosen in
	0 | 1) words=(ark run --name "$vm" -p 80 mini) ;;
	2) words=(ark restore "$snap" "$vm") ;;
	3 | 4) words=(ark exec "$vm" -- sh -c 'head -c 3000000 /dev/urandom >/f; sync; sleep 0.3') ;;
	5) words=(ark exec -d "$vm" -- sleep 1000) ;;
	6 | 7 | 8) words=(ark snap "$vm" "$snap") ;;
	9) words=(ark fork -c 2 --name "f$round" "$snap") ;;
	10) words=(ark fork -c 2 --name "g$round" "$vm") ;;
	11) words=(ark publish "$vm" 81) ;;
	12) words=(ark cp "$work/file" "$vm:/root") ;;
	13) words=(ark stop -t 2 "$vm") ;;
	14) words=(ark rm -f "$vm") ;;
	15) words=(ark-snap rm "$snap") ;;
	esac
	case $(state "$vm") in
	created | stopped | dead*) words=(ark start "$vm") ;;
	esac
}

# ---- who is killed ----------------------------------------------------------

# Processes of ours: whatever has our ARK_RUN, and VMMs, which have nothing.
# Not what watches this test.
processes() {
	local file pid name
	for file in /proc/[0-9]*/environ; do
		pid=${file//[^0-9]/}
		{ read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
		case $name in
		ark* | ip | iptables* | xtables* | mkfs* | conntrack | jq)
			! grep -qzxF "ARK_RUN=$ARK_RUN" "$file" 2>/dev/null ||
				echo "$pid"
			;;
		esac
	done
	for file in "$ARK_RUN"/????/vmm; do
		alive "$file" || :
	done
}

# strike: kill one of them; $struck tells which.
strike() {
	local pids
	mapfile -t pids < <(processes)
	struck=nobody
	[ "${#pids[@]}" -gt 0 ] || return 0
	any "${#pids[@]}"
	struck=$(tr '\0' ' ' 2>/dev/null <"/proc/${pids[chosen]}/cmdline" |
		cut -c 1-50) || :
	kill -KILL "${pids[chosen]}" 2>/dev/null || struck="nobody in time"
	# One that is still dying is one that lives.
	soon 20 gone "${pids[chosen]}"
}

# ---- what must be true then -------------------------------------------------

none_starting() {
	! ark ps -o state --no-header | grep -q starting
}

# owned: a slot for each that runs, and no other one.
owned() {
	diff <(ark ps --json | jq -r 'select(.slot) | .slot' | sort) \
		<(for slot in "$ARK_RUN"/[0-9a-f][0-9a-f][0-9a-f][0-9a-f]; do
			[ ! -d "$slot" ] || echo $((0x${slot##*/}))
		done | sort)
}

# answers NAME: or its VMM is the one that was killed, and its keeper was still
# at its burial.
answers() {
	expect 0 timeout 60 ark exec "$1" echo alive &&
		equal "$stdout" alive && return
	[[ $struck == *"-name ark-$1 "* ]] && soon 5 state_is "$1" 'dead*'
}

well() {
	local name word snapshot
	# A keeper gives a guest 120 s to become ready.
	soon 150 none_starting || return
	expect 0 ark gc || return
	silent || return
	expect 0 ark ps -o name,state --no-header || return
	silent || return
	while read -r name word; do
		case $word in
		running) ;;
		paused) ark resume "$name" ;;
		created | stopped | dead*) continue ;;
		*) wrong "$name is $word" || return ;;
		esac
		answers "$name" || return
	done <"$out"
	while read -r snapshot; do
		expect 0 ark-snap verify "$snapshot" || return
	done < <(ark snaps -q)
	soon 5 owned
}

# The state is not for ever: all of it goes, in whatever order it comes.
empty() {
	local names
	rm_all || return
	mapfile -t names < <(ark snaps -q)
	[ "${#names[@]}" = 0 ] || expect 0 ark-snap rm "${names[@]}" || return
	expect 0 ark gc || return
	nothing_new 10
}

@test "random commands, and kill -9 of a random process at a random time" {
	rounds=${FAULT_ROUNDS:-30} seed=${FAULT_SEED:-$((RANDOM * 32768 + RANDOM))}
	RANDOM=$seed hits=0
	for ((round = 1; round <= rounds; round++)); do
		action
		timeout 120 "${words[@]}" >"$work/o" 2>"$work/e" </dev/null &
		job=$!
		any 1500
		# The time that a fault comes is no barrier: it is random.
		sleep "$(printf '0.%03d' $((chosen * chosen / 2250)))"
		strike
		[[ $struck == nobody* ]] || hits=$((hits + 1))
		code=0
		wait $job || code=$?
		told="seed $seed, round $round: ${words[*]:0:5} ($code), killed: $struck"
		echo "$told"
		[[ $code != 64 && $code != 124 ]] ||
			equal "$told" 'no usage error, and an end'
		well || equal "$told" 'all well'
		if ((round % 15 == 0)); then
			empty || equal "$told" 'nothing left'
			echo "# $round of $rounds rounds, $hits kills" >&3
		fi
	done
	empty
	[ "$hits" -ge $((rounds / 2)) ] || equal "$hits" 'half of them, or more'
}
