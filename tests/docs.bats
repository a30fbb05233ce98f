#!/usr/bin/env bats
# What the manuals, --help, the completion, the table of verbs and the sources
# say must be the same.  Tables and loops: a @test costs a tenth of a second.
#
# Each loop tells all that it finds, one line each, and fails at its end.

bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_TEST_DIRNAME/.." || return
	export PATH=$PWD/bin:$PATH
	export ARK_ROOT=$BATS_FILE_TMPDIR/root ARK_RUN=$BATS_FILE_TMPDIR/run
	mkdir "$BATS_FILE_TMPDIR/help" "$BATS_FILE_TMPDIR/man"
	for command in $(commands); do
		"$command" --help >"$BATS_FILE_TMPDIR/help/$command"
		mandoc -T ascii man/"$command".[18] | col -b \
			>"$BATS_FILE_TMPDIR/man/$command"
	done
}

setup() {
	cd "$BATS_TEST_DIRNAME/.." || return
	help=$BATS_FILE_TMPDIR/help man=$BATS_FILE_TMPDIR/man
	# shellcheck source=share/bash-completion/ark disable=SC1091
	source share/bash-completion/ark
	failures=0
}

# Every command, ark itself among them.
commands() {
	echo ark
	grep -v '^#' share/commands | cut -f 2 | cut -d ' ' -f 1 | sort -u
}

wrong() {
	echo "$*"
	failures=$((failures + 1))
}

# Options in the lines of a help text that describe one.
help_options() {
	grep -E '^ +-' "$help/$1" |
		grep -oE '(^|[ ,])--?[A-Za-z][A-Za-z-]*' | tr -d ' ,' | sort -u
}

# Options that a manual describes: ".It Fl m , -memory Ar size".
man_options() {
	awk '/^\.It Fl / {
		for (i = 3; i <= NF; i++) {
			if ($i == "," || $i == "Fl")
				continue
			if ($i !~ /^-?[A-Za-z][A-Za-z-]*$/ || $i == "Ar")
				break
			print "-" $i
		}
	}' man/"$1".[18] | sort -u
}

# Options that are completed behind any word of a program.
completed_options() {
	local word words
	words=$(_ark_words "$1")
	words="$words $(grep -v '^#' share/commands | cut -f 2 |
		sed -n "s/^$1 //p")"
	{
		_ark_options "$1"
		for word in $words; do
			_ark_options "$1 $word"
		done
	} | tr ' ' '\n' | sort -u
}

has() {
	grep -qxe "$2" <<<"$1"
}

mentions() {
	grep -qE -- "(^|[^A-Za-z-])$2([^A-Za-z-]|\$)" "$man/$1"
}

@test "options: --help, manual and completion have the same" {
	for command in $(commands); do
		helped=$(help_options "$command")
		described=$(man_options "$command")
		completed=$(completed_options "$command")
		[ -n "$helped" ] || [ "$command" = ark ] ||
			wrong "$command: no options in --help"
		for option in $helped; do
			mentions "$command" "$option" ||
				wrong "$command: $option is not in the manual"
			has "$completed" "$option" ||
				wrong "$command: $option is not completed"
		done
		for option in $described; do
			[ "$command" = ark ] || has "$helped" "$option" ||
				wrong "$command: $option is not in --help"
			has "$completed" "$option" ||
				wrong "$command: $option is not completed"
		done
		for option in $completed; do
			mentions "$command" "$option" ||
				wrong "$command: $option is only completed"
		done
	done
	[ "$failures" -eq 0 ]
}

