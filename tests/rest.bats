# The REST endpoint as its clients see it: share/openapi.yaml is true, the old
# clients' part, and what the command line can do.

load helper
load rest/rest

setup_file() {
	ark_files mini
	echo 'auth = none' >>"$ARK_CONF"
	serve
	ark run --name work mini >/dev/null </dev/null
}

teardown_file() {
	serve_end
	ark_end
}

setup() {
	token=
	[ "$(state work)" = running ] || tidy
}

# Only `work`, and it runs.
tidy() {
	keep work ''
	[ "$(state work)" = running ] || boot work
}

@test "the contract is complete: examples, answers, schemas" {
	run "$rest/contract" lint
	[ "$status" = 0 ] || { grep -v ^ok <<<"$output"; false; }
}

@test "the contract is true: each example, and what holds for all" {
	run "$rest/contract" "$base"
	tidy
	[ "$status" = 0 ] || { grep -v ^ok <<<"$output"; false; }
}

@test "who serves: nothing with rights listens, the socket is root's" {
	run serve_processes
	uid=$(awk '$3 == "web" { print $2 }' <<<"$output")
	[ "$uid" -gt 0 ]
	equal "$(awk '$3 == "listener" { print $2 }' <<<"$output")" 0
	# Whoever listens on the port is the web server.
	equal "$(ss -Hltnp 'sport = 7000' | grep -c '"lighttpd"')" 1
	socket=$(find "$ARK_RUN" -name cgi.sock)
	[ -S "$socket" ]
	equal "$(stat -c '%U %a' "$socket")" 'root 660'
	equal "$(stat -c %g "$socket")" "$(id -g "$uid")"
	# No other user gets to it.
	run setpriv --reuid=65500 --regid=65500 --clear-groups \
		python3 -c 'import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])' "$socket"
	[ "$status" != 0 ]
}

@test "ttl: kept, and told when it ends" {
	wants 200 POST /v1/vms '{"vmName":"t","ttl":3600,"start":false}'
	is .ttl 3600
	is .expires null
	begin=$(date +%s)
	wants 200 POST /v1/vms '{"vmName":"t"}'
	left=$(($(date -d "$(field .expires)" +%s) - begin))
	[ "$left" -ge 3600 ] && [ "$left" -lt 3720 ] || equal "$left" 3600
	wants 200 DELETE /v1/vms/t
	wants 200 POST /v1/vms '{"vmName":"t","ttl":90,"rm":true}'
	equal "$(cat "$ARK_ROOT/vm/t/ttl")" 90
	wants 200 DELETE /v1/vms/t
}

@test "Arrakis' life of a sandbox: shapes, states, restore beside it" {
	ark rm -f work
	wants 200 GET /vms
	equal "$body" '{"vms":[]}'
	wants 200 POST /vms '{"vmName":"a","entryPoint":"/bin/x","more":[1]}'
	is .status RUNNING
	is '.portForwards | type' array
	[[ $(field .ip) =~ ^10\.20\.[0-9]+\.[0-9]+/[0-9]+$ ]]
	[ -n "$(field .tapDeviceName)" ]
	wants 409 POST /v1/vms '{"vmName":"a"}'
	wants 200 POST /vms/a/cmd '{"cmd":"echo before >/tmp/testfile"}'
	is .error ''
	is .output ''
	wants 200 POST /vms/a/snapshots '{"snapshotId":"one"}'
	wants 200 POST /vms/a/cmd '{"cmd":"echo after >/tmp/testfile"}'
	# Beside the original, twice, and again of what was restored.
	wants 200 POST /vms '{"vmName":"b","snapshotId":"one"}'
	wants 200 POST /vms/b/cmd '{"cmd":"cat /tmp/testfile"}'
	is .output before
	wants 200 POST /vms/b/snapshots '{"snapshotId":"two"}'
	wants 200 POST /vms '{"vmName":"c","snapshotId":"two"}'
	wants 200 POST /vms/c/cmd '{"cmd":"cat /tmp/testfile; hostname"}'
	is .output $'before\nc'
	wants 200 POST /vms/a/cmd '{"cmd":"cat /tmp/testfile"}'
	is .output after
	wants 409 POST /vms '{"vmName":"c","snapshotId":"one"}'
	wants 200 GET /v1/vms
	is '[.vms[] | .vmName + .status] | join(" ")' \
		'aRUNNING bRUNNING cRUNNING'
	is '[.vms[].ip] | unique | length' 3
	# Pause, resume, stop, boot again: the disk is there, memory is not.
	wants 200 PATCH /vms/c '{"status":"paused"}'
	vm_is c PAUSED
	wants 409 POST /vms/c/cmd '{"cmd":"true"}'
	wants 200 POST /vms/c/snapshots '{"snapshotId":"of-paused"}'
	vm_is c PAUSED
	wants 200 PATCH /vms/c '{"status":"resume"}'
	vm_is c RUNNING
	wants 200 POST /vms/b/cmd '{"cmd":"echo kept >/root/x; sync"}'
	wants 200 PATCH /vms/b '{"status":"stopped"}'
	vm_is b STOPPED
	wants 409 PATCH /vms/b '{"status":"paused"}'
	wants 409 POST /vms/b/cmd '{"cmd":"true"}'
	is .error.code not_running
	wants 200 POST /vms '{"vmName":"b"}'
	vm_is b RUNNING
	wants 200 POST /vms/b/cmd '{"cmd":"cat /root/x"}'
	is .output kept
	wants 200 DELETE /vms/c
	is .success true
	wants 404 DELETE /vms/c
	wants 404 GET /vms/c
	wants 200 DELETE /vms
	is .success true
	no_sandbox
	tidy
}

