# ark auth: tokens are shown once and kept as hashes; a change is whole or has
# not happened, wherever it is killed.

load helper

setup_file() {
	ark_files mini
}

teardown_file() {
	ark_end
}

setup() {
	rm -rf --one-file-system "$ARK_ROOT/auth" "$ARK_RUN/tenant"
}

# add WORD...: sets $token.
add() {
	expect 0 ark auth add "$@"
	silent
	token=$stdout
	[[ $token =~ ^ark_[0-9a-f]{72}$ ]] || wrong 'not a token'
}

# The id that a token has in lists: the beginning of its hash.
id_of() {
	printf %s "$1" | sha256sum | cut -c 1-12
}

ids() {
	ark auth ls --json | jq -r '.id'
}

# traced CALL N COMMAND...: killed at its Nth call.
traced() {
	timeout -s KILL 30 strace -D -f -qq -o /dev/null \
		-e trace="$1" -e inject="$1:signal=KILL:when=$2" "${@:3}"
}

# steps CALL: the numbers of calls to be killed at, until there are no more.
steps() {
	case $1 in
	openat) seq 8 60 ;; # before these it is the loader that opens
	*) seq 1 30 ;;
	esac
}

# Everything of a tenant is there, or nothing.
whole() {
	local tenant
	for tenant in "$ARK_ROOT"/auth/*/; do
		[ -d "$tenant" ] || continue
		if [ ! -d "$tenant/token" ] || [ ! -d "$tenant/quota" ]; then
			echo "half a tenant: $(find "$tenant")"
			return 1
		fi
	done
	expect 0 ark auth ls --json
	silent
}

@test "a token is printed once, and only its hash is kept" {
	add --scope exec --quota sandboxes=3,memory=1G alice
	equal "$(stat -c %a "$ARK_ROOT/auth")" 700
	equal "$(stat -c %a "$ARK_ROOT/auth/alice/token/main")" 600
	! grep -rF "${token:4:16}" "$ARK_ROOT/auth" "$ARK_RUN" ||
		wrong 'the token is on the disk'
	read -r scope hash _ <"$ARK_ROOT/auth/alice/token/main"
	equal "$scope" exec
	equal "$hash" "$(printf %s "$token" | sha256sum | cut -d ' ' -f 1)"
	expect 0 ark auth ls
	[[ $stdout == TENANT*alice*main*$(id_of "$token")*exec* ]] ||
		wrong 'not in the list'
	expect 0 ark auth ls --json
	equal "$(jq -r '[.tenant, .label, .id, .scope] | join(" ")' "$out")" \
		"alice main $(id_of "$token") exec"
	first=$token
	add --scope read alice/ci
	[ "$token" != "$first" ]
	equal "$(ids | wc -l)" 2
}

@test "rotate: the old token is gone, the scope stays" {
	add --scope exec alice/a
	old=$token
	add alice/b
	other=$token
	expect 0 ark auth rotate alice/a
	new=$stdout
	[ "$new" != "$old" ]
	equal "$(ids | sort)" "$(printf '%s\n' "$(id_of "$new")" \
		"$(id_of "$other")" | sort)"
	equal "$(ark auth ls --json | jq -r 'select(.label == "a").scope')" exec
	expect 0 ark auth rm alice/a
	quiet
	equal "$(ids)" "$(id_of "$other")"
	expect 66 ark auth rm alice/a
	says "no token 'a'"
	expect 66 ark auth rotate alice/a
	says "no token 'a'"
	expect 0 ark auth rm alice
	quiet
	expect 66 ark auth rm alice
	says "no such tenant"
	[ ! -e "$ARK_RUN/tenant/alice" ]
}

@test "what is wrong is refused, and changes nothing" {
	add alice
	before=$(find "$ARK_ROOT/auth" -printf '%p %s %T@\n')
	while IFS='|' read -r code words text; do
		# shellcheck disable=SC2086 # words
		expect "$code" ark auth $words
		says "$text"
	done <<-EOF
	64||usage
	64|make|no command 'make'
	64|add|usage
	64|add a b|usage
	64|ls x|usage
	64|rm|usage
	64|rotate|usage
	64|quota|usage
	64|add --json x|--json is no option of add
	64|rm --scope read x|--scope is no option of rm
	64|ls -f|--force is no option of ls
	64|add --scope all bob|bad scope 'all'
	64|add --scope admin bob|'host'
	64|add --quota cpus=-1 bob|cpus: too small
	64|add --quota size=1 bob|size: not a kind of quota
	64|add --quota memory=1X bob|memory: not a size
	64|quota alice rate=0|rate: too small
	73|add alice|has a token 'main'
	73|add --quota cpus=1 alice/b|ark auth quota
	66|quota bob|no such tenant 'bob'
	66|quota bob cpus=1|no such tenant 'bob'
	66|rotate bob|no such tenant 'bob'
	66|rm alice/b|no token 'b'
	EOF
	for name in '' . .. / a/ /a a/.. ../a a/b/c A a.b a_b 1a -a $'a\nb' $'\e' \
		é 'a b' "$(printf 'a%.0s' {1..21})" "$(printf 'a%.0s' {1..5000})"; do
		for verb in add rm rotate quota; do
			expect 64 ark auth "$verb" -- "$name"
			says ''
			[ "$(wc -c <"$err")" -lt 300 ] || wrong 'too long'
		done
	done
	equal "$(find "$ARK_ROOT/auth" -printf '%p %s %T@\n')" "$before"
}

@test "a token that could not be printed opens nothing" {
	code=0
	ark auth add alice >/dev/full 2>"$BATS_TEST_TMPDIR/err" || code=$?
	equal "$code" 74
	equal "$(ids)" ''
	add alice
}

@test "a tenant does not inherit, nor leave, what has its prefix" {
	ark create alice.web >/dev/null
	expect 69 ark auth add alice
	says '1 sandboxes'
	add -f alice
	expect 0 ark auth quota alice
	[[ $stdout =~ sandboxes\ +none\ +1$'\n' ]] || wrong 'not counted'
	[[ $stdout =~ memory\ +none\ +256M$'\n' ]] || wrong 'not counted'
	expect 69 ark auth rm alice
	says '1 sandboxes'
	expect 0 ark auth quota alice sandboxes=5,disk=10G,sandboxes=none
	quiet
	expect 0 ark auth quota alice
	[[ $stdout =~ disk\ +10G\ +1G$'\n' ]] || wrong 'not set'
	equal "$(ls "$ARK_ROOT/auth/alice/quota")" disk
	expect 0 ark auth rm -f alice
	equal "$(ark ps -q)" alice.web 'it stays'
	# Only the prefix counts, not names like it.
	add ali
	add web
	ark rm alice.web
	add alice
}

@test "add killed at every step: a whole tenant or none" {
	for call in openat mkdirat renameat renameat2 fsync write getrandom \
		flock unlinkat; do
		for n in $(steps "$call"); do
			code=0
			traced "$call" "$n" ark auth add --quota cpus=1,rate=5 \
				alice >"$BATS_TEST_TMPDIR/o" 2>&1 || code=$?
			[ "$code" != 0 ] || break
			whole || equal "$call $n" 'a whole one'
			! ark gc | grep -v '^removed half-made auth/' ||
				equal "$call $n" 'nothing else'
			equal "$(ls -A "$ARK_ROOT/auth" | grep -vx alice)" '' \
				"left after $call $n"
			if [ -d "$ARK_ROOT/auth/alice" ]; then
				expect 0 ark auth rotate alice
				equal "$(ls -A "$ARK_ROOT/auth/alice/token")" main
				equal "$(cat "$ARK_ROOT/auth/alice/quota/cpus")" 1
			else
				add alice
			fi
			expect 0 ark auth rm alice
		done
		ark auth rm alice >/dev/null 2>&1 || :
	done
}

@test "rotate and rm killed at every step: the old token, the new, or none" {
	add alice
	for call in openat renameat fsync write flock unlinkat; do
		for n in $(steps "$call"); do
			code=0
			traced "$call" "$n" ark auth rotate alice \
				>"$BATS_TEST_TMPDIR/o" 2>&1 || code=$?
			[ "$code" != 0 ] || break
			whole
			equal "$(ids | wc -l)" 1 "tokens after $call $n"
			# What was printed is valid.
			shown=$(grep -o 'ark_[0-9a-f]*' "$BATS_TEST_TMPDIR/o") ||
				continue
			equal "$(ids)" "$(id_of "$shown")" "printed, $call $n"
		done
	done
	for call in openat renameat fsync unlinkat; do
		for n in $(steps "$call"); do
			[ -d "$ARK_ROOT/auth/alice" ] || add alice
			code=0
			traced "$call" "$n" ark auth rm alice \
				>"$BATS_TEST_TMPDIR/o" 2>&1 || code=$?
			[ "$code" != 0 ] || break
			whole
			ark gc >/dev/null
			equal "$(ls -A "$ARK_ROOT/auth" | grep -vx alice)" '' \
				"left after $call $n"
		done
	done
}

@test "many at once: one is made, and all are whole" {
	pids=()
	for i in 1 2 3 4 5 6 7 8; do
		ark auth add alice >"$BATS_TEST_TMPDIR/$i" 2>/dev/null &
		pids+=($!)
	done
	made=0
	for pid in "${pids[@]}"; do
		code=0
		wait "$pid" || code=$?
		case $code in
		0) made=$((made + 1)) ;;
		73) ;;
		*) equal "$code" '0 or 73' ;;
		esac
	done
	equal "$made" 1 'made'
	equal "$(ids)" "$(id_of "$(cat "$BATS_TEST_TMPDIR"/[1-8])")"
	pids=()
	for i in 1 2 3 4 5 6 7 8; do
		ark auth rotate alice >"$BATS_TEST_TMPDIR/$i" &
		pids+=($!)
		ark auth add "alice/l$i" >/dev/null &
		pids+=($!)
	done
	wait "${pids[@]}"
	equal "$(ids | wc -l)" 9
	# The one that holds is one of those that were printed.
	for i in 1 2 3 4 5 6 7 8; do
		id_of "$(cat "$BATS_TEST_TMPDIR/$i")"
	done | grep -qx "$(ark auth ls --json |
		jq -r 'select(.label == "main").id')"
}

@test "a damaged token is told, and locks nobody else out" {
	add alice
	add bob
	echo garbage >"$ARK_ROOT/auth/alice/token/main"
	expect 0 ark auth ls --json
	equal "$stderr" "ark-auth: token 'main' of tenant 'alice' is damaged"
	equal "$(jq -r .tenant "$out")" bob
	expect 0 ark auth rm alice/main
	add alice
	expect 0 ark auth ls
	silent
}
