# What stands between a guest and the host: the VMM's jail, and the agent's.

load helper

setup_file() {
	ark_files mini
	ark run --name vm mini
	ark run --name other mini
}

teardown_file() {
	ark_end
}

setup() {
	vmm=$(pid_of vmm vm)
	keeper=$(pid_of keeper vm)
}

status_of() {
	sed -n "s/^$1:\t//p" "/proc/$vmm/status"
}

@test "the VMM: a uid of its own, no capability, no new privileges, seccomp" {
	slot=$((16#$(cat "$ARK_ROOT/vm/vm/slot")))
	uid=$((ARK_TEST_UIDS + slot))
	equal "$(status_of Uid)" "$uid"$'\t'"$uid"$'\t'"$uid"$'\t'"$uid"
	equal "$(status_of Gid)" "$uid"$'\t'"$uid"$'\t'"$uid"$'\t'"$uid"
	equal "$(status_of Groups | xargs)" ''
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		equal "$(status_of $set)" 0000000000000000 $set
	done
	equal "$(status_of NoNewPrivs)" 1
	equal "$(status_of Seccomp)" 2
	for thread in "/proc/$vmm/task"/*; do
		grep -q '^Seccomp:	2$' "$thread/status" ||
			equal "$(cat "$thread/comm")" 'under seccomp'
	done
	grep -q '^Max core file size  *0  *0 ' "/proc/$vmm/limits"
	[ "$(stat -c %u "/proc/$(pid_of vmm other)")" != "$uid" ]
}

@test "the VMM's environment, directory and descriptors" {
	equal "$(tr '\0' '\n' <"/proc/$vmm/environ" | grep -vE '^(PATH|LANG)=')" ''
	equal "$(readlink "/proc/$vmm/cwd")" /
	# Paths that it holds: the sandbox' own files, and nothing of others.
	for fd in "/proc/$vmm/fd"/*; do
		target=$(readlink "$fd")
		case $target in
		"$ARK_ROOT/vm/vm/"* | "$ARK_RUN/"*/console | /dev/net/tun | /dev/null | \
			pipe:* | socket:* | anon_inode:* | memfd:ark-ram* | \
			/memfd:ark-ram* | /memfd:* | /dev/kvm) ;;
		*) equal "${fd##*/} $target" 'a descriptor that a VMM needs' ;;
		esac
	done
	# The base is read-only also in the descriptor.
	for fd in "/proc/$vmm/fd"/*; do
		case $(readlink "$fd") in
		*/base | */kernel | */initrd)
			flags=$(sed -n 's/^flags:\t//p' "/proc/$vmm/fdinfo/${fd##*/}")
			equal $((8#$flags & 3)) 0 "$(readlink "$fd")" ;;
		esac
	done
}

@test "the VMM cannot open what is not its own" {
	uid=$(stat -c %u "/proc/$vmm")
	for path in "$ARK_ROOT" "$ARK_ROOT/vm/vm/disk" "$ARK_ROOT/vm/other/disk" \
		"$ARK_RUN" "$(slot vm)/qmp.sock"; do
		! setpriv --reuid "$uid" --regid "$uid" --clear-groups \
			bash -c 'exec 3<"$1"' _ "$path" 2>/dev/null ||
			equal "$path" 'not readable'
	done
}

@test "the sandbox' network namespace holds the tap, the uplink and nothing else" {
	[ "$(readlink "/proc/$vmm/ns/net")" != "$(readlink /proc/self/ns/net)" ]
	[ "$(readlink "/proc/$vmm/ns/net")" != \
		"$(readlink "/proc/$(pid_of vmm other)/ns/net")" ]
	expect 0 nsenter -t "$vmm" -n ip -o link
	equal "$(sed 's/^[0-9]*: \([^:@]*\).*/\1/' "$out" | sort | xargs)" 'eth0 lo tap0'
	expect 0 nsenter -t "$vmm" -n ip -o -4 addr show tap0
	[[ $stdout == *'10.0.2.1/30'* ]] || wrong address
	expect 0 nsenter -t "$vmm" -n ip -6 addr show tap0
	equal "$stdout" ''
	expect 0 nsenter -t "$vmm" -n ip -6 addr show eth0
	equal "$stdout" ''
	expect 0 nsenter -t "$vmm" -n ip route show default
	[[ $stdout == 'default via 169.254.1.1 dev eth0'* ]] || wrong route
	# Nothing of it is in the host's own.
	equal "$(ip -o link | grep ': tap0')" ''
	equal "$(readlink "/proc/$keeper/ns/net")" "$(readlink /proc/self/ns/net)"
}

@test "a guest reaches nobody" {
	for address in 10.0.2.1 10.0.2.3 8.8.8.8 192.168.0.1 169.254.169.254 \
		"$(ip -4 -o addr show scope global | awk 'NR == 1 { sub("/.*", "", $4); print $4 }')"; do
		for port in 22 53 80; do
			expect fail ark exec --timeout 5 vm -- nc -w 1 "$address" $port </dev/null
		done
	done
}

@test "the agent answers only the gateway, and only who knows the generation" {
	# From the guest itself, by its own address and by loopback.
	expect 0 ark exec vm -- sh -c '
		for a in 10.0.2.2 127.0.0.1; do
			printf "\001\0\0\0\025\0\0\0\001\0\0\0\002AAAAAAAAAAAAAAAA\002\0\0\0\0\0\0\0" |
				nc -w 2 $a 1024 | od -An -tx1 | head -n 1
		done'
	# An answer would begin with the type of FRAME_EXIT (69).
	! grep -q '^ 45 00' "$out" || wrong 'it was served'
	# From the gateway, with another generation: an error frame, no exec.
	cat >"$BATS_TEST_TMPDIR/ask.py" <<-'END'
		import socket, struct, sys
		def frame(kind, data=b''):
		    return struct.pack('<B3xI', kind, len(data)) + data
		s = socket.create_connection(('10.0.2.2', 1024), 5)
		op = int(sys.argv[1])
		s.sendall(frame(1, struct.pack('<IB', 1, op) + b'A' * 16))
		if op == 3:
		    s.sendall(frame(3, b'/bin/touch') + frame(3, b'/tmp/intruder'))
		s.sendall(frame(2))
		s.settimeout(10)
		got = b''
		try:
		    while True:
		        more = s.recv(65536)
		        if not more:
		            break
		        got += more
		except OSError:
		    pass
		print(got[0] if got else 'nothing', got[12:200])
	END
	for op in 3 4 11 0 99; do
		expect 0 nsenter -t "$vmm" -n python3 "$BATS_TEST_TMPDIR/ask.py" $op
		[[ $stdout == nothing* || $stdout == 70* ]] || wrong "operation $op was served"
	done
	expect 1 ark exec vm test -e /tmp/intruder
	equal "$(state vm)" running
}

@test "an identity cannot be given twice by anybody but a restore of ours" {
	expect 0 ark exec vm -- sh -c 'cat /run/ark/generation 2>/dev/null || true'
	expect 0 ark exec vm hostname
	equal "$stdout" vm
}

@test "garbage for the agent hurts nobody" {
	for bytes in 0 1 7 8 9 100 70000 3000000; do
		head -c $bytes /dev/urandom |
			nsenter -t "$vmm" -n timeout 5 python3 -c '
import socket, sys
s = socket.create_connection(("10.0.2.2", 1024), 5)
try:
    s.sendall(sys.stdin.buffer.read())
    s.settimeout(1)
    s.recv(1000)
except OSError:
    pass' || :
	done
	# Many connections that say nothing keep nobody out for long.
	nsenter -t "$vmm" -n timeout 20 python3 -c '
import socket, time
c = []
for i in range(400):
    try:
        c.append(socket.create_connection(("10.0.2.2", 1024), 0.2))
    except OSError:
        break
time.sleep(2)' &
	crowd=$!
	sleep 1
	expect 0 ark exec --timeout 30 vm echo alive
	wait $crowd || :
	expect 0 ark exec vm echo alive
	equal "$stdout" alive
}

@test "sealed images: nobody writes what others run on" {
	equal "$(stat -c %a "$ARK_ROOT/image/mini")" 555
	equal "$(stat -c %a "$ARK_ROOT"/image/mini/* | sort -u)" 444
	expect 0 ark exec vm -- sh -c 'for d in /sys/block/*; do echo "$(cat $d/serial 2>/dev/null) $(cat $d/ro)"; done | sort'
	[[ $stdout == *'ark-base 1'* && $stdout == *'ark-disk 0'* ]] || wrong disks
	# Root in the guest writes the raw devices: the image is as it was.
	expect 0 ark exec vm -- sh -c 'for d in /dev/vd?; do dd if=/dev/zero of=$d bs=4k count=16 seek=100 conv=notrunc 2>/dev/null; done; sync; true'
	expect 0 ark image verify mini
}

@test "the keeper holds nothing of who started it" {
	for fd in 0 1 2; do
		equal "$(readlink "/proc/$keeper/fd/$fd")" /dev/null
	done
	equal "$(readlink "/proc/$keeper/cwd")" /
	for fd in "/proc/$keeper/fd"/*; do
		case $(readlink "$fd") in
		*bats* | */log | /dev/tty* | /dev/pts*) equal "$(readlink "$fd")" 'not held' ;;
		esac
	done
	# A session of its own.
	equal "$(ps -o sid= -p "$keeper" | xargs)" "$keeper"
}