@test "cmd: bash's grammar, both streams in order, background, bytes" {
	wants 200 POST /vms/work/cmd '{"cmd":"(cd /tmp; pwd); x=1; echo $x >&2"}'
	is .output $'/tmp\n1'
	is .exitCode 0
	wants 200 POST /vms/work/cmd '{"cmd":"# it'\''s a comment\npwd"}'
	is .output /tmp/server_files
	wants 200 POST /vms/work/cmd '{"cmd":"rm -rf /tmp/server_files"}'
	wants 200 POST /vms/work/cmd '{"cmd":"pwd; echo $HOME; kill -TERM $$"}'
	is .output $'/tmp/server_files\n/root'
	is .error 'signal: 15'
	is .exitCode null
	wants 200 POST /vms/work/cmd '{"cmd":"printf \"a\\377b\""}'
	is .output $'a\xef\xbf\xbdb'
	wants 200 POST /vms/work/cmd '{"cmd":"-x"}'
	is .exitCode 127
	# Longer than Arrakis waits, and in the background.
	wants 200 POST /vms/work/cmd \
		'{"cmd":"sleep 1; echo x >/root/done","blocking":false}'
	is .output ''
	is .error ''
	id=$(field .id)
	wants 200 GET "/v1/vms/work/execs/$id/wait?timeout=10"
	is .state exited
	is .exitCode 0
	wants 200 GET '/v1/vms/work/file?path=/root/done'
	equal "$body" x
	# More than is kept: both ends are, and there is a word about it.
	wants 200 POST /vms/work/cmd \
		'{"cmd":"echo first; yes | head -c 3000000; echo last"}'
	[[ $(field '.output[0:6]') == first* ]]
	is '.output[-5:]' last
	[ "$(field '.output | length')" -le 1100000 ]
}

