# A short replay of every fuzz target: its corpus, and three seconds more.

load helper

@test "parsers of foreign bytes survive their corpus and a little more" {
	out=$BATS_TEST_TMPDIR/out err=$BATS_TEST_TMPDIR/err
	count=0
	for source in "$tree"/tests/fuzz/fuzz-*.c; do
		[ -f "$source" ] || continue
		name=$(basename "$source" .c)
		echo "target $name"
		mkdir "$BATS_TEST_TMPDIR/$name"
		"$tree/build/fuzz/$name" -timeout=5 -rss_limit_mb=1024 \
			-max_total_time=3 -artifact_prefix="$BATS_TEST_TMPDIR/" \
			"$BATS_TEST_TMPDIR/$name" "$tree/tests/fuzz/corpus/$name" \
			>"$out" 2>"$err" || {
			tail -n 40 "$err"
			for crash in "$BATS_TEST_TMPDIR"/*-*; do
				[ ! -f "$crash" ] || xxd "$crash" | head -n 20
			done
			return 1
		}
		grep -q '^Done ' "$err" || tail -n 5 "$err"
		count=$((count + 1))
	done
	# Frames of both sides, QMP lines, names, sizes, value files.
	[ "$count" -ge 5 ] || {
		echo "only $count fuzz targets"
		return 1
	}
}
