# stat.bash - what the benchmarks measure with; to be sourced.

say() { printf 'bench: %s\n' "$*" >&2; }

now() { echo "${EPOCHREALTIME/./}"; }

# Print the milliseconds that a command takes; its output goes to /dev/null.
timed() {
	local start end
	start=$(now)
	"$@" >/dev/null || return
	end=$(now)
	echo "$(((end - start) / 1000)).$((((end - start) % 1000) / 100))"
}

# "median p95" of the numbers on stdin.
stats() {
	sort -n | awk '{ v[NR] = $1 }
		END { m = int((NR + 1) / 2); p = int(NR * 0.95 + 0.999)
		      printf "%.1f %.1f", v[m], v[p] }'
}

# bares COUNT DIR SNAP: that many bare restores of a snapshot at once, each on
# the disk of a sandbox of its own, bare-1 and so on; DIR is for their sockets.
bares() {
	local i pids=()
	for i in $(seq "$1"); do
		build/bench/bare "$ARK_ROOT/vm/bare-$i" "$2$i" \
			"$ARK_ROOT/snap/$3" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || return; done
}

# private: the megabytes of its memory that each running clone has for itself.
private() {
	local slot
	for slot in "$ARK_RUN"/0*/; do
		awk '/ark-ram/ { on = 1 }
			on && /^Anonymous:/ { print $2 / 1024; exit }' \
			"/proc/$(cut -d ' ' -f 1 "$slot/vmm")/smaps"
	done
}