@test "exec: words as they are, streams apart, codes, a stream as it comes" {
	words='["printf","%s|","a b","","$(id)","\n","*","é","-n","`x`","\\"]'
	wants 200 POST /v1/vms/work/exec "{\"argv\":$words}"
	equal "$(field .stdout | head -c -1 | od -An -tx1)" \
		"$(printf '%s|' 'a b' '' '$(id)' $'\n' '*' é -n '`x`' '\' |
			od -An -tx1)"
	wants 200 POST /v1/vms/work/exec \
		'{"argv":["sh","-c","id -u; pwd; echo \"$A\"; echo e >&2; exit 7"],
		"env":{"A":"x=y z"},"cwd":"/tmp","user":"user"}'
	is .stdout $'1000\n/tmp\nx=y z'
	is .stderr e
	is .exitCode 7
	wants 200 POST /v1/vms/work/exec '{"argv":["cat"],"stdin":"é\n"}'
	is .stdout é
	wants 200 POST /v1/vms/work/exec '{"argv":["printf","\\377\\0"]}'
	is .stdoutBase64 /wA=
	wants 200 POST /v1/vms/work/exec \
		'{"argv":["sh","-c","echo a; yes | head -c 2000000; echo z"]}'
	is .truncated true
	is '.stdout[0:1] + .stdout[-2:-1]' az
	[ "$(field '.stdout | length')" -le 1100000 ]
	wants 200 POST /v1/vms/work/exec '{"argv":["true"],"cwd":"/nothing"}'
	is .exitCode 126
	[ -n "$(field .stderr)" ]
	wants 200 POST /v1/vms/work/exec '{"argv":["true"],"user":"nobody-here"}'
	is .exitCode 126
	# Lines arrive when they are written.
	curl -sN -m 20 -d '{"cmd":"echo one; sleep 3; echo two","stream":true}' \
		"$base/v1/vms/work/exec" >"$BATS_TEST_TMPDIR/lines" &
	soon 2 grep -q one "$BATS_TEST_TMPDIR/lines"
	run ! grep -q two "$BATS_TEST_TMPDIR/lines"
	wait $!
	equal "$(jq -c . "$BATS_TEST_TMPDIR/lines")" '{"stdout":"one\n"}
{"stdout":"two\n"}
{"exit":{"exitCode":0,"signal":null,"timedOut":false,"oom":false}}'
	# A character that is cut in two by a buffer is one in the end.
	wants 200 POST /v1/vms/work/exec \
		'{"cmd":"yes é | head -c 3000000","stream":true}'
	equal "$(jq -rj '.stdout // empty' "$out" | md5sum)" \
		"$(yes é | head -c 3000000 | md5sum)"
	is '.stdoutBase64 | strings' ''
}

@test "execs: list, logs, attach, signal, wait" {
	wants 200 POST /v1/vms/work/exec '{"detach":true,
		"argv":["sh","-c","trap \"echo hup\" HUP; echo up; while :; do sleep 0.1; done"]}'
	id=$(field .id)
	wants 200 GET /v1/vms/work/execs
	is ".execs[] | select(.id == $id).state" running
	wants 504 GET "/v1/vms/work/execs/$id/wait?timeout=0.2"
	curl -sN -m 20 "$base/v1/vms/work/execs/$id/logs?follow=true" \
		>"$BATS_TEST_TMPDIR/lines" &
	soon 5 grep -q up "$BATS_TEST_TMPDIR/lines"
	wants 200 DELETE "/v1/vms/work/execs/$id?signal=HUP"
	soon 5 grep -q hup "$BATS_TEST_TMPDIR/lines"
	wants 400 DELETE "/v1/vms/work/execs/$id?signal=NOTHING"
	wants 200 DELETE "/v1/vms/work/execs/$id"
	wait $!
	equal "$(jq -c '.exit // empty | .signal // .exitCode' \
		"$BATS_TEST_TMPDIR/lines" | tail -n 1)" 137 || \
		equal "$(jq -c '.exit // empty | .signal' \
			"$BATS_TEST_TMPDIR/lines")" 9
	wants 200 GET "/v1/vms/work/execs/$id/logs"
	is .stdout $'up\nhup'
	wants 404 GET /v1/vms/work/execs/99999
	wants 404 DELETE /v1/vms/work/execs/99999
	wants 404 GET /v1/vms/work/execs/99999/logs
	wants 404 GET '/v1/vms/work/execs/99999/wait?timeout=1'
}

