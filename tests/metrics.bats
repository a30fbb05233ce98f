# What /metrics prints: by promtool's rules, and as the sandboxes are.

load helper

setup_file() {
	ark_files mini
	PATH=$PATH:$tree/build/promtool
	boot web
	boot cold
	ark create never >/dev/null
	ark snap web web.1 >/dev/null
	ark fork --name clone web.1 >/dev/null
	ark stop -t 0 cold
}

teardown_file() {
	ark_end
}

metrics() {
	expect 0 "$tree/build/unit/test-metrics" print
	silent
}

# value NAME{LABELS}
value() {
	awk -v name="$1" '$1 == name { print $2 }' "$out"
}

@test "promtool finds nothing" {
	metrics
	expect 0 promtool check metrics <"$out"
	quiet
}

@test "states, sizes, time, memory, disk and network of each" {
	metrics
	equal "$(value 'ark_sandboxes{state="running"}')" 2
	equal "$(value 'ark_sandboxes{state="stopped"}')" 1
	equal "$(value 'ark_sandboxes{state="created"}')" 1
	equal "$(value 'ark_sandboxes{state="dead"}')" 0
	equal "$(value ark_snapshots)" 1
	for name in web cold never clone-1; do
		equal "$(value "ark_sandbox_memory_bytes{name=\"$name\"}")" \
			268435456
		equal "$(value "ark_sandbox_cpus{name=\"$name\"}")" 1
		disk=$(value "ark_sandbox_disk_bytes{name=\"$name\"}")
		# Those that run may write at any moment.
		case $name in
		cold | never) equal "$disk" $(($(stat -c %b \
			"$ARK_ROOT/vm/$name/disk") * 512)) ;;
		*) [ "$disk" -gt 0 ] ;;
		esac
	done
	equal "$(value 'ark_sandbox_resident_bytes{name="cold"}')" ''
	resident=$(value 'ark_sandbox_resident_bytes{name="clone-1"}')
	private=$(value 'ark_sandbox_private_bytes{name="clone-1"}')
	[ "$private" -gt 1000000 ] && [ "$private" -le "$resident" ]
	cpu=$(value 'ark_sandbox_cpu_seconds_total{name="web"}')
	rx=$(value 'ark_sandbox_network_transmit_bytes_total{name="web"}')
	ark exec web -- sh -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done
		ping -c 1 -W 1 1.1.1.1' >/dev/null || :
	metrics
	awk -v a="$cpu" \
		-v b="$(value 'ark_sandbox_cpu_seconds_total{name="web"}')" \
		'BEGIN { exit !(b > a + 0.02) }'
	[ "$(value 'ark_sandbox_network_transmit_bytes_total{name="web"}')" \
		-gt "$rx" ]
}
