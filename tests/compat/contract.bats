# share/openapi.yaml and /metrics by the tools that others judge them with.

load ../helper
load ../rest/rest

setup_file() {
	ark_files mini
	host=$(ark auth add --scope admin host)
	# What is made up at random is kept small by the quotas.
	fuzz=$(ark auth add fuzz --quota \
		sandboxes=4,cpus=6,memory=2G,disk=40G,snapshots=8,execs=8)
	export host fuzz
	serve
	token=$fuzz wants 200 POST /v1/vms '{"vmName":"work"}'
	token=$fuzz wants 200 POST /v1/vms/work/snapshots \
		'{"snapshotId":"ready"}'
}

teardown_file() {
	serve_end
	ark_end
}

@test "openapi-spec-validator: the contract is OpenAPI 3.1" {
	run "$ARK_COMPAT/bin/python" -m openapi_spec_validator \
		"$tree/share/openapi.yaml"
	[ "$status" = 0 ] || { echo "$output"; false; }
}

# What waits for something on purpose is left out: wait, and logs to follow; and
# putTree, because it cannot make up an archive.
@test "schemathesis: what it makes up, and every answer as written" {
	cd "$BATS_TEST_TMPDIR"
	run timeout 400 "$ARK_COMPAT/bin/st" run "$tree/share/openapi.yaml" \
		--url "$base" -H "Authorization: Bearer $fuzz" \
		--max-time "${ARK_FUZZ_SECONDS:-120}" --max-examples 40 \
		--phases examples,coverage,fuzzing --no-color \
		--checks all --exclude-checks "$unfit" --request-timeout 60 --max-response-time 60 \
		--exclude-operation-id wait --exclude-operation-id waitExec \
		--exclude-operation-id logs --exclude-operation-id execLogs \
		--exclude-operation-id putTree \
		--continue-on-failure
	[ "$status" = 0 ] || { echo "$output"; false; }
	healthy
	ark ps
}
# Not asked, and why:
#   positive_data_acceptance	names that fit the schema are not there
#   missing_required_header	there is none but the token
#   allow_header_conformance	DELETE of /v1/snapshots/tree is that of a
#			snapshot; rest/contract looks at Allow
unfit=positive_data_acceptance,missing_required_header,allow_header_conformance

@test "promtool: /metrics, with sandboxes and without" {
	for i in 1 2; do
		token=$host wants 200 GET /metrics
		"$tree/build/promtool/promtool" check metrics \
			<"$BATS_TEST_TMPDIR/body"
		rm_all
	done
}