@test "verbs: help, manual and completion for each" {
	while IFS=$'\t' read -r verb program usage text; do
		[[ $verb != '#'* ]] || continue
		name=${program%% *}
		[ -n "$usage" ] && [ -n "$text" ] ||
			wrong "$verb: no usage or no text in share/commands"
		[ "$(bin/ark help "$verb" | head -n 1)" = \
			"Usage: ark $verb $usage" ] ||
			wrong "$verb: ark help does not know it"
		bin/ark help | grep -q "^  $verb  *$text\$" ||
			wrong "$verb: not in ark help"
		[ -n "$(bin/ark "$verb" --help 2>&1 >/dev/null)" ] &&
			wrong "$verb: --help writes to stderr"
		bin/ark "$verb" --help | grep -qi '^usage: ' ||
			wrong "$verb: --help shows no usage"
		[ -f "man/$name.1" ] || [ -f "man/$name.8" ] ||
			wrong "$verb: no man/$name.1"
		mentions ark "$verb" || wrong "$verb: not in ark(1)"
		mentions "$name" "$verb" || wrong "$verb: not in $name(1)"
		COMP_WORDS=(ark "$verb" --h) COMP_CWORD=2
		_ark
		[[ " ${COMPREPLY[*]} " == *' --help '* ]] ||
			wrong "$verb: --help is not completed"
		while read -r option; do
			has "$(completed_options "$name")" "$option" ||
				wrong "$verb: no $option, of its usage"
		done < <(grep -oE -- '(^| |\[)--?[a-zA-Z][a-z-]*' <<<"$usage" |
			tr -d ' [')
	done <share/commands
	[ "$failures" -eq 0 ]
}

@test "ark help: every verb below a heading, in columns" {
	run -0 bin/ark help
	heading='' columns=''
	while IFS= read -r line; do
		case $line in
		'  '*)
			[ -n "$heading" ] || wrong "no heading: $line"
			[[ $line =~ ^\ \ [a-z]+\ \ + ]] || wrong "$line"
			columns+="${#BASH_REMATCH} "
			;;
		*:) heading=$line ;;
		*) heading='' ;;
		esac
		[ "${#line}" -le 80 ] || wrong "too wide: $line"
	done <<<"$output"
	[ "$(tr ' ' '\n' <<<"$columns" | sort -u | grep -c .)" -eq 1 ] ||
		wrong "columns: $columns"
	[ "$(wc -w <<<"$columns")" -ge 30 ]
	[ "$failures" -eq 0 ]
}

@test "--version and wrong options are the same everywhere" {
	version=$(sed -n 's/^#define ARK_VERSION "\(.*\)"/\1/p' src/ark.h)
	for command in $(commands); do
		told=$("$command" --version) ||
			wrong "$command: --version fails"
		[[ $told == *" $version" ]] ||
			wrong "$command: --version says '$told'"
		run -64 --separate-stderr "$command" --no-such-option
		[ -z "$output" ] || wrong "$command: a wrong option on stdout"
		# shellcheck disable=SC2154 # set by run
		[ "${#stderr_lines[@]}" -eq 1 ] ||
			wrong "$command: a wrong option is not one line"
	done
	[ "$failures" -eq 0 ]
}

# complete WORD...: what is offered for the last word.
complete_words() {
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_ark
	echo "${COMPREPLY[*]}"
}

@test "completion: verbs, words, values" {
	while IFS='|' read -r line want; do
		# shellcheck disable=SC2086 # words, and an empty last one
		case $line in
		*' ') got=$(complete_words $line '') ;;
		*) got=$(complete_words $line) ;;
		esac
		[ "$got" = "$want" ] || wrong "'$line': '$got', not '$want'"
	done <<-EOF
	ark unpa|unpause
	ark image b|build
	ark image build |mini base
	ark disk cl|clone
	ark exec at|attach
	ark exec ls --j|--json
	ark exec kill -s TE|TERM
	ark run --me|--memory
	ark run -m 1G --priv|
	ark ps -o iso|isolation
	ark ps -o js|json
	ark top -o js|
	ark top -o mem|memory
	ark top -s pri|private
	ark top --sort ex|expires
	ark top -d 1 --ba|--batch
	ark rm --fo|--force
	ark stop --ti|--time
	ark -R /tmp unpa|unpause
	ark exec vm -- --he|
	ark nonsense |
	EOF
	[ "$failures" -eq 0 ]
}

# FRAME_* or OP_* with their numbers, out of proto.h.
numbers() {
	awk -v prefix="$1" '
		/^enum/ { next_number = 0 }
		$1 ~ "^" prefix "[A-Z]+,?$" {
			name = $1
			gsub("^" prefix "|,", "", name)
			if ($2 == "=")
				next_number = $3 + 0
			print name, next_number++
		}' src/proto.h
}

