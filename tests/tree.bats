# ark tree: what came of what.

load helper

setup_file() {
	ark_files mini
	boot v
	ark snap v s >/dev/null
}

teardown_file() {
	ark_end
}

# tree_is LINE...: that is drawn.
tree_is() {
	expect 0 ark tree
	silent
	equal "$stdout" "$(printf '%s\n' "$@")" tree
}

@test "snapshots and sandboxes at any depth, and those that are of none" {
	tree_is 's  snapshot' 'v  running'
	expect 0 ark restore s a
	expect 0 ark snap a s-a
	expect 0 ark restore s-a b
	expect 0 ark snap b s-a-b
	expect 0 ark fork -c 2 --name c s-a-b
	expect 0 ark pause c-2
	expect 0 ark create cold
	expect 0 ark snap cold frost
	expect 0 ark kill v
	kill -KILL "$(pid_of vmm a)"
	soon 5 state_is a 'dead(*)'
	tree_is 'frost      snapshot (disk)' \
		's          snapshot' \
		'  s-a      snapshot' \
		'    s-a-b  snapshot' \
		'      c-1  running' \
		'      c-2  paused' \
		'    b      running' \
		"  a        $(state a)" \
		'cold       created' \
		'v          stopped'
	# What has lost its parent is a root.
	expect 0 ark-snap rm s-a
	tree_is 'frost  snapshot (disk)' \
		's      snapshot' \
		"  a    $(state a)" \
		's-a-b  snapshot' \
		'  c-1  running' \
		'  c-2  paused' \
		'b      running' \
		'cold   created' \
		'v      stopped'
}

@test "another snapshot of a parent's name is none of its" {
	keep '' s
	expect 0 ark restore s a
	expect 0 ark-snap rm s
	soon 5 eval '[ "$(date +%s)" -gt "$(cat "$ARK_ROOT/vm/a/created")" ]'
	expect 0 ark snap a s
	equal "$(cat "$ARK_ROOT/vm/a/snapshot") $(jq -r .parent "$ARK_ROOT/snap/s/manifest.json")" 's s'
	tree_is 's  snapshot' 'a  running'
}

@test "two that say that they came of each other are drawn, once" {
	expect 0 ark rm -f a
	expect 0 ark-snap rm s
	expect 0 ark create cold
	expect 0 ark snap cold x
	expect 0 ark snap cold y
	for pair in x:y y:x; do
		file=$ARK_ROOT/snap/${pair%:*}/manifest.json
		jq --arg p "${pair#*:}" '.parent = $p |
			.created = "2026-01-01T00:00:00Z"' "$file" \
			>"$BATS_TEST_TMPDIR/manifest"
		cat "$BATS_TEST_TMPDIR/manifest" >"$file"
	done
	tree_is 'cold  created' 'x     snapshot (disk)' '  y   snapshot (disk)'
	expect 0 ark rm cold
	expect 0 ark-snap rm x y
	tree_is
}

@test "two hundred clones: in their order, aligned, at once" {
	expect 0 ark create cold
	expect 0 ark snap cold s
	for i in {1..200}; do
		ark create "s-$i" >/dev/null
		echo s >"$ARK_ROOT/vm/s-$i/snapshot"
	done
	TIMEFORMAT='%U %S'
	{ time ark tree >"$BATS_TEST_TMPDIR/tree"; } 2>"$BATS_TEST_TMPDIR/time"
	{
		echo 's        snapshot (disk)'
		for i in {1..200}; do
			printf '  %-5s  created\n' "s-$i"
		done
		echo 'cold     created'
	} >"$BATS_TEST_TMPDIR/want"
	cmp "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/tree"
	awk -v limit="$(within 100)" '{ exit !(($1 + $2) * 1000 <= limit) }' \
		"$BATS_TEST_TMPDIR/time" ||
		equal "$(cat "$BATS_TEST_TMPDIR/time")" '100 ms'
}
