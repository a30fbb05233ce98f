# Files both ways: bytes, modes, holes, names, trees, and guests that lie.

load helper

setup_file() {
	ark_files mini
	ark run --name vm --disk 128M mini
}

teardown_file() {
	ark_end
}

setup() {
	mkdir "$work/$BATS_TEST_NUMBER"
	cd "$work/$BATS_TEST_NUMBER" || return
}

sum() {
	sha256sum <"$1"
}

guest_sum() {
	ark exec -n vm sha256sum "$1" | sed 's/ .*/  -/'
}

@test "files of every size, both ways" {
	for size in 0 1 18432 131071 131072 131073 1048576; do
		head -c $size /dev/urandom >"f$size"
		expect 0 ark cp "f$size" vm:/tmp/
		quiet
		equal "$(guest_sum "/tmp/f$size")" "$(sum "f$size")" "to: $size"
		expect 0 ark cp "vm:/tmp/f$size" "back$size"
		quiet
		cmp "f$size" "back$size"
	done
	expect 0 ark exec vm -- sh -c 'rm /tmp/f*'
	rm f* back*
}

@test "names of every kind" {
	for name in 'two words' 'a,b' 'é€🐧' '-rf' "it's" 'a"b' '$x' 'a\b' '*' ' ' \
		'a:b' $'a\tb' "$(printf 'n%.0s' {1..255})"; do
		echo "content of $name" >"./$name"
		expect 0 ark cp -- "./$name" vm:/tmp/
		expect 0 ark exec vm cat "/tmp/$name"
		equal "$stdout" "content of $name"
		mkdir back
		expect 0 ark cp -- "vm:/tmp/$name" back/
		cmp "./$name" "back/$name"
		expect 0 ark exec vm rm -- "/tmp/$name"
		rm -r -- "./$name" back
	done
}

@test "to a name, into a directory, over a file" {
	echo one >f
	expect 0 ark cp f vm:/tmp/newname
	expect 0 ark cp f vm:/tmp
	expect 0 ark exec vm cat /tmp/newname /tmp/f
	equal "$stdout" $'one\none'
	echo two >f
	expect 0 ark cp f vm:/tmp/newname
	expect 0 ark exec vm cat /tmp/newname
	equal "$stdout" two
	echo three >g
	expect 0 ark cp f g vm:/tmp/
	expect 0 ark exec vm cat /tmp/f /tmp/g
	equal "$stdout" $'two\nthree'
	mkdir into
	expect 0 ark cp vm:/tmp/f vm:/tmp/g into
	equal "$(cat into/f into/g)" $'two\nthree'
	expect 0 ark cp vm:/tmp/f .
	expect fail ark cp f g vm:/tmp/newname
	[[ $stderr == *newname*$'\n'*newname* ]] || wrong 'not told for both'
	expect fail ark cp vm:/tmp/f vm:/tmp/g f
	[ ! -s "$out" ] || wrong stdout
	equal "$(cat f)" two
	expect fail ark cp f vm:/tmp/newname/x
	says newname
	rm -r f g into
}

@test "a missing directory is an error, or made with -p" {
	echo x >f
	expect fail ark cp f vm:/tmp/no/such/f
	says /tmp/no/such
	expect fail ark cp f vm:/tmp/no/such/
	says /tmp/no/such
	expect 1 ark exec vm test -e /tmp/no
	expect 0 ark cp -p f vm:/tmp/no/such/f
	quiet
	expect 0 ark cp -p f vm:/tmp/other/
	expect 0 ark exec vm cat /tmp/no/such/f /tmp/other/f
	equal "$stdout" $'x\nx'
	expect fail ark cp vm:/tmp/no/such/f not/here/f
	says not/here
	[ ! -e not ]
	expect 0 ark cp -p vm:/tmp/no/such/f not/here/f
	equal "$(cat not/here/f)" x
	rm -r f not
}

@test "what is not there or cannot be read" {
	expect 66 ark cp nosuch vm:/tmp/
	says nosuch
	expect fail ark cp vm:/nosuch .
	says /nosuch
	expect fail ark cp vm:/etc/passwd/x .
	says /etc/passwd/x
	echo good >good
	expect fail ark cp nosuch good vm:/tmp/
	equal "$(wc -l <"$err")" 1
	mkfifo fifo
	expect fail timeout 20 ark cp fifo vm:/tmp/
	[ "$code" != 124 ] || wrong 'hangs at a FIFO'
	expect 0 ark exec vm mkfifo /tmp/fifo
	expect fail timeout 20 ark cp vm:/tmp/fifo out
	[ "$code" != 124 ] || wrong 'hangs at a FIFO'
	expect fail timeout 20 ark cp vm:/dev/zero out
	[ "$code" != 124 ] || wrong 'copies a device for ever'
	rm -f fifo good out
}

