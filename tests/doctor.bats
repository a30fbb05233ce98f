# ark doctor: each thing that a host can lack, made to lack here; that it is
# told, at its level, with what mends it; and that this does mend it.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

# look COMMAND...: $out and $code of a doctor, which has nothing for stderr.
look() {
	out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err code=0
	"$@" >"$out" 2>"$err" || code=$?
	silent
	[ "$code" -le 2 ] || wrong "exit code $code"
}

# in_mounts SETUP: doctor after that, in mounts and a network of its own.
in_mounts() {
	look unshare -mn sh -ec '
		tmp=$1
		# fake PROGRAM TEXT: alone in its folder, and says so.
		fake() {
			mount -t tmpfs t "${1%/*}"
			printf "#!/bin/sh\necho \"%s\"\n" "$2" >"$1"
			chmod 755 "$1"
		}
		'"$1"'
		exec ark doctor --json' sh "$BATS_TEST_TMPDIR"
}

# finds WHAT LEVEL TEXT [MEND]
finds() {
	line=$(jq -c --arg w "$1" 'select(.what == $w)' "$out")
	equal "$(jq -r .level <<<"$line")" "$2" "$line" || return
	[[ $(jq -r .how <<<"$line") == *"$3"* ]] || equal "$line" "$3" || return
	[[ $(jq -r .mend <<<"$line") == *"${4:-}"* ]] || equal "$line" "$4"
}

mend() { # WHAT
	jq -r --arg w "$1" 'select(.what == $w).mend' "$out"
}

@test "text and JSON are the same, and the exit code is the worst of them" {
	look ark doctor
	words=$(awk '{ print $1, $2 }' "$out") of_text=$code
	look ark doctor --json
	equal "$(jq -r '"\(.level) \(.what):"' "$out")" "$words"
	equal "$code" "$of_text"
	case $words in
	*fail\ *) equal "$code" 2 ;;
	*warn\ *) equal "$code" 1 ;;
	*) equal "$code" 0 ;;
	esac
	# Whoever is told of something is told what mends it.
	equal "$(jq -c 'select(.level != "ok" and .mend == null)' "$out")" ''
	[ "$(wc -l <"$out")" -ge 18 ]
}

@test "what a host lacks" {
	while IFS='|' read -r setup what level text mend; do
		in_mounts "$setup"
		finds "$what" "$level" "$text" "$mend"
		[ "$level" != fail ] || equal "$code" 2 "$setup"
		[ "$level" = ok ] || [ "$code" != 0 ] || equal "$code" 'not 0'
	done <<-'END'
	mount --bind /dev/null /usr/bin/qemu-system-x86_64|qemu|fail|no /usr|apt-get install
	fake /usr/local/bin/qemu-system-x86_64 'QEMU emulator version 6.2.0'|qemu|fail|6.2|apt-get install
	fake /usr/local/bin/qemu-system-x86_64 'QEMU emulator version 9.1.2 (x)'|qemu|ok|9.1.2|
	fake /usr/local/bin/qemu-system-x86_64 'what?'|qemu|fail|no version|apt-get install
	fake /usr/local/bin/cloud-hypervisor 'cloud-hypervisor v53.0.0'|cloud-hypervisor|ok|53.0|
	fake /usr/local/bin/cloud-hypervisor 'cloud-hypervisor v51.1'|cloud-hypervisor|warn|51.2|
	fake /usr/local/bin/cloud-hypervisor 'cloud-hypervisor v52.0'|cloud-hypervisor|warn|52.0|
	mount -t tmpfs t /dev/net|tun|fail|/dev/net/tun|modprobe tun
	mount -t tmpfs t /sys/fs/cgroup|cgroup|warn|no limits|cgroup
	mount -t tmpfs t /sys/kernel/security; echo capability >/sys/kernel/security/lsm|landlock|warn|off|lsm=landlock,capability
	mount -t tmpfs t /sys/kernel/security; echo lockdown,landlock >/sys/kernel/security/lsm|landlock|ok|on|
	mount -t tmpfs t /sys/kernel/security|landlock|ok|not known|
	mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys|sysctls|fail|read-only|remount
	iptables -P FORWARD DROP|iptables|ok|FORWARD DROP|
	iptables-legacy -P FORWARD DROP|iptables|warn|iptables-legacy drops|iptables-legacy -P FORWARD ACCEPT
	mount -t tmpfs -o size=100m t "$ARK_ROOT"|space|fail|MiB|ark image rm
	mount -t tmpfs -o size=1g t "$ARK_ROOT"|space|warn|MiB|ark image rm
	mount -t tmpfs t "$ARK_ROOT"|images|warn|none|ark image build
	mount -t tmpfs t "$ARK_ROOT/vm"|root-dir|fail|on another one: vm|move them
	mount -o bind,ro "$ARK_ROOT" "$ARK_ROOT"; mount -o remount,ro,bind "$ARK_ROOT"|root-dir|fail|cannot write|remount,rw
	mount -t tmpfs t "$ARK_RUN"|run-dir|ok|run|
	mount -t tmpfs t "$ARK_RUN"; echo x >"$ARK_RUN/boot_id"|run-dir|warn|another boot|ark gc
	export ARK_ACCEL=tcg|accelerator|warn|no security boundary|unset
	export ARK_ACCEL=vax|accelerator|fail|vax|unset
	export ARK_CONF=/none|config|fail|no /none|unset
	cp $ARK_CONF $tmp/c; export ARK_CONF=$tmp/c; chmod 666 $ARK_CONF|config|fail|others than root|chmod
	export ARK_CONF=$tmp/c; chmod 644 $ARK_CONF; echo colour = red >>$ARK_CONF|config|fail|colour|man ark.conf
	export ARK_CONF=$tmp/c; echo image = other >$ARK_CONF|images|warn|not 'other'|ark image build other
	export ARK_CONF=$tmp/c; echo uid_base = 0 >$ARK_CONF; echo a:x:77:77::/:/x >$tmp/p; mount --bind $tmp/p /etc/passwd|uids|fail|/etc/passwd: a|uid_base
	:|network|ok|none was made yet|
	END
}

@test "leftovers and lost chains: told, and mended by what is told" {
	boot v
	look ark doctor --json
	finds leftovers ok none
	finds network ok 'chains are right'
	kill -KILL "$(pid_of keeper v)" "$(pid_of vmm v)"
	soon 5 state_is v 'dead*'
	mkdir "$ARK_ROOT/snap" "$ARK_ROOT/snap/.x.999999999.tmp"
	iptables -F ARK-FWD
	look ark doctor --json
	finds leftovers warn 'dead slots: 1, half-made directories: 1' 'ark gc'
	finds network warn ARK-FWD 'ark net init'
	for what in leftovers network; do
		eval "$(mend $what)" >/dev/null
	done
	look ark doctor --json
	finds leftovers ok none
	finds network ok 'chains are right'
	expect 0 ark start v
	expect 0 ark exec v true
	rm_all
}