@test "files: names, bytes, sizes, directories; nothing leads out" {
	# shellcheck disable=SC1112
	for name in 'a b' 'a&b=c' 'a%20b' 'a#b?c' 'é' "a'b\"c" '-f' 'a:b' \
		'work:x' $'new\nline' 'a,b' '...' '~' '*'; do
		path=$(printf '/root/n/%s' "$name" | jq -sRr @uri)
		wants 200 PUT "/v1/vms/work/file?path=$path" "$name"
		expect 0 ark exec -n work -- cat "/root/n/$name"
		equal "$stdout" "$name"
		wants 200 GET "/v1/vms/work/file?path=$path"
		equal "$body" "$name"
	done
	big=$BATS_TEST_TMPDIR/big
	head -c 20000003 /dev/urandom >"$big"
	wants 200 PUT '/v1/vms/work/file?path=/root/big&mode=4750' "@$big"
	is .size 20000003
	expect 0 ark exec -n work -- stat -c '%a %s' /root/big
	[[ $stdout == ?(4)'750 20000003' ]] || equal "$stdout" '750 20000003'
	wants 200 GET '/v1/vms/work/file?path=/root/big'
	cmp "$out" "$big"
	equal "$(header Content-Disposition)" attachment
	# Empty, and over one that is there.
	wants 200 PUT '/v1/vms/work/file?path=/root/big' ''
	wants 200 GET '/v1/vms/work/file?path=/root/big'
	equal "$body" ''
	# A body that ends early leaves what was there.
	wants 200 PUT '/v1/vms/work/file?path=/root/whole' old
	python3 -c 'import socket
s = socket.create_connection(("127.0.0.1", 7000))
s.sendall(b"PUT /v1/vms/work/file?path=/root/whole HTTP/1.1\r\n"
	b"Host: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\nnew")
s.close()'
	sleep 1
	expect 0 ark exec -n work -- sh -c 'cat /root/whole; echo; ls -A /root/'
	[[ $stdout == old$'\n'* ]]
	[[ $stdout != *.tmp* ]]
	[[ $stdout != *$'\n'.ark* ]]
	# A device and a FIFO are no files; the endpoint does not hang on them.
	ark exec -n work -- mkfifo /root/fifo
	wants 409 GET '/v1/vms/work/file?path=/root/fifo'
	wants 409 GET '/v1/vms/work/file?path=/dev/zero'
	# The host's files are not reached, whatever the path.
	for path in /../../../../etc/hostname/x /proc/1/root/x '/root/n/../../x'; do
		api GET "/v1/vms/work/file?path=$path"
		[ "$status" = 404 ] || [ "$status" = 409 ] || [ "$status" = 400 ]
	done
}

@test "files by the old clients: text, bytes, errors of their own" {
	wants 200 POST /vms/work/files '{"files":[
		{"path":"rel/x","content":"é\n"},
		{"path":"/root/a,b","content":""},
		{"path":"bin","contentBase64":"/wA="},
		{"path":"run","content":"#!/bin/sh\necho ran\n","mode":"0755"}]}'
	equal "$body" '{}'
	wants 200 POST /vms/work/cmd '{"cmd":"cat rel/x; ./run"}'
	is .output $'é\nran'
	wants 200 GET '/vms/work/files?paths=rel/x,/tmp/server_files/rel/x,bin,no,/root'
	is '[.files[].content] | tojson' '["é\n","é\n","","",""]'
	is '[.files[] | .error == ""] | tojson' '[true,true,false,false,false]'
	is '.files[2].contentBase64' /wA=
	wants 400 GET /vms/work/files
	wants 400 GET '/vms/work/files?paths='
	wants 400 POST /vms/work/files '{"files":[]}'
	wants 400 POST /vms/work/files '{"files":[{"path":"x"}]}'
	wants 400 POST /vms/work/files '{"files":[{"path":"","content":"x"}]}'
}

