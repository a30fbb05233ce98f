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

@test "ark-api(7): every example works, in its order" {
	cd "$work"
	expect 0 timeout 120 "$tests/manual" ark-api.7
	[ "${stdout% *}" -ge 30 ]
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
