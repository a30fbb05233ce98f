# The Debian package: built, looked at, installed on a clean Debian 12, used
# and removed there.  Each test goes on where the one before has ended.

load ../helper

setup_file() {
	ark_files
	export debian=$work/debian
	# inside COMMAND...: in that Debian as if it were the machine, with
	# processes and mounts of its own that end with the command.  It becomes
	# the root, because what is only a chroot may not make user namespaces;
	# it sees no cgroups, because an ark of this host would give its own
	# the same names.
	cat >"$work/inside" <<-'END'
	#!/usr/bin/env -S unshare --mount --pid --fork --kill-child bash
	set -eu
	mount --bind "$debian" "$debian"
	cd "$debian"
	mount --rbind /dev dev
	mount -t proc proc proc
	mount -t sysfs sysfs sys
	mount -t tmpfs tmpfs run
	pivot_root . mnt
	umount -l /mnt
	code=0
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
		DEBIAN_FRONTEND=noninteractive ${ARK_MIRROR+"ARK_MIRROR=$ARK_MIRROR"} \
		${ARK_SECURITY_MIRROR+"ARK_SECURITY_MIRROR=$ARK_SECURITY_MIRROR"} \
		"$@" </dev/null || code=$?
	exit "$code"
	END
	chmod 755 "$work/inside"
}

teardown_file() {
	ark_end
}

# With a network of its own, as all tests have, or with this host's, to install
# what is not there: nothing that changes rules may be run by that.
inside() {
	unshare --net bash -c 'ip link set lo up && exec "$@"' bash "$work/inside" "$@"
}

online() {
	"$work/inside" "$@"
}

# Whatever there is in it that looks like ours.
named_ark() {
	(cd "$debian" && find . \( -name ark -o -name 'ark[-.]*' \) | sort)
}

@test "make deb leaves the package and nothing else, and lintian likes it" {
	version=$(sed -n 's/^#define ARK_VERSION "\(.*\)"/\1/p' "$tree/src/ark.h")
	listing() {
		find "$tree" -mindepth 1 \( -path "$tree/.git" -o -path "$tree/build/*" \) \
			-prune -o ! -path "$tree/build" -printf '%P %s %T@\n'
		find "$tree/build" -mindepth 1 -maxdepth 1 ! -name '*.deb' ! -name test
	}
	listing | sort >"$work/before"
	rm -f "$tree"/build/*.deb
	expect 0 make -s -C "$tree" deb
	listing | sort | diff "$work/before" -
	equal "$(cd "$tree/build" && echo *.deb)" "ark-microvm_${version}_amd64.deb"
	cp "$tree"/build/*.deb "$work/ark.deb"
	expect 0 lintian --fail-on error,warning --no-tag-display-limit "$work/ark.deb"
	[[ $stdout != *ark-microvm* ]] || wrong lintian
	# Not everybody's: the path of this tree is in no program.
	dpkg-deb -x "$work/ark.deb" "$work/x"
	equal "$(grep -rlF "$tree" "$work/x")" '' 'the path of this tree'
	rm -r "$work/x"
}

@test "it installs on a clean Debian, where nothing begins by itself" {
	mirror=${ARK_MIRROR:-http://deb.debian.org/debian}
	security=${ARK_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
	expect 0 mmdebstrap --quiet --mode=root --variant=minbase \
		bookworm "$debian" "deb $mirror bookworm main" \
		"deb $mirror bookworm-updates main" \
		"deb $security bookworm-security main"
	equal "$(named_ark)" ''
	cp "$work/ark.deb" "$debian/tmp/package.deb"
	expect 0 online apt-get update -q
	expect 0 online apt-get install -q -y --no-install-recommends \
		/tmp/package.deb mmdebstrap curl
	expect 0 inside dpkg -V ark-microvm
	quiet
	expect 0 inside ark --version
	[[ $stdout == ark* ]] || wrong version
	inside dpkg -L ark-microvm | sed 's/^\///' >"$work/files"
	[ "$(wc -l <"$work/files")" -gt 50 ]
	# The archiver, whose program has the same name.
	expect fail inside apt-get install -q -y -s --no-remove ark
	equal "$(find "$debian/etc/systemd" -type l -name 'ark*')" '' 'enabled'
}

@test "the demo runs there" {
	# Also with descriptors of the caller's open.
	expect 0 online ark image build base 4</dev/null 5</dev/null 6</dev/null 7</dev/null
	cat >"$debian/tmp/try" <<-'END'
	/usr/share/ark/demo
	ark ps -q
	ark snaps -q
	grep -c -e ark -e qemu /proc/[0-9]*/comm | grep -v :0 >&2 || :
	END
	expect 0 inside bash -eu /tmp/try
	[[ $stdout == *$'\n42\n'* && $stdout == *$'\n100000\n'* ]] || wrong run
	[[ $stdout == *'exit code 124 '* ]] || wrong timeout
	[[ $stdout == *$'\n# ark.conf(5) - '*$'\n# ark.conf(5) - '* ]] || wrong 'cp and port'
	equal "$(grep -cE '^demo-[0-9]+-try-[1-4] counts [0-9]+, draws +[0-9a-f]{8}$' "$out")" 4 forks
	[[ $stdout == *'That was ark.  Try: /usr/bin/ark help' ]] || wrong 'the end'
	equal "$(grep /comm: "$err")" '' 'still runs'
}

@test "removal ends what runs, a purge leaves what users have made" {
	cat >"$debian/tmp/try" <<-'END'
	ark run --name stays -p 8080:80 base >&2
	ark snap stays kept >&2
	iptables-save | grep -q ^:ARK-PF
	ip6tables-save | grep -q ^:ARK-
	iptables -A FORWARD -i eth9 -m comment --comment 'not ARK-FWD' -j ACCEPT
	echo '# mine' >>/etc/ark/ark.conf
	apt-get remove -q -y ark-microvm >&2
	tail -n 1 /etc/ark/ark.conf
	ip -o link | grep -v LOOPBACK || :
	grep -e ark -e qemu /proc/[0-9]*/comm || :
	iptables-save | grep ARK-
	ip6tables-save | grep ARK- || :
	ls /run/ark 2>&1 || :
	apt-get purge -q -y ark-microvm >&2
	END
	expect 0 inside bash -eu /tmp/try
	equal "$stdout" "# mine
-A FORWARD -i eth9 -m comment --comment \"not ARK-FWD\" -j ACCEPT
ls: cannot access '/run/ark': No such file or directory"
	[[ $stderr == *'/var/lib/ark is left'* ]] || wrong 'nothing about it'
	equal "$(named_ark)" ./var/lib/ark
	while read -r path; do
		[ -d "$debian/$path" ] || [ ! -e "$debian/$path" ] || wrong "left: $path"
	done <"$work/files"
	[ -f "$debian/var/lib/ark/snap/kept/ram" ]
	[ -f "$debian/var/lib/ark/vm/stays/disk" ]
}

@test "installed again it has what was left; without anything a purge leaves nothing" {
	expect 0 inside dpkg -i /tmp/package.deb
	expect 0 inside ark snaps -q
	equal "$stdout" kept
	rm -r --one-file-system "$debian/var/lib/ark"
	expect 0 inside apt-get purge -q -y ark-microvm
	equal "$(named_ark)" ''
}