@test "ark-proto(7): every frame, operation and limit of proto.h" {
	page=man/ark-proto.7
	while read -r name number; do
		grep -qE "^\.It Cm $name Ta $number Ta " "$page" ||
			{ [ "$name $number" = 'STDIN 32' ] &&
				grep -q '^(32), bytes' "$page"; } ||
			wrong "FRAME_$name ($number) is not described"
	done < <(numbers FRAME_ | grep -vE '^(HEAD|MAX) ')
	while read -r name number; do
		grep -q "^\.It Cm $name No ($number)" "$page" ||
			wrong "OP_$name ($number) is not described"
	done < <(numbers OP_)
	for limit in FRAME_MAX:131072 REQUEST_MAX:2097152 STDIN_WINDOW:262144 \
		EXECS_MAX:512 LOG_HEAD:65536 LOG_TAIL:196608 AGENT_PORT:1024 \
		PROTO_VERSION:1; do
		number=${limit#*:}
		value=$(sed -n "s/^#define ${limit%:*} \([^/]*\).*/\1/p" \
			src/proto.h | tr -d u)
		[ "$((value))" -eq "$number" ] ||
			wrong "${limit%:*} is $((value)), not $number"
		grep -qw "$number" "$page" || wrong "$number is not described"
	done
	[ "$(numbers FRAME_ | wc -l)" -ge 28 ]
	[ "$(numbers OP_ | wc -l)" -ge 11 ]
	[ "$failures" -eq 0 ]
}

@test "ark-state(5): every file that is written, and no other" {
	calls='(write_value|proc_write|mkfifoat|unix_listen)'
	written=$(grep -ohE "$calls\\([^\"]*\"[a-z_.-]+\"" src/*.c |
		grep -oE '"[^"]+"' | tr -d '"' | sort -u)
	described=$(awk '/^\.It Pa / {
		for (i = 3; i <= NF; i++)
			if ($i ~ /^[a-z_-]+(\.[a-z]+)?$/)
				print $i
	}' man/ark-state.5 | sort -u)
	[ "$(wc -w <<<"$written")" -ge 15 ]
	for file in $written; do
		has "$described" "$file" || wrong "$file is not described"
	done
	for file in $described; do
		grep -qE "[\"/]$file\\b" src/*.[ch] bin/ark-image ||
			wrong "$file is described, but nobody uses it"
	done
	[ "$failures" -eq 0 ]
}

@test "ark-state(5): every field of the JSON" {
	calls='(json_object_set_new|add_(text|number|count))'
	fields=$(cat src/info.c src/jail-info.c src/ark-vm.c src/ark-ps.c | tr -d '\n\t' |
		grep -oE "$calls\\(object, ?\"[a-z_]+\"" |
		grep -oE '"[^"]+"' | tr -d '"' | sort -u)
	[ "$(wc -w <<<"$fields")" -ge 15 ]
	described=$(sed -n 's/^\.It Va //p' man/ark-state.5 | tr -d ',' |
		tr ' ' '\n')
	for field in $fields; do
		has "$described" "$field" || wrong "$field is not described"
	done
	for field in $described; do
		has "$fields" "$field" || wrong "no field $field"
	done
	[ "$failures" -eq 0 ]
}

@test "columns: --help, manual and completion have the same" {
	listed=$(sed -n 's/^Columns: //p' "$help/ark-ps")
	[ "$(wc -w <<<"$listed")" -ge 18 ]
	[ "$(xargs <<<"$_ark_columns")" = "$listed" ] ||
		wrong "completed: $_ark_columns; not $listed"
	described=$(sed -n '/^The columns are/,/^\.Sh/s/^\.It Cm //p' man/ark-ps.1 |
		tr -d , | xargs)
	[ "$described" = "$listed" ] ||
		wrong "described: $described; not $listed"
	[ "$failures" -eq 0 ]
}

@test "ark.conf(5), the example and doctor: every key" {
	keys=$(grep -oE 'strcmp\(key, "[a-z_]+"' src/conf.c |
		grep -oE '"[^"]+"' | tr -d '"')
	[ "$(wc -w <<<"$keys")" -ge 5 ]
	for key in $keys; do
		grep -q "^\.It Cm $key\$" man/ark.conf.5 ||
			wrong "$key is not described"
		grep -q "^#$key = " share/ark.conf ||
			wrong "$key is not in share/ark.conf"
		grep -qE "[(|]${key}[|)]" bin/ark-doctor ||
			wrong "ark-doctor does not know $key"
	done
	while read -r key; do
		has "$keys" "$key" || wrong "no key $key"
	done < <(sed -n 's/^#\([a-z_]*\) = .*/\1/p' share/ark.conf)
	[ "$failures" -eq 0 ]
}
