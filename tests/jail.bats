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

# bats test_tags=lab
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
	# Ours, and on top of it the VMM's own, on each thread; but for Cloud
	# Hypervisor's first, which waits for the others.
	for thread in "/proc/$vmm/task"/*; do
		[ "$ARK_VMM ${thread##*/}" != "ch $vmm" ] || continue
		grep -q '^Seccomp:	2$' "$thread/status" &&
			[ "$(sed -n 's/^Seccomp_filters:\t//p' "$thread/status")" -ge 2 ] ||
			equal "$(cat "$thread/comm")" 'under two filters'
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

@test "the VMM's root: what it needs, read-only, and nothing of it on the host" {
	for ns in ipc mnt net pid uts; do
		[ "$(readlink "/proc/$vmm/ns/$ns")" != "$(readlink "/proc/self/ns/$ns")" ]
		[ "$(readlink "/proc/$vmm/ns/$ns")" != "$(readlink "/proc/$(pid_of vmm other)/ns/$ns")" ]
	done
	equal "$(status_of NSpid | tr '\t' ' ')" "$vmm 1"
	equal "$(ps -o sid= -p "$vmm" | xargs)" "$vmm"
	# ID PARENT DEV ROOT POINT OPTIONS
	equal "$(awk '$6 !~ /^ro,/ { print $5 }' "/proc/$vmm/mountinfo")" /run
	equal "$(awk '$6 !~ /nosuid/' "/proc/$vmm/mountinfo")" ''
	equal "$(awk '$5 == "/" { print $4, $(NF - 1) }' "/proc/$vmm/mountinfo")" '/ ark-jail'
	# The only mounts of host files are its program, libraries and firmware.
	while read -r point; do
		case $point in
		/ | /proc | /run | /usr/bin/qemu-* | /usr/local/bin/qemu-* | /etc/ld.so.cache | \
			/usr/lib* | /lib* | /usr/local/lib | /usr/share/qemu | /usr/share/seabios | \
			/usr/local/share/qemu) ;;
		*) equal "$point" 'a mount that a VMM needs' ;;
		esac
	done < <(awk '{ print $5 }' "/proc/$vmm/mountinfo")
	equal "$(ls "/proc/$vmm/root/dev" | grep -vx kvm | xargs)" 'null urandom'
	equal "$(find "/proc/$vmm/root/run" | sort | sed 's|.*/root||' | xargs)" '/run /run/restore /run/save'
	equal "$(stat -c '%u %a' "/proc/$vmm/root/run/restore")" '0 755'
	equal "$(cat /proc/self/mountinfo "/proc/$keeper/mountinfo" | grep -E 'ark-(jail|run)')" ''
}

@test "ark inspect shows what holds, as the kernel says it" {
	expect 0 ark inspect vm
	silent
	jq .jail "$out"
	equal "$(jq -c '.jail | [.own_user, .no_capabilities, .no_new_privs, .root, .writable, .namespaces]' "$out")" \
		'[true,true,true,"jail",["/run"],["ipc","mnt","net","pid","uts"]]'
	equal "$(jq .jail.uid "$out")" "$(stat -c %u "/proc/$vmm")"
	[ "$(jq .jail.seccomp_filters "$out")" -ge 2 ]
	equal "$(jq .jail.landlock "$out")" "$(cat "$(slot vm)/landlock")"
	equal "$(jq -c '.jail.limits | keys' "$out")" '["address","core","data","file","files","processes"]'
	equal "$(jq .jail.limits.core "$out")" 0
	# Of a process that is in no jail it says so.
	sleep 60 &
	cp "$(slot vm)/vmm" "$work/vmm"
	echo "$! $(awk '{ print $22 }' "/proc/$!/stat")" >"$(slot vm)/vmm"
	ark inspect vm >"$work/inspect"
	cp "$work/vmm" "$(slot vm)/vmm"
	kill $!
	equal "$(jq -c '.jail | [.own_user, .no_capabilities, .no_new_privs, .root, .namespaces, .seccomp_filters]' "$work/inspect")" \
		'[false,false,false,"other",[],0]'
	expect 0 ark create --image mini cold
	expect 0 ark inspect cold
	equal "$(jq .jail "$out")" null
	expect 0 ark rm cold
}

# as_vmm COMMAND...: in a mount namespace where QEMU is the program that tries
# to get out.
as_vmm() {
	# shellcheck disable=SC2016 # expanded inside
	ARK_VMM=qemu escape=$tree/build/jail/escape ESCAPE_VERSION=$(qemu-system-x86_64 --version) unshare -m bash -c '
		for file in /usr/bin/qemu-system-x86_64 /usr/local/bin/qemu-system-x86_64; do
			[ ! -e "$file" ] || mount --bind "$escape" "$file"
		done
		exec "$@"' bash "$@"
}

