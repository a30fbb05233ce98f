# make install: what is where, and that it works from there.

load helper

setup_file() {
	ark_files
	cp -al "$ARK_TEST_IMAGES/kernel" "$ARK_TEST_IMAGES/cache" "$work"
	rmdir "$ARK_ROOT/kernel"
	mv "$work/kernel" "$work/cache" "$ARK_ROOT"
	(
		umask 077
		make -s -C "$tree" install DESTDIR="$work/inst" PREFIX=/usr
	)
	# Nothing is found in the tree by chance.
	export inst=$work/inst PATH=$work/inst/usr/bin:/usr/bin:/bin
}

teardown_file() {
	ark_end
}

# make_words VARIABLE: its words, by the Makefile.
make_words() {
	make -s -C "$tree" --eval="words: ; @printf '%s\n' \$($1)" words
}

programs() {
	make_words COMMANDS
	make_words SCRIPTS | grep -vx ark
}

@test "every file has its place, its mode and its owner, and no other is there" {
	{
		echo 755 usr/bin/ark
		for name in $(programs) init mkinitrd extract-vmlinux pick-modules; do
			echo "755 usr/libexec/ark/$name"
		done
		for page in "$tree"/man/*; do
			echo "644 usr/share/man/man${page##*.}/${page##*/}"
		done
		for name in "$tree"/share/error/*; do
			echo "644 usr/share/ark/error/${name##*/}"
		done
		for name in "$tree"/share/images/*; do
			echo "755 usr/share/ark/images/${name##*/}"
		done
		cat <<-'END'
		644 etc/ark/ark.conf
		644 usr/lib/systemd/system/ark-cgi.socket
		644 usr/lib/systemd/system/ark-cgi@.service
		644 usr/lib/systemd/system/ark-serve.service
		644 usr/lib/systemd/system/ark.slice
		644 usr/lib/sysusers.d/ark.conf
		644 usr/lib/tmpfiles.d/ark.conf
		644 usr/libexec/ark/doctor-host
		644 usr/share/ark/ark.conf
		644 usr/share/ark/commands
		755 usr/share/ark/demo
		644 usr/share/ark/lighttpd-tls.conf
		644 usr/share/ark/openapi.yaml
		644 usr/share/bash-completion/completions/ark
		644 usr/share/zsh/site-functions/_ark
		END
	} | sort -k 2 >"$BATS_TEST_TMPDIR/want"
	find "$inst" -type f -printf '%m %P\n' | sort -k 2 | diff "$BATS_TEST_TMPDIR/want" -
	equal "$(find "$inst" -mindepth 1 -type d ! -perm 755)" '' 'mode of a directory'
	equal "$(find "$inst" ! -user root -o ! -group root -o -type l)" '' 'owner or type'
}

@test "texts name the places that they were installed to" {
	cd "$inst"
	equal "$(grep -rIoE "$tree|/usr/local/(bin/ark|libexec|lib/systemd|share/ark).*" .)" '' 'another place'
	failures=0
	while read -r path; do
		[ -e "$inst${path%.}" ] || { echo "no $path"; failures=1; }
	done < <(grep -rIohE '/usr/(bin/ark|libexec/ark|lib/systemd|share/ark)[a-zA-Z0-9/@._-]*' . | sort -u)
	equal "$failures" 0
}

@test "a configuration that is there stays" {
	echo 'memory = 64M' >"$inst/etc/ark/ark.conf"
	expect 0 make -s -C "$tree" install DESTDIR="$inst" PREFIX=/usr
	equal "$(cat "$inst/etc/ark/ark.conf")" 'memory = 64M'
	rm "$inst/etc/ark/ark.conf"
	expect 0 make -s -C "$tree" install DESTDIR="$inst" PREFIX=/usr
	cmp "$inst/etc/ark/ark.conf" "$tree/share/ark.conf"
	expect 0 env ARK_CONF="$inst/etc/ark/ark.conf" ark ps -q
}

@test "every command says its version and its options" {
	version=$(sed -n 's/^#define ARK_VERSION "\(.*\)"/\1/p' "$tree/src/ark.h")
	for name in ark $(programs); do
		command=$inst/usr/libexec/ark/$name
		[ "$name" != ark ] || command=$inst/usr/bin/ark
		expect 0 "$command" --version
		[[ $stdout == *" $version" ]] || wrong "$name --version"
		silent
		expect 0 "$command" --help
		[[ $stdout == Usage:* ]] || wrong "$name --help"
		silent
	done
	while read -r verb; do
		expect 0 ark help "$verb"
		expect 0 ark "$verb" --help
	done < <(grep -v '^#' "$tree/share/commands" | cut -f 1)
}

@test "an image is built and a sandbox runs" {
	remember
	expect 0 ark image build mini
	expect 0 ark run --rm mini -- sh -c 'echo $((6 * 7))'
	equal "$stdout" 42
	expect 0 ark image rm mini
	nothing_new
}