@test "modes and times are kept" {
	for mode in 600 644 755 400 777; do
		echo x >"m$mode"
		chmod $mode "m$mode"
		touch -d '2020-02-03 04:05:06 UTC' "m$mode"
		expect 0 ark cp "m$mode" vm:/tmp/
		expect 0 ark exec vm stat -c '%a %Y' "/tmp/m$mode"
		equal "$stdout" "$mode 1580702706"
		expect 0 ark cp "vm:/tmp/m$mode" back
		equal "$(stat -c '%a %Y %u' back)" "$mode 1580702706 0"
		rm -f back "m$mode"
	done
	# Nothing becomes setuid or setgid on the way to the host.
	expect 0 ark exec vm -- sh -c 'cp /bin/busybox /tmp/suid; chown 0:0 /tmp/suid; chmod 6755 /tmp/suid; mkdir -p /tmp/sd; chmod 7777 /tmp/sd; cp /tmp/suid /tmp/sd/; chmod 4711 /tmp/sd/suid'
	expect 0 ark cp vm:/tmp/suid back
	equal "$(stat -c %a back)" 755
	expect 0 ark cp vm:/tmp/sd .
	equal "$(find . -perm /6000)" '' 'setuid on the host'
	expect 0 ark exec vm rm -r /tmp/sd /tmp/suid
	rm -r back sd
}

@test "holes stay holes" {
	truncate -s 64M sparse
	printf begin | dd of=sparse conv=notrunc 2>/dev/null
	printf end | dd of=sparse bs=1 seek=$((50 << 20)) conv=notrunc 2>/dev/null
	expect 0 ark cp sparse vm:/tmp/sparse
	expect 0 ark exec vm -- sh -c 'du -k /tmp/sparse; stat -c %s /tmp/sparse'
	[ "$(awk 'NR == 1 { print $1 }' "$out")" -le 256 ] || wrong 'dense there'
	equal "$(tail -n 1 "$out")" $((64 << 20))
	expect 0 ark cp vm:/tmp/sparse back
	[ "$(du -k back | cut -f 1)" -le 256 ] || du -k back
	cmp sparse back
	expect 0 ark exec vm rm /tmp/sparse
	rm sparse back
}

@test "trees: files, directories, links, empty ones, both ways" {
	mkdir -p tree/a/b/c tree/empty 'tree/with space'
	echo 1 >tree/a/one
	echo 2 >tree/a/b/c/two
	: >tree/nothing
	chmod 700 tree/a
	ln -s a/one tree/link
	ln -s /etc/passwd tree/absolute
	ln -s nowhere tree/dangling
	head -c 300000 /dev/urandom >'tree/with space/random'
	expect 0 ark cp tree vm:/tmp/
	silent
	expect 0 ark cp vm:/tmp/tree back
	silent
	diff -r --no-dereference tree back
	equal "$(cd back && find . -printf '%p %y %m %l\n' | sort)" \
		"$(cd tree && find . -printf '%p %y %m %l\n' | sort)"
	# Into an existing directory it becomes a folder of that, as cp(1) does.
	mkdir into
	expect 0 ark cp vm:/tmp/tree into
	[ -f into/tree/a/one ]
	expect 0 ark cp vm:/tmp/tree/ into2
	[ -f into2/a/one ]
	expect 0 ark exec vm -- sh -c 'rm -r /tmp/tree; mkdir /tmp/t2'
	expect 0 ark cp tree vm:/tmp/t2
	expect 0 ark exec vm cat /tmp/t2/tree/a/b/c/two
	equal "$stdout" 2
	rm -r tree back into into2
}

@test "two thousand files, and a deep tree" {
	mkdir many
	for i in {1..2000}; do
		echo "$i" >"many/file-$i"
	done
	begin=$SECONDS
	expect 0 ark cp many vm:/tmp/
	expect 0 ark cp vm:/tmp/many back
	diff -rq many back | head -n 5 | grep . && return 1
	[ $((SECONDS - begin)) -le 60 ] || wrong "took $((SECONDS - begin)) s"
	expect 0 ark exec vm rm -r /tmp/many
	mkdir -p "deep/$(printf 'd/%.0s' {1..60})"
	echo x >"deep/$(printf 'd/%.0s' {1..60})f"
	expect 0 ark cp deep vm:/tmp/
	expect 0 ark cp vm:/tmp/deep deepback
	diff -r deep deepback
	expect 0 ark exec vm rm -r /tmp/deep
	rm -r many back deep deepback
}

@test "onto a full disk in the guest: an error, no half file, the old one stays" {
	expect 0 ark exec vm -- sh -c 'echo old >/root/target; dd if=/dev/zero of=/root/filler bs=1M 2>/dev/null; sync; df -k / | tail -n 1'
	head -c 20000000 /dev/urandom >big
	expect fail ark cp big vm:/root/target
	says 'No space left'
	expect fail ark cp big vm:/root/new
	says 'No space left'
	expect 0 ark exec vm -- sh -c 'cat /root/target; ls -A /root'
	equal "$(head -n 1 "$out")" old 'the old file is gone'
	equal "$(sed 1d "$out" | sort | xargs)" 'filler target' 'something is left'
	expect 0 ark exec vm rm /root/filler
	expect 0 ark cp big vm:/root/new
	equal "$(guest_sum /root/new)" "$(sum big)"
	expect 0 ark exec vm rm /root/new
	rm big
}