# refused NAME...: these attempts, each of them was made.
refused() {
	local name
	for name; do
		grep -q "^refused $name E" "$work/tried" || equal "$name" refused
	done
}

# at_most NAME MAX: tried, and bounded.
at_most() {
	local got
	got=$(sed -n "s/^limited $1 //p" "$work/tried")
	if [ -z "$got" ] || [ "$got" -le 0 ] || [ "$got" -gt "$2" ]; then
		equal "$1 $got" "$1 at most $2"
	fi
}

tried_all() {
	ark logs "$1" >"$work/tried" && grep -qx done "$work/tried"
}

# bats test_tags=lab
@test "a VMM that was taken over gets nowhere" {
	expect 0 ark create --image mini taken
	# Somebody to attack: sockets of this host, and its processes.
	socket=$(mktemp -u /run/ark-escape.XXXXXX)
	python3 - "$socket" "$(within 60)" <<-'END' 3>&- &
		import socket, sys, time
		held = []
		for address in sys.argv[1], '\0ark-escape':
		    s = socket.socket(socket.AF_UNIX)
		    s.bind(address)
		    s.listen(5)
		    held.append(s)
		s = socket.socket()
		s.bind(('127.0.0.1', 4711))
		s.listen(5)
		time.sleep(int(sys.argv[2]))
	END
	server=$!
	soon 5 test -S "$socket"
	printf 'pid %s\nport 4711\nrun %s\nsocket %s\ndisk %s\n' "$keeper" "$ARK_RUN" \
		"$socket" "$ARK_ROOT/vm/other/disk" >"$work/told"
	rm -f "$ARK_ROOT/vm/taken/kernel"
	cp "$work/told" "$ARK_ROOT/vm/taken/kernel"
	as_vmm ark start taken >"$work/o" 2>"$work/e" 3>&- &
	start=$!
	soon 30 tried_all taken
	# It still lives: nothing of the host has come to listen.
	alive "$(slot taken)/vmm"
	kill $server
	wait $server || :
	rm -f "$socket"
	expect fail timeout 2 bash -c ': </dev/tcp/127.0.0.1/4711'
	wait $start || :
	cat "$work/tried"

	refused read-shadow read-passwd read-other-disk list-ark-run list-places climb \
		climb-from-descriptors root-of-init proc-of-keeper proc-sys proc-write
	refused write-root write-program write-dev write-restore move-restore
	refused write-kernel write-initrd write-base mode-of-base
	refused unix-path unix-abstract tcp-host
	refused raw-socket packet-socket netlink-socket vsock-socket inet6-socket alg-socket
	refused trace-keeper trace read-keeper signal-keeper signal-all limit-keeper
	refused become-root become-group exec-own-file exec-memory char-device block-device
	refused mount-tmpfs mount-proc remount-root new-mount-api unmount chroot pivot-root \
		unshare-user unshare-mounts clone-user clone3-user setns handle
	refused bpf perf userfaultfd io-uring keyring add-key kernel-log module 32-bit-gate \
		shared-memory message-queue
	# Where the kernel can forbid it; else nobody is reached by it.
	[ "$(cat "$(slot vm)/landlock")" -lt 4 ] || refused tcp-listen
	# Its own memory is its own.
	equal "$(sed -n 's/^SUCCEEDED //p' "$work/tried" | grep -vx tcp-listen | xargs)" \
		'write-ram map-ram cut-ram punch-ram'

	at_most fill-run 8388608
	at_most fill-names 64
	at_most grow-disk-mib 1100
	at_most private-memory-mib $((256 + 3072))
	at_most shared-mappings-mib $((256 + 8192))
	at_most processes 512
	at_most descriptors 1024
	# And whoever else is here lives on.
	expect 0 ark exec vm true
	expect 0 ark exec other true
	expect 0 ark rm -f taken
	nobody_of_uid
}

# No process is left of a VMM that has forked 511 times.
nobody_of_uid() {
	local uid
	uid=$(stat -c %u "/proc/$vmm")
	equal "$(ps -eo uid= | awk -v base="$ARK_TEST_UIDS" '$1 >= base && $1 < base + 200' |
		sort -u | wc -l)" 2 "uids in use beside $uid"
}

@test "a clone that was taken over cannot touch what others run on" {
	expect 0 ark snap take vm s
	as_vmm timeout 60 ark restore s evil >"$work/o" 2>"$work/e" 3>&- &
	start=$!
	soon 30 tried_all evil
	wait $start || :
	cat "$work/tried"
	refused write-kernel write-initrd write-base mode-of-base write-ram map-ram cut-ram punch-ram
	equal "$(grep -c '^SUCCEEDED' "$work/tried")" 0
	expect 0 ark snap verify s
	ark rm -f evil
	expect 0 ark snap rm s
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
