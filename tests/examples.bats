# The manuals are true: what they show is run, see tests/manual.
#
# Each page has a @test, which makes what its reader has already.  They begin
# with copies of one sandbox; pages that boot one do so because they show it.
#
# `base` in the manuals is Debian, which check-slow takes (ARK_TEST_BASE=base);
# here it is a name for busybox, so that examples may use what both have.

load helper
load rest/rest

setup_file() {
	ark_files mini ${ARK_TEST_BASE:-}
	[ -n "${ARK_TEST_BASE:-}" ] || another_image base
	ark run --name booted base </dev/null
	ark exec booted -- sh -c 'mkdir /work'
	ark snap booted booted
	ark rm -f booted
	mv "$ARK_ROOT/snap/booted" "$work/"
}

teardown_file() {
	serve_end
	ark_end
}

setup() {
	mkdir -p "$work/here"
	cd "$work/here" || return
}

teardown() {
	serve_end
	keep '' ''
	rm -rf "$work/here" "$ARK_ROOT/auth"
}

# follow PAGE: do as it says.
follow() {
	expect 0 timeout 120 "$tests/manual" "$1" 3>&-
}

# copies NAME...: running sandboxes.  No page shows what they are made from.
copies() {
	local name
	mv "$work/booted" "$ARK_ROOT/snap/"
	for name; do
		expect 0 ark restore booted "$name"
	done
	mv "$ARK_ROOT/snap/booted" "$work/"
}

# program FILE: a program of these lines, for a shell here or in a guest.
program() {
	mkdir -p "$(dirname "$1")"
	cat >"$1"
	chmod +x "$1"
}

@test "ark(1)" {
	copies work
	program src/run-tests <<<'#!/bin/sh'
	follow ark.1
}

@test "ark-audit(8)" {
	token=$(ark auth add alice)
	serve
	for name in first second web; do
		wants 200 POST /v1/vms "{\"vmName\":\"$name\",\"image\":\"mini\",\"start\":false}"
	done
	follow ark-audit.8
}

@test "ark-auth(8)" {
	follow ark-auth.8
}

@test "ark-cgi(8)" {
	follow ark-cgi.8
}

@test "ark.conf(5)" {
	cp "$ARK_CONF" "$work/kept"
	follow ark.conf.5
	mv "$work/kept" "$ARK_CONF"
}

@test "ark-cp(1)" {
	copies vm other
	echo 1,2 >data.csv
	mkdir out
	program src/run-tests <<<'#!/bin/sh'
	expect 0 ark exec vm -- sh -c 'echo x >"/home/user/a file, with spaces"'
	follow ark-cp.1
	equal "$(cat 'out/a file, with spaces')" x
	expect 0 ark exec other -- /work/src/run-tests
}

@test "ark-disk(1)" {
	follow ark-disk.1
}

@test "ark-doctor(1)" {
	follow ark-doctor.1
}

@test "ark-exec(1)" {
	copies vm
	program run-tests <<<'#!/bin/sh'
	expect 0 ark cp run-tests vm:/home/user/
	follow ark-exec.1
}

@test "ark-gc(1)" {
	copies work
	kill -KILL "$(pid_of keeper work)" "$(pid_of vmm work)"
	mkdir "$ARK_ROOT/vm/.keen-otter-42.8123.tmp"
	follow ark-gc.1
}

@test "ark-image(1)" {
	rm -rf "$ARK_ROOT/kernel"
	cp -al "$ARK_TEST_IMAGES/kernel" "$ARK_TEST_IMAGES/cache" "$ARK_ROOT/"
	follow ark-image.1
}

@test "ark-net(1)" {
	follow ark-net.1
}

@test "ark-proto(7)" {
	# Cloud Hypervisor's guests are asked another way.
	ARK_VMM=qemu expect 0 ark run --name vm base
	follow ark-proto.7
}

@test "ark-ps(1)" {
	copies vm other
	follow ark-ps.1
}

@test "ark-run(1)" {
	echo 'echo "$# words, the first is $1"' >script.sh
	follow ark-run.1
	no_sandbox
}

@test "ark-security(7)" {
	copies vm
	echo 'while :; do :; done' >unknown.sh
	follow ark-security.7
}

@test "ark-serve(8)" {
	follow ark-serve.8
}

@test "ark-snap(1)" {
	copies work
	expect 0 ark exec work -- sh -c 'mkdir /important; echo x >/important/thesis'
	echo 'mkdir -p /work/made' >prepare.sh
	echo 'cd /work/made && hostname' >attempt.sh
	follow ark-snap.1
	equal "$(cat try-4.out)" try-4
}

@test "ark-state(5)" {
	copies work
	follow ark-state.5
}

@test "ark-tour(7)" {
	rm -rf "$ARK_ROOT/image/mini" "$ARK_ROOT/kernel" "$ARK_ROOT/cache"
	cp -al "$ARK_TEST_IMAGES/kernel" "$ARK_TEST_IMAGES/cache" "$ARK_ROOT/"
	follow ark-tour.7
	no_sandbox
}

@test "ark-top(1)" {
	copies busy idle
	expect 0 ark exec -d busy -- sh -c 'while :; do :; done'
	follow ark-top.1
}

@test "ark-vm(1)" {
	follow ark-vm.1
}

@test "every page has examples, and a test that runs them" {
	faults=
	for page in "$tree"/man/*.[0-9]; do
		name=${page##*/}
		case $name in
		ark-api.7 | ark-tour.7) ;; # examples from top to bottom
		*) grep -qx '\.Sh EXAMPLES' "$page" || faults+=" $name" ;;
		esac
		grep -qE "\"?\\\$?(follow|tests/manual\"?) $name\$" \
			"$tests"/*.bats || faults+=" $name"
	done
	equal "$faults" '' 'pages without examples or without a test'
	expect 66 "$tests/manual" no-such-page.1
	equal "$stderr" "manual: no page man/no-such-page.1"
}