@test "onto a full disk on the host" {
	expect 0 ark exec vm -- sh -c 'head -c 8000000 /dev/urandom >/root/big'
	mkdir small
	expect 0 unshare -m bash -c '
		mount -t tmpfs -o size=1m none small && cd small
		echo old >target
		ark cp vm:/root/big target >o 2>e
		code=$?
		[ "$code" != 0 ] && [ "$(wc -l <e)" = 1 ] && grep -q "No space" e &&
		[ "$(cat target)" = old ] && [ "$(ls -A | xargs)" = "e o target" ] ||
		{ echo "code $code"; cat e; ls -lA; exit 9; }'
	expect 0 ark exec vm rm /root/big
	rmdir small
}

@test "links in a guest do not lead out of the destination" {
	mkdir dest
	echo precious >precious
	# A directory and a link of one name can never both be in a tree; a link
	# that is there already, put by an earlier copy, must not be followed.
	expect 0 ark exec vm -- sh -c '
		mkdir -p /tmp/evil1 /tmp/evil2/x
		ln -s ../.. /tmp/evil1/x
		ln -s '"$PWD"'/precious /tmp/evil1/abs
		echo owned >/tmp/evil2/x/precious
		echo owned >/tmp/evil2/abs'
	expect 0 ark cp vm:/tmp/evil1/ dest/t
	root=dest/t
	[ -L dest/t/x ] || root=dest/t/evil1
	[ -L $root/x ]
	ark cp vm:/tmp/evil2/x $root/ >"$BATS_TEST_TMPDIR/out" 2>&1 || :
	ark cp vm:/tmp/evil2/abs $root/ >"$BATS_TEST_TMPDIR/out" 2>&1 || :
	ark cp vm:/tmp/evil2/abs $root/abs >"$BATS_TEST_TMPDIR/out" 2>&1 || :
	equal "$(cat precious)" precious 'written through a link'
	# The other way round: links in the guest that a put meets.
	echo new >f
	expect 0 ark exec vm -- sh -c 'echo secret >/tmp/secret; ln -sf /tmp/secret /tmp/lnk'
	ark cp f vm:/tmp/lnk >"$BATS_TEST_TMPDIR/out" 2>&1 || :
	expect 0 ark exec vm cat /tmp/lnk
	rm -rf dest precious f
}

@test "a link as the source or the destination on the host" {
	echo x >f
	ln -s f l
	expect 0 ark cp l vm:/tmp/l
	ln -s nowhere broken
	ark cp broken vm:/tmp/ >"$BATS_TEST_TMPDIR/out" 2>&1 || :
	expect 0 ark exec vm true
	rm -f f l broken
}

@test "a copy that is cut off leaves nothing behind" {
	head -c 30000000 /dev/urandom >big
	timeout -s KILL 0.3 ark cp big vm:/root/cut || :
	soon 10 expect 0 ark exec vm -- sh -c '[ -z "$(ls -A /root | grep cut)" ]' ||
		equal "$(guest_sum /root/cut)" "$(sum big)"
	expect 0 ark cp big vm:/root/big
	mkdir d
	timeout -s KILL 0.3 ark cp vm:/root/big d/cut || :
	timeout -s TERM 0.3 ark cp vm:/root/big d/cut2 || :
	[ ! -e d/cut ] || cmp big d/cut
	[ ! -e d/cut2 ] || cmp big d/cut2
	expect 0 ark exec vm rm -f /root/big /root/cut
	rm -r d big
}

@test "several copies at once" {
	for i in {1..8}; do
		head -c 500000 /dev/urandom >"p$i"
		ark cp "p$i" vm:/tmp/ &
		pids[i]=$!
	done
	for i in {1..8}; do
		wait "${pids[i]}"
		equal "$(guest_sum "/tmp/p$i")" "$(sum "p$i")"
	done
	rm p*
}

@test "a stopped sandbox, and one that is killed in the middle" {
	head -c 60000000 /dev/zero | tr '\0' x >big
	ark cp big vm:/root/big >"$BATS_TEST_TMPDIR/o" 2>"$BATS_TEST_TMPDIR/e" &
	pid=$!
	sleep 0.3
	kill -KILL "$(pid_of vmm vm)"
	code=0
	wait $pid || code=$?
	[ "$code" != 0 ] || equal "$code" 'not 0'
	equal "$(wc -l <"$BATS_TEST_TMPDIR/e")" 1
	expect fail ark cp big vm:/root/
	says vm
	expect fail ark cp vm:/etc/passwd .
	says vm
	rm big
}
