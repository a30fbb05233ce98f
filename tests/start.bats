# Starts that cannot work: the reason in one line, in bounded time, and nothing
# is left running.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

setup() {
	rm_all
	expect 0 ark create v
	vm=$ARK_ROOT/vm/v
	remember
}

# refused TEXT: ark start fails soon, telling TEXT; the sandbox is not running
# and can be removed.
refused() {
	local begin=$SECONDS
	expect fail timeout -s KILL "${limit:-100}" ark start v
	[[ $code -ge 64 && $code -lt 124 ]] || wrong "code $code"
	says "$1"
	says "'v'"
	echo "took $((SECONDS - begin)) s: $stderr"
	nobody
	[[ $(state v) == dead* || $(state v) == created || $(state v) == stopped ]]
	no_slot
	expect 0 ark logs v
	expect 0 ark rm v
	quiet
}

replace() { # FILE COMMAND...: the sandbox' own FILE is what COMMAND prints
	rm -f "$vm/$1"
	"${@:2}" >"$vm/$1"
}

@test "a kernel of zeros, of noise, of nothing, cut, none" {
	replace kernel head -c 5000000 /dev/zero
	refused ''
	expect 0 ark create v
	replace kernel head -c 5000000 /dev/urandom
	refused ''
	expect 0 ark create v
	replace kernel true
	refused ''
	expect 0 ark create v
	replace kernel head -c 2000000 "$ARK_ROOT/image/mini/kernel"
	refused ''
	expect 0 ark create v
	rm -f "$vm/kernel"
	refused kernel
}

@test "an initrd of noise, without init; a base that is none" {
	replace initrd head -c 100000 /dev/urandom
	refused ''
	expect 0 ark create v
	replace initrd bash -c 'cd "$(mktemp -d)" && mkdir x && find . | cpio -o -H newc --quiet'
	refused ''
	expect 0 ark create v
	replace base head -c 5000000 /dev/zero
	refused ''
}

@test "a disk that is none, is read-only or is gone" {
	replace disk head -c 67108864 /dev/zero
	refused ''
	expect 0 ark create v
	rm -f "$vm/disk"
	refused disk
	expect 0 ark create v
	replace disk true
	refused ''
	expect 0 ark create v
	rm -f "$vm/disk"
	ln -s "$work/precious" "$vm/disk"
	refused disk
	[ ! -e "$work/precious" ]
}

@test "a guest that never becomes ready is ended" {
	# An init that sleeps: everything boots, nobody answers.
	cat >"$work/sleep.c" <<-'END'
		#include <unistd.h>
		int main(void) { for (;;) pause(); }
	END
	musl-gcc -static -o "$work/sleep" "$work/sleep.c"
	mkdir "$work/ird"
	cp "$work/sleep" "$work/ird/init"
	replace initrd bash -c "cd '$work/ird' && find . | cpio -o -H newc --quiet"
	limit=140 refused 'ready'
	rm -r "$work/ird" "$work/sleep" "$work/sleep.c"
}

@test "a VMM that is missing, or does not run here" {
	expect 69 env ARK_VMM=bochs ark start v
	says bochs
	expect 64 env ARK_ACCEL=xen ark start v
	says xen
	equal "$(state v)" created
	nothing_new
	# KVM forced where there may be none: it works or is refused.
	code=0
	ARK_ACCEL=kvm timeout 100 ark start v >"$work/o" 2>"$work/e" || code=$?
	if [ "$code" = 0 ]; then
		expect 0 ark exec v true
		expect 0 ark kill v
	else
		equal "$(wc -l <"$work/e")" 1
		nobody
	fi
	# No QEMU at all, seen by a start in a mount namespace of its own.
	expect 69 unshare -m bash -c '
		for file in /usr/bin/qemu-system-x86_64*; do
			mount --bind /dev/null "$file"
		done
		exec ark start v'
	says qemu-system-x86
	# One that cannot be run.
	cat >"$work/qemu.c" <<-'END'
		#include <stdio.h>
		int main(void) { fputs("broken QEMU\n", stderr); return 3; }
	END
	gcc -o "$work/qemu" "$work/qemu.c"
	rm "$work/qemu.c"
	export work
	expect fail unshare -m bash -c '
		for file in /usr/bin/qemu-system-x86_64*; do
			mount --bind "$work/qemu" "$file"
		done
		exec timeout -s KILL 60 ark start v'
	says 'broken QEMU'
	nobody
}

@test "no /dev/net/tun" {
	expect fail unshare -m bash -c '
		mount --bind /dev/null /dev/net/tun
		exec timeout -s KILL 60 ark start v'
	says 'tun'
	nobody
	equal "$(state v | sed 's/(.*//')" dead
}

@test "values that are bad" {
	for file in memory cpus; do
		for word in '' x -1 0 99999999999999999999999; do
			cp "$vm/$file" "$work/kept"
			echo "$word" >"$vm/$file"
			expect fail timeout -s KILL 60 ark start v
			says "'v'"
			cp "$work/kept" "$vm/$file"
		done
	done
	nobody
	expect 0 ark start v
	expect 0 ark exec v echo fine
	expect 0 ark rm -f v
}

