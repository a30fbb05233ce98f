# The Debian image, large transfers, many sandboxes, long times.

load ../helper

setup_file() {
	ark_files mini base
}

teardown_file() {
	ark_end
}

@test "python in a Debian sandbox prints 42 and nothing else" {
	expect 0 ark run --rm base -- python3 -c 'print(6*7)'
	equal "$(od -An -tx1 <"$out")" ' 34 32 0a'
	silent
	equal "$(ark ps -q)" ''
}

@test "what the base image promises" {
	expect 0 ark run --name b -m 512M base
	for program in python3 ps lsof ip curl git tar update-ca-certificates; do
		expect 0 ark exec b -- sh -c "command -v $program"
	done
	expect 0 ark exec b -- sh -c 'ls /etc/ssl/certs/ca-certificates.crt; cat /etc/machine-id /etc/resolv.conf /etc/hostname /etc/apt/sources.list* /etc/apt/sources.list.d/* 2>/dev/null; hostname'
	[[ $stdout != *"$(hostname)"* ]] || wrong "the build host's name"
	[[ $stdout != *"$(cat /etc/machine-id 2>/dev/null || echo none-here)"* ]] ||
		wrong "the build host's machine-id"
	[[ $stdout == *security* ]] || wrong 'no security suite'
	expect 0 ark exec b -- sh -c 'ls /etc/ssh/ssh_host_* 2>/dev/null | wc -l'
	equal "$stdout" 0
	expect 0 ark exec b -- sh -c 'id user; su user -s /bin/sh -c "id -un"'
	[[ $stdout == *user ]] || wrong user
	expect 0 ark exec -u user b -- python3 -c 'import os; print(os.getuid(), os.getcwd(), os.environ["HOME"])'
	expect 0 ark exec b -- python3 -c 'import ssl, sqlite3, json, hashlib, subprocess; print(subprocess.run(["git", "--version"]).returncode)'
	expect 0 ark exec b -- sh -c 'cd /tmp && git init -q r && cd r && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x && git log --oneline | wc -l'
	equal "$stdout" 1
	# Each sandbox is somebody else.
	expect 0 ark run --name c base
	one=$(ark exec b -- sh -c 'cat /etc/machine-id /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | od -An -tx1')
	two=$(ark exec c -- sh -c 'cat /etc/machine-id /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | od -An -tx1')
	equal "$(printf '%s\n' "$one" "$two" | sort | uniq -d)" ''
	expect 0 ark rm -f b c
}

@test "200 MiB both ways, and 100 MB on stdin and stdout" {
	boot v --disk 2G
	head -c $((200 << 20)) /dev/urandom >"$work/big"
	sum=$(sha256sum <"$work/big")
	expect 0 ark cp "$work/big" v:/root/big
	expect 0 ark exec v -- sh -c 'sha256sum </root/big'
	equal "$stdout" "$sum"
	expect 0 ark cp v:/root/big "$work/back"
	equal "$(sha256sum <"$work/back")" "$sum"
	head -c 100000000 "$work/big" >"$work/part"
	sum=$(sha256sum <"$work/part")
	expect 0 ark exec v sha256sum <"$work/part"
	equal "$stdout" "$sum"
	ark exec v cat <"$work/part" | sha256sum >"$work/sum"
	equal "$(cat "$work/sum")" "$sum"
	rm "$work/big" "$work/back" "$work/part"
	expect 0 ark rm -f v
}

@test "the same under --rm in a loop leaves nothing" {
	remember
	for i in {1..15}; do
		expect $((i % 5)) ark run --rm mini -- sh -c "exit $((i % 5))"
		quiet
	done
	nothing_new 10
}

@test "ten sandboxes at once, each itself" {
	remember
	for i in {0..9}; do
		ark run --name "n$i" -m 96M mini >"$work/o$i" 2>"$work/e$i" &
		pids[i]=$!
	done
	for i in {0..9}; do
		wait "${pids[i]}" || cat "$work/e$i"
	done
	for i in {0..9}; do
		expect 0 ark exec "n$i" hostname
		equal "$stdout" "n$i"
	done
	equal "$(ark ps -o state --no-header | sort | uniq -c | xargs)" '10 running'
	equal "$(cat "$ARK_ROOT"/vm/*/slot | sort -u | wc -l)" 10
	mapfile -t names < <(ark ps -q)
	expect 0 ark rm -f "${names[@]}"
	nothing_new 10
}

@test "an idle sandbox stays well for five minutes, its clock too" {
	boot v
	expect 0 ark exec -d v sleep 100000
	sleep 300
	expect 0 ark exec v date +%s
	[ $(($(date +%s) - stdout)) -le 2 ] || wrong clock
	# Neither keeper nor VMM are busy when nothing happens.
	read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ <"/proc/$(pid_of keeper v)/stat"
	[ $((user + system)) -le 100 ] || equal $((user + system)) 'under a second'
	expect 0 ark exec --timeout 3m v sleep 150
	expect 0 ark rm -f v
}

@test "a start, kill -9 of anything, and start again, thirty times" {
	remember
	expect 0 ark create v
	for _ in {1..30}; do
		expect 0 ark start v
		case $((RANDOM % 4)) in
		0) kill -KILL "$(pid_of vmm v)" ;;
		1) kill -KILL "$(pid_of keeper v)" ;;
		2)
			vmm=$(pid_of vmm v)
			kill -KILL "$(pid_of keeper v)"
			kill -KILL "$vmm"
			;;
		3) ark exec -n v poweroff -f >/dev/null 2>&1 || : ;;
		esac
		expect 0 ark kill v
		[[ $(state v) == stopped || $(state v) == dead* ]] || state v
	done
	expect 0 ark rm v
	expect 0 ark gc
	nothing_new
}
