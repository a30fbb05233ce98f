# Images and disks: build, seal, list, verify, remove, clone, grow.

load helper

setup_file() {
	ark_files mini
	ln -sfn "$ARK_TEST_IMAGES/kernel" "$work/kernels"
	rm -rf "$ARK_ROOT/kernel"
	cp -al "$ARK_TEST_IMAGES/kernel" "$ARK_ROOT/kernel"
	[ ! -d "$ARK_TEST_IMAGES/cache" ] ||
		cp -al "$ARK_TEST_IMAGES/cache" "$ARK_ROOT/cache"
}

teardown_file() {
	ark_end
}

@test "ls, inspect and the manifest" {
	expect 0 ark image ls -q
	equal "$stdout" mini
	expect 0 ark image ls
	[[ $stdout == *mini* ]] || wrong list
	expect 0 ark image ls --json
	jq -e '.name == "mini"' "$out" || wrong json
	expect 0 ark image inspect mini
	jq -e '.name == "mini" and .recipe == "mini" and .base_fs == "ext4" and
		(.id | length == 36) and (.created | test("^20.*Z$")) and
		(.kernel_release | length > 0) and (.disk_size > 0) and
		(.sha256 | keys == ["base","disk","initrd","kernel"])' "$out" ||
		wrong manifest
	for file in base initrd kernel; do
		equal "$(jq -r ".sha256.$file" "$out")" \
			"$(sha256sum <"$ARK_ROOT/image/mini/$file" | cut -d ' ' -f 1)" $file
		equal "$(jq -r ".size.$file" "$out")" \
			"$(stat -c %s "$ARK_ROOT/image/mini/$file")" $file
	done
	expect 0 ark image verify mini
}

@test "build again: a new image, nothing left, the old one not replaced" {
	expect 73 ark image build mini
	says mini
	expect 0 ark image build --name second mini
	[ ! -s "$out" ] || [ "$stdout" = second ] || wrong stdout
	expect 0 ark image ls -q
	equal "$stdout" $'mini\nsecond'
	equal "$(find "$ARK_ROOT/image" -name '.*' | wc -l)" 0 'left over'
	# The same things make the same bytes.
	for file in base initrd kernel; do
		cmp "$ARK_ROOT/image/mini/$file" "$ARK_ROOT/image/second/$file"
	done
	equal "$(stat -c %a "$ARK_ROOT/image/second")" 555
	expect 0 ark image build -f --name second mini
	expect 0 ark image rm second
	quiet
	expect 66 ark image rm second
	says second
}

@test "a base without anything of this host" {
	mkdir "$work/mnt"
	expect 0 unshare -m bash -c '
		mount -o ro,loop "$ARK_ROOT/image/mini/base" "$work/mnt"
		cd "$work/mnt"
		find . -perm /6000 -type f
		cat etc/machine-id etc/hostname etc/resolv.conf 2>/dev/null
		grep -rlF "$(hostname)" etc 2>/dev/null
		true'
	equal "$stdout" ''
	rmdir "$work/mnt"
}

@test "a build that is killed leaves nothing that counts, and the next one works" {
	for signal in TERM KILL; do
		setsid ark image build --name killed mini >/dev/null 2>&1 &
		pid=$!
		sleep 1.2
		kill -$signal -- -$pid
		wait $pid || :
		expect 0 ark image ls -q
		equal "$stdout" mini
	done
	soon 10 nobody
	expect 0 ark gc
	equal "$(find "$ARK_ROOT/image" "$ARK_ROOT/kernel" -maxdepth 1 -name '.?*' | wc -l)" 0
	grep -F "$work" /proc/self/mountinfo && return 1
	expect 0 ark image build --name killed mini
	expect 0 ark image rm killed
}

@test "import: what is whole becomes an image, what is not is refused" {
	mkdir "$work/in"
	cp "$ARK_ROOT"/image/mini/{kernel,initrd,base} "$work/in/"
	expect 0 ark disk import "$work/in" imported
	expect 0 ark image verify imported
	expect 73 ark disk import "$work/in" imported
	says imported
	for file in kernel initrd base; do
		mv "$work/in/$file" "$work/kept"
		expect fail ark disk import "$work/in" broken
		says "$file"
		mv "$work/kept" "$work/in/$file"
	done
	rm "$work/in/kernel"
	ln -s /etc/shadow "$work/in/kernel"
	expect fail ark disk import "$work/in" broken
	says kernel
	expect fail ark disk import "$work/nosuch" broken
	says nosuch
	expect 0 ark image ls -q
	equal "$stdout" $'imported\nmini'
	equal "$(find "$ARK_ROOT/image" -name '.?*' | wc -l)" 0
	expect 0 ark image rm imported
	rm -r "$work/in"
}

@test "verify finds a changed byte" {
	cp -r "$ARK_ROOT/image/mini" "$work/copy"
	chmod -R u+w "$work/copy"
	mv "$work/copy" "$ARK_ROOT/image/changed"
	printf x | dd of="$ARK_ROOT/image/changed/base" bs=1 seek=100000 conv=notrunc 2>/dev/null
	expect 65 ark image verify changed
	says base
	printf '{' >"$ARK_ROOT/image/changed/manifest.json"
	expect fail ark image inspect changed
	says changed
	expect 65 ark image ls
	[[ $stdout == *mini* ]] || wrong 'the good one is not listed'
	equal "$(wc -l <"$err")" 1
	expect 0 ark create --image mini unharmed
	expect 0 ark rm unharmed
	expect 0 ark image rm changed
}

@test "an image that is removed: its sandboxes still start; a grown disk is used" {
	cp -al "$ARK_ROOT/image/mini" "$ARK_ROOT/image/short"
	expect 0 ark disk clone --size 256M short v
	equal "$stdout" v
	expect 0 ark image rm short
	expect 66 ark create --image short w
	expect 0 ark start v
	expect 0 ark exec v -- sh -c 'echo kept >/root/f; df -k / | tail -n 1'
	before=$(awk '{ print $2 }' "$out")
	expect 73 ark disk resize v 1G
	expect 0 ark stop v
	expect 64 ark disk resize v 128M
	says 'only grows'
	expect 0 ark disk resize v 1G
	quiet
	equal "$(stat -c %s "$ARK_ROOT/vm/v/disk")" $((1 << 30))
	expect 0 ark start v
	expect 0 ark exec v -- sh -c 'cat /root/f; df -k / | tail -n 1'
	[[ $stdout == kept* ]] || wrong 'lost files'
	[ "$(awk 'NR == 2 { print $2 }' "$out")" -gt $((before * 3)) ] || wrong 'not grown'
	# Blocks that the guest gives back are the host's again.
	expect 0 ark exec v -- sh -c 'dd if=/dev/urandom of=/root/x bs=1M count=60 2>/dev/null; sync'
	full=$(du -k "$ARK_ROOT/vm/v/disk" | cut -f 1)
	[ "$full" -ge 60000 ]
	expect 0 ark exec v -- sh -c 'rm /root/x; sync; sleep 1; fstrim -v / 2>/dev/null; true'
	expect 0 ark disk ls
	[[ $stdout == *v* ]] || wrong 'disk ls'
	expect 0 ark disk ls --json
	jq -es . "$out" >/dev/null
	expect 0 ark rm -f v
}
