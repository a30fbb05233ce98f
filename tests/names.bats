# Hostile names, for every kind of name and every command that takes one: 64,
# one line, and nothing is made, removed or touched anywhere.

load helper

setup_file() {
	ark_files mini
	echo precious >"$work/precious"
	mkdir "$work/x" "$ARK_ROOT/x"
	echo precious >"$ARK_ROOT/x/precious"
	# What a name that leads out would find.
	ark create --image mini good >/dev/null
}

teardown_file() {
	ark_end
}

setup() {
	bad=(.. ../x . a/b ../../precious / /etc ./good good/ good/. good/disk
		'' ' ' $'a\nb' $'\n' 'a b' %2e%2e a%2fb é $'a\xff' $'\e[31m' 'a;b' '$(a)'
		'*' '~' a: _a .a .good.1 "$(printf 'a%.0s' {1..64})"
		"$(printf 'a%.0s' {1..300})" "$(printf '../%.0s' {1..200})x")

}

# refused COMMAND... with NAME standing for the name: every bad one.
refused() {
	local name word line dash=$1
	shift
	[ "$dash" = dash ] && bad+=(-- -rf)
	for name in "${bad[@]}"; do
		line=()
		for word; do
			line+=("${word//NAME/"$name"}")
		done
		expect 64 "${line[@]}"
		says ''
		[ "$(wc -c <"$err")" -lt 1200 ] || wrong 'much too long a message'
	done
}

# find sees every file, its kind, size and times.
footprint() {
	find "$work" -printf '%P %y %s %T@\n' | sort
}

unchanged() {
	diff <(echo "$before") <(footprint)
}

@test "sandbox names of ark-vm" {
	before=$(footprint)
	for verb in create start stop kill pause resume wait logs inspect rm; do
		refused dash ark-vm "$verb" -- NAME
	done
	refused dash ark-vm rm -f -- NAME
	refused dash ark-vm adopt -- NAME
	refused dash ark-vm logs -f -- NAME
	unchanged
}

@test "a bad one among good ones: the others are done, and the code is 64" {
	expect 64 ark inspect good ../x good
	equal "$(wc -l <"$out")" 2 'good ones'
	equal "$(wc -l <"$err")" 1 'bad ones'
}

@test "sandbox names of the others" {
	before=$(footprint)
	refused no ark-exec -- NAME true
	for word in ls 'logs' attach kill wait; do
		id=(1)
		[ "$word" != ls ] || id=()
		refused no ark-exec "$word" NAME "${id[@]}"
	done
	refused no ark run --name=NAME mini
	refused no ark run --rm --name=NAME mini -- true
	refused no ark-disk clone mini NAME
	refused no ark-disk resize NAME 9G
	unchanged
}

@test "image names" {
	before=$(footprint)
	refused no ark create --image=NAME fresh
	refused no ark run --name fresh NAME
	refused no ark-disk clone NAME fresh
	refused no ark-disk import "$work/x" NAME
	refused no ark-disk rm NAME
	refused no ark-disk inspect NAME
	refused no ark image build --name NAME mini
	refused no ark image build --name=NAME mini
	refused no ark image inspect NAME
	refused no ark image rm NAME
	refused no ark image import "$work/x" NAME
	unchanged
}

@test "words of ark-exec are no sandbox names" {
	before=$(footprint)
	for name in ls logs attach kill wait; do
		expect 64 ark create "$name"
		says "$name"
		expect 64 ark run --name "$name" mini
		says "$name"
		expect 64 ark disk clone mini "$name"
		says "$name"
	done
	unchanged
}

@test "sandbox names in ark cp" {
	before=$(footprint)
	for name in .. ../x a/b . 'a b' $'a\nb' %2e%2e é -rf "$(printf 'a%.0s' {1..64})"; do
		# With a slash or a dot in front it is a local path: then both
		# sides are local, which is 64 as well.
		expect 64 ark cp -- "$work/precious" "$name:/x"
		says ''
		expect 64 ark cp -- "$name:/etc/passwd" "$work/new"
		says ''
	done
	expect 64 ark cp -- "$work/precious" :/x
	says ''
	unchanged
}

@test "the longest good name, and every good character" {
	long=$(printf 'a%.0s' {1..63})
	for name in "$long" A-._z 9 a..b; do
		expect 0 ark create --image mini "$name"
		equal "$stdout" "$name"
		expect 73 ark create --image mini "$name"
		says exists
		expect 0 ark rm "$name"
		quiet
	done
}

@test "states that say something hostile do not lead out of the directories" {
	expect 0 ark create --image mini victim
	for word in ../../x .. 0000 ffff $'0001\n' '' "$(printf '../%.0s' {1..50})"; do
		printf '%s\n' "$word" >"$ARK_ROOT/vm/victim/slot"
		expect 0 ark ps --json
		silent
		jq -e . "$out" >/dev/null
		expect 0 ark stop victim
	done
	printf 'dead: \e[31mred\n' >"$ARK_ROOT/vm/victim/exit"
	expect 0 ark ps
	! grep -qP '\x1b' "$out" || wrong 'escape codes in ps'
	expect 0 ark inspect victim
	jq -e '.reason' "$out" >/dev/null
	printf '\e]0;x\a"\\\n' >"$ARK_ROOT/vm/victim/image"
	expect 0 ark ps
	! grep -qP '\x1b|\x07' "$out" || wrong 'escape codes in ps'
	expect 0 ark inspect victim
	jq -e . "$out" >/dev/null
	for file in memory cpus disk-size created; do
		printf '%s\n' -1 >"$ARK_ROOT/vm/victim/$file"
	done
	expect 0 ark ps
	expect 0 ark ps --json
	jq -es . "$out" >/dev/null
	expect fail ark start victim
	says victim
	equal "$(ours)" '' 'something runs'
	expect 0 ark rm -f victim
	quiet
	# A sandbox that is a link or a file is none.
	ln -s /tmp "$ARK_ROOT/vm/linked"
	touch "$ARK_ROOT/vm/plain"
	mkdir "$work/outside"
	touch "$work/outside/precious"
	ln -s "$work/outside" "$ARK_ROOT/vm/outside"
	expect 0 ark ps
	for name in linked plain outside; do
		ark rm -f "$name" >"$out" 2>"$err" || :
	done
	[ -f "$work/outside/precious" ]
	rm -rf "$ARK_ROOT/vm/linked" "$ARK_ROOT/vm/plain" "$ARK_ROOT/vm/outside" \
		"$work/outside"
}