@test "with another prefix and through a link" {
	expect 0 make -s -C "$tree" install DESTDIR="$work/other" PREFIX=/opt/ark
	other=$work/other/opt/ark
	[ -x "$other/bin/ark" ]
	[ -x "$other/libexec/ark/ark-vm" ]
	grep -q '^ExecStart=/opt/ark/bin/ark ' "$other/lib/systemd/system/ark-serve.service"
	expect 0 env PATH=/usr/bin:/bin "$other/bin/ark" ps -q
	quiet
	expect 0 env PATH=/usr/bin:/bin "$other/bin/ark" --version
	expect 0 env PATH=/usr/bin:/bin "$other/bin/ark" help
	[[ $stdout == *"  run "* ]] || wrong help
	ln -s "$other/bin/ark" "$work/link"
	expect 0 env PATH=/usr/bin:/bin "$work/link" ps -q
	quiet
	expect 0 env PATH="$other/bin:/usr/bin:/bin" ark image ls -q
	quiet
	expect 0 env PATH="$other/bin:/usr/bin:/bin" ark help run
	rm -r "$work/other" "$work/link"
}

@test "Debian's package has the same version and needs the same packages" {
	cd "$tree"
	equal "$(sed -n '1s/^ark-microvm (\(.*\)) .*/\1/p' debian/changelog)" \
		"$(sed -n 's/^#define ARK_VERSION "\(.*\)"/\1/p' src/ark.h)" version
	wants() { # FIELD: names of packages
		awk -v field="$1:" '/^[^ ]/ { on = $1 == field } on' debian/control |
			sed 's/^[A-Za-z-]*://; s/([^)]*)//g' | tr -s ', \n' '\n'
	}
	# Of the first group, what is build-essential is not said.
	failures=$(
		share/install-deps -l build | grep -vxE 'gcc|make|libc6-dev|linux-libc-dev' |
			grep -vxF "$(wants Build-Depends)"
		share/install-deps -l run image | grep -vxF "$(wants Depends; wants Recommends)"
		share/install-deps -l demo | grep -vxF "$(wants Recommends)"
		share/install-deps -l serve | grep -vxF "$(wants Suggests)"
	) || :
	equal "$failures" '' 'not in debian/control'
}

# ---- systemd ----------------------------------------------------------------

@test "systemd understands the units, and one that is wrong is told" {
	# Programs where the units say that they are.
	expect 0 make -s -C "$tree" install PREFIX="$work/real" CONFDIR="$work/real/etc"
	cd "$work/real/lib/systemd/system"
	sed 's/@//' ark-cgi@.service >ark-cgi-one.service
	for unit in ark-serve.service ark-cgi.socket ark-cgi-one.service ark.slice; do
		expect 0 systemd-analyze verify --man=no "./$unit"
		quiet
	done
	sed 's|ark serve|no-such serve|' ark-serve.service >bad.service
	expect fail systemd-analyze verify --man=no ./bad.service
	# Nothing begins by itself: there are no links to targets.
	equal "$(find "$work/real/lib/systemd" "$inst/usr/lib/systemd" -type l)" ''
	rm -r "$work/real"
}

@test "the directories are those that the programs make themselves" {
	mkdir "$work/by-ark" "$work/by-systemd"
	expect 0 env ARK_ROOT="$work/by-ark/var/lib/ark" ARK_RUN="$work/by-ark/run/ark" ark gc
	expect 0 systemd-tmpfiles --root="$work/by-systemd" --create "$inst/usr/lib/tmpfiles.d/ark.conf"
	quiet
	for dir in var/lib/ark run/ark; do
		equal "$(stat -c '%u %g %a' "$work/by-systemd/$dir")" \
			"$(stat -c '%u %g %a' "$work/by-ark/$dir")" "$dir"
	done
	# The programs take them as they are.
	expect 0 env ARK_ROOT="$work/by-systemd/var/lib/ark" ARK_RUN="$work/by-systemd/run/ark" ark ps -q
	quiet
	rm -r "$work/by-ark" "$work/by-systemd"
}

@test "the user of lighttpd is made where there is none, and left as it is" {
	user=$(ark serve --config | sed -n 's/^server.username = "\(.*\)"/\1/p')
	mkdir -p "$work/users/etc"
	expect 0 systemd-sysusers --root="$work/users" "$inst/usr/lib/sysusers.d/ark.conf"
	grep -q "^$user:.*:/usr/sbin/nologin\$" "$work/users/etc/passwd"
	grep -q "^$user:" "$work/users/etc/group"
	grep -q "^SocketGroup=$user\$" "$inst/usr/lib/systemd/system/ark-cgi.socket"
	for file in passwd group; do
		cp "/etc/$file" "$work/users/etc/$file"
	done
	expect 0 systemd-sysusers --root="$work/users" "$inst/usr/lib/sysusers.d/ark.conf"
	for file in passwd group; do
		cmp "/etc/$file" "$work/users/etc/$file"
	done
	rm -r "$work/users"
}
