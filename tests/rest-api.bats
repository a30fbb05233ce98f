# ark-api(7): its examples are true, and it says what the contract says.

load helper
load rest/rest

setup_file() {
	ark_files mini
	ark auth add --scope admin host >/dev/null
	serve
}

teardown_file() {
	serve_end
	ark_end
}

# blocks DIR: each example of the page into a file of its own, and what the
# last line of it prints, when the page says so, into the same with .prints.
blocks() {
	awk -v dir="$1" '
		/^\.\\" prints: / { prints = substr($0, 13); next }
		/^\.Bd / { open = 1; name = sprintf("%s/%02d", dir, ++n)
			if (prints != "")
				print prints >(name ".prints")
			prints = ""; next }
		/^\.Ed/ { open = 0; next }
		open { gsub(/\\e/, "\\"); print >name }' "$tree/man/ark-api.7"
}

@test "ark-api(7): every example works, in its order" {
	mkdir "$work/blocks"
	cd "$work"
	blocks "$work/blocks"
	# All in one shell, as somebody would type them; what is no command is
	# an answer.
	for block in "$work"/blocks/??; do
		if ! grep -q '^{' "$block"; then
			cat "$block"
			echo "echo; echo '@ ${block##*/}'"
		fi
	done >session
	[ "$(grep -c '^echo; echo' session)" -ge 12 ]
	# The one that is refused is meant to be.
	sed -i '/"vmName":"more"/s/^ask/ask --no-fail-with-body/' session
	expect 0 timeout 120 bash -eu -o pipefail session
	awk -v dir="$work/blocks" '/^@ / { print last >(dir "/" $2 ".printed") }
		NF { last = $0 }' "$out"
	for block in "$work"/blocks/??.prints; do
		equal "$(cat "${block%s}ed")" "$(cat "$block")" "$block"
	done
	no_sandbox
}

@test "ark-api(7): every error code of the contract, with its status" {
	/usr/bin/python3 - "$tree" <<-'END'
	import re, sys, yaml
	doc = yaml.safe_load(open(sys.argv[1] + '/share/openapi.yaml'))
	page = open(sys.argv[1] + '/man/ark-api.7').read()
	error = doc['components']['schemas']['Error']['properties']['error']
	codes = set(error['properties']['code']['enum'])
	rows = re.findall(r'^\.It (\d+) Ta Va (\w+) Ta', page, re.M)
	assert codes == {code for _, code in rows}, codes ^ {c for _, c in rows}
	# Each example of an error in the contract has the status of its row.
	table = {code: status for status, code in rows}
	def walk(node, status):
	    if isinstance(node, dict):
	        if 'error' in node and 'code' in (node['error'] or {}) and status:
	            code = node['error']['code']
	            assert table[code] == status, (code, status)
	        for key, value in node.items():
	            walk(value, key if re.fullmatch(r"\d{3}", str(key)) else
	                 key[1:] if re.fullmatch(r"E\d{3}", str(key)) else status)
	    elif isinstance(node, list):
	        for value in node:
	            walk(value, status)
	walk(doc, None)
	END
}