@test "trees: there and back, hostile archives, nothing leads out" {
	src=$BATS_TEST_TMPDIR/src back=$BATS_TEST_TMPDIR/back
	mkdir -p "$src/a/b" "$back"
	echo x >"$src/a/b/é x"
	chmod 640 "$src/a/b/é x"
	ln -s b/x "$src/a/link"
	head -c 3000000 /dev/urandom >"$src/a/big"
	long=$(printf 'd%.0s' {1..120})
	mkdir -p "$src/$long/$long"
	echo deep >"$src/$long/$long/f"
	tar -C "$src" -cf "$BATS_TEST_TMPDIR/t.tar" .
	wants 200 PUT '/v1/vms/work/tree?path=/root/made/tree' \
		"@$BATS_TEST_TMPDIR/t.tar"
	wants 200 GET '/v1/vms/work/tree?path=/root/made/tree'
	equal "$(header Content-Type)" application/x-tar
	tar -C "$back" -xf "$out"
	diff -r --no-dereference "$src" "$back"
	equal "$(stat -c %a "$back/a/b/é x")" 640
	equal "$(readlink "$back/a/link")" b/x
	# By any archiver, of any size, and by no archiver at all.
	for format in ustar gnu pax; do
		tar -C "$src" --format "$format" -cf "$BATS_TEST_TMPDIR/f.tar" a
		wants 200 PUT "/v1/vms/work/tree?path=/root/$format" \
			"@$BATS_TEST_TMPDIR/f.tar"
		expect 0 ark exec -n work -- cat "/root/$format/a/b/é x"
		equal "$stdout" x
	done
	head -c 1000000 "$BATS_TEST_TMPDIR/t.tar" >"$BATS_TEST_TMPDIR/cut.tar"
	wants 400 PUT '/v1/vms/work/tree?path=/root/cut' \
		"@$BATS_TEST_TMPDIR/cut.tar"
	# Names and links that lead out of the directory, devices.
	/usr/bin/python3 - "$BATS_TEST_TMPDIR" <<-'END'
	import io, sys, tarfile
	def tar(name, *members):
	    with tarfile.open(sys.argv[1] + '/bad-' + name + '.tar', 'w') as t:
	        for path, kind, link in members:
	            m = tarfile.TarInfo(path)
	            m.type, m.linkname, m.mode = kind, link, 0o644
	            m.size = 4 if kind == tarfile.REGTYPE else 0
	            t.addfile(m, io.BytesIO(b'evil') if m.size else None)
	R, S, H = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE
	tar('up', ('../evil', R, ''))
	tar('down-up', ('a/../../evil', R, ''))
	tar('absolute', ('/root/evil', R, ''))
	tar('link', ('l', S, '..'), ('l/evil', R, ''))
	tar('far-link', ('l', S, '/root'), ('l/evil', R, ''))
	tar('hard-link', ('h', H, '/etc/passwd'))
	tar('device', ('d', tarfile.CHRTYPE, ''))
	tar('fifo', ('f', tarfile.FIFOTYPE, ''))
	END
	for file in "$BATS_TEST_TMPDIR"/bad-*.tar; do
		api PUT '/v1/vms/work/tree?path=/root/jail' "@$file"
		# Or 409: the guest has a link where a directory should be.
		[ "$status" = 400 ] || [ "${file##*-}$status" = link.tar409 ] || {
			echo "$file: $status $body"
			false
		}
	done
	expect 0 ark exec -n work -- sh -c 'ls /root; ls -R /root/jail'
	[[ $stdout != *evil* ]]
}

@test "large bodies: 100 MB are refused or go through, in 16 MiB of memory" {
	cd "$BATS_TEST_TMPDIR"
	head -c 100000000 /dev/zero >zero
	slim sh -c '"$0" "$1" lie POST /v1/vms 100000000 100000000 >status' \
		"$rest/hostile" "$address"
	equal "$(cat status)" 413
	slim curl -s -o put -T zero "$base/v1/vms/work/file?path=/root/zero"
	equal "$(jq .size put)" 100000000
	slim curl -s -o back "$base/v1/vms/work/file?path=/root/zero"
	cmp zero back
	# What somebody does not read is not collected either.
	slim sh -c 'timeout 3 curl -s -o slow --limit-rate 1k "$0" || :' \
		"$base/v1/vms/work/file?path=/root/zero"
	ark exec -n work -- rm /root/zero
}

@test "network: ports answer, close, and are strings; policy" {
	ark exec -n work -- sh -c 'mkdir -p /www && echo page >/www/x && httpd -p 80 -h /www'
	wants 200 POST /v1/vms/work/ports '{"guestPort":80,"description":"page"}'
	port=$(field '.portForwards[] | select(.description == "page").hostPort')
	equal "$(curl -s -m 10 "http://127.0.0.1:$port/x")" page
	wants 200 GET /v1/vms/work
	is '.portForwards[0] | [.guestPort, .hostPort, .description] | tojson' \
		"[\"80\",\"$port\",\"page\"]"
	wants 409 POST /v1/vms/work/ports "{\"guestPort\":81,\"hostPort\":$port}"
	wants 200 POST /v1/vms/work/ports \
		'{"guestPort":"5736-5740","description":"code"}'
	is '[.portForwards[] | select(.description == "code").guestPort] | join(" ")' \
		'5736 5737 5738 5739 5740'
	wants 200 DELETE "/v1/vms/work/ports/$port"
	run -7 curl -s -m 10 "http://127.0.0.1:$port/x"
	wants 404 DELETE "/v1/vms/work/ports/$port"
	wants 200 PUT /v1/vms/work/policy '{"policy":"none"}'
	equal "$(ark port --json work | jq -r .policy)" none
	wants 200 GET /v1/vms/work/policy
	is .policy none
	wants 400 PUT /v1/vms/work/policy '{"policy":"host"}'
	wants 200 PUT /v1/vms/work/policy '{"policy":"open"}'
}