# ---- full host disks: a file system of its own, which only this test sees ----

full() { # SIZE SCRIPT: on a tmpfs of that size with the image and a sandbox `a`
	mkdir -p "$work/full"
	unshare -m bash -c '
		set -eu
		mount -t tmpfs -o size='"$1"' none "$ARK_ROOT/../full"
		mkdir -m 700 "$ARK_ROOT/../full/image" "$ARK_ROOT/../full/vm" "$ARK_ROOT/../full/kernel"
		cp -a "$ARK_ROOT/image/mini" "$ARK_ROOT/../full/image/"
		export ARK_ROOT="$(readlink -f "$ARK_ROOT/../full")"
		touch "$ARK_ROOT/tcg-told"
		cd "$ARK_ROOT"
		fill() { dd if=/dev/zero of="$ARK_ROOT/filler" bs=4k 2>/dev/null || :; }
		'"$2"
}

@test "a full host disk at create: one line, 74, nothing left" {
	expect 0 full 100m '
		fill
		before=$(find . | sort)
		code=0
		ark create a >/tmp/o.$$ 2>/tmp/e.$$ || code=$?
		out=$(cat /tmp/o.$$); err=$(cat /tmp/e.$$); rm /tmp/[oe].$$
		[ "$code" = 74 ] || { echo "code $code"; echo "$err"; exit 1; }
		[ "$out" = "" ]
		[ "$(echo "$err" | wc -l)" = 1 ]
		[[ $err == *"No space left"* ]] || { echo "$err"; exit 1; }
		[ "$(find . | sort)" = "$before" ] || { find .; exit 1; }
		ark ps | wc -l | grep -qx 1
		rm filler
		ark create a >/dev/null'
}

@test "a host disk that fills while a guest writes: an error there, no pause; rm -f frees it" {
	expect 0 full 130m '
		trap "ark rm -f a 2>/dev/null" EXIT
		ark create a >/dev/null
		ark start a
		ark exec --timeout 40 a -- sh -c "cd /root; for i in \$(seq 90); do cat /bin/busybox; done >x; sync; echo code \$?" >"$work/o" 2>&1 || :
		[ "$(ark ps -o state --no-header | xargs)" = running ] || { ark ps; cat "$work/o"; exit 1; }
		[ "$(timeout 20 ark exec a echo alive)" = alive ] || { cat "$work/o"; exit 2; }
		fill
		yes | head -n 100000 | timeout 20 ark exec a -- sh -c "cat >/dev/ttyS0" || :
		[ "$(timeout 20 ark exec a echo alive)" = alive ] || exit 3
		fill
		ark rm -f a || exit 4
		[ -z "$(ark ps -q)" ] || exit 5
		# A dead process may take a moment to let go of a large file.
		for _ in 1 2 3 4 5; do
			ark create b >/dev/null && break
			sleep 0.2
		done
		[ -d vm/b ] || exit 6
		ark start b || exit 7
		fill
		ark stop -t 3 b || exit 8
		[ "$(ark ps -o state --no-header | xargs)" = stopped ] || { ark ps; exit 9; }
		ark gc || exit 10
		ark rm b || exit 11'
	nobody
}

@test "a full ARK_RUN: a start fails with a line, nothing is left" {
	code=0
	expect 0 unshare -m bash -c '
		set -eu
		mount -t tmpfs -o size=64k,nr_inodes=12 none "$ARK_RUN"
		for i in 1 2 3 4 5 6 7 8; do : >"$ARK_RUN/x$i" || :; done
		code=0
		timeout -s KILL 100 ark start v >"$work/o" 2>"$work/e" || code=$?
		[ "$code" -ge 64 ] && [ "$code" -lt 124 ] || { echo "code $code"; cat "$work/e"; exit 1; }
		[ "$(wc -l <"$work/e")" = 1 ] || { cat "$work/e"; exit 1; }
		! ls "$ARK_RUN" | grep -xE "[0-9a-f]{4}"'
	soon 5 nobody
}

@test "long paths of ARK_ROOT and ARK_RUN work" {
	part=$(printf 'p%.0s' {1..100})
	long=$work/$part/$part/$part
	mkdir -p "$long"
	mv "$ARK_ROOT" "$long/root"
	mv "$ARK_RUN" "$long/run"
	export ARK_ROOT=$long/root ARK_RUN=$long/run
	expect 0 ark start v
	expect 0 ark exec v echo far away
	equal "$stdout" 'far away'
	echo x >"$work/f"
	expect 0 ark cp "$work/f" v:/f
	expect 0 ark pause v
	expect 0 ark resume v
	kill -KILL "$(pid_of keeper v)"
	expect 0 ark exec v cat /f
	expect 0 ark rm -f v
	nobody
	mv "$long/root" "$work/root"
	mv "$long/run" "$work/run"
	rm -r "${work:?}/$part" "$work/f"
	# Beyond what a path may be: refused.
	deep=$(printf "/$part%.0s" {1..45})
	expect fail env ARK_ROOT="$deep" ark-ps
	says ''
}