@test "what an image declares is published when no ports are named, and answers" {
	another_image desk 5901=gui 5736-5740=code
	wants 200 POST /v1/vms '{"vmName":"desk","image":"desk"}'
	is '[.portForwards[] | .guestPort + .description] | join(" ")' \
		'5901gui 5736code 5737code 5738code 5739code 5740code'
	ark exec -n desk -- sh -c 'for p in 5901 5738; do
		mkdir /$p; echo $p >/$p/x; httpd -p $p -h /$p; done'
	for guest in 5901 5738; do
		port=$(field ".portForwards[] | select(.guestPort == \"$guest\").hostPort")
		equal "$(curl -s -m 10 "http://127.0.0.1:$port/x")" $guest
	done
	wants 200 DELETE /v1/vms/desk
	wants 200 POST /v1/vms \
		'{"vmName":"desk","image":"desk","ports":[],"start":false}'
	is .portForwards '[]'
	tidy
	ark image rm desk
}

@test "snapshots: fork all or none, tree, verify, remove" {
	wants 200 POST /v1/vms/work/snapshots '{"snapshotId":"base"}'
	wants 200 POST /v1/snapshots/base/fork '{"count":3,"name":"t"}'
	is '[.vms[].vmName] | sort | join(" ")' 't-1 t-2 t-3'
	is '[.vms[].snapshotId] | unique | tojson' '["base"]'
	is '[.vms[].generation] | unique | length' 3
	wants 200 GET /v1/snapshots/tree
	is '[.. | select(.name? == "base") | .children[].name] | sort | join(" ")' \
		't-1 t-2 t-3'
	# Whoever has the name of a parent later is not the parent.
	wants 200 POST /v1/vms/t-3/snapshots '{"snapshotId":"other"}'
	wants 200 DELETE /v1/snapshots/base
	sleep 1.1
	wants 200 POST /v1/vms/t-3/snapshots '{"snapshotId":"base"}'
	wants 200 GET /v1/snapshots/tree
	is '[.tree[].name] | sort | join(" ")' 'base other t-1 t-2 t-3 work'
	wants 200 DELETE /v1/snapshots/other
	wants 200 POST /v1/vms/t-1/fork ''
	is '.vms | length' 1
	wants 200 POST /v1/snapshots/base/verify ''
	is .ok true
	wants 200 DELETE /v1/snapshots/base
	wants 404 GET /v1/snapshots/base
	wants 404 POST /v1/snapshots/base/fork '{"count":1}'
	wants 200 POST /v1/vms/t-2/exec '{"argv":["true"]}'
	is .exitCode 0
	tidy
}

@test "what the API calls it is what the command line calls it" {
	wants 200 GET /v1/vms/work
	equal "$(field .id)" "$(cat "$ARK_ROOT/vm/work/id")"
	equal "$(field .memory)" "$(cat "$ARK_ROOT/vm/work/memory")"
	equal "$(field .generation)" "$(ark inspect work | jq -r .generation)"
	equal "$(field .image)" mini
	wants 200 GET /v1/images
	equal "$(field '.images[].name')" "$(ark image ls -q)"
	wants 200 GET /v1/vms/work/logs
	cmp "$out" "$ARK_ROOT/vm/work/console.log"
	# Made by the one, seen by the other.
	ark create --image mini mine >/dev/null
	wants 200 GET /v1/vms/mine
	is .status CREATED
	is .ip ''
	wants 200 GET '/v1/vms/mine/wait?timeout=5'
	wants 200 DELETE /v1/vms/mine
	[ ! -e "$ARK_ROOT/vm/mine" ]
}
