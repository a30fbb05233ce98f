# ark serve: when it refuses to start, what it leaves behind, TLS.

load ../helper
load ../rest/rest

setup_file() {
	ark_files mini
	ip addr add 198.51.100.7/32 dev lo
	ark auth ls >/dev/null
}

teardown_file() {
	serve_end
	ark_end
}

setup() {
	token=
	remember
}

teardown() {
	serve_end
}

@test "without tokens it serves nobody, and beyond loopback nobody at all" {
	expect fail timeout 20 ark serve --listen 198.51.100.7:7000
	says token
	expect fail timeout 20 ark serve --listen 0.0.0.0:7000
	says token
	echo 'auth = none' >>"$ARK_CONF"
	expect fail timeout 20 ark serve --listen 198.51.100.7:7000
	says token || says auth
	expect fail timeout 20 ark serve --listen 0.0.0.0:7000
	expect 64 timeout 20 ark serve --listen nonsense
	expect 64 timeout 20 ark serve --listen 127.0.0.1:99999
	expect 64 timeout 20 ark serve --no-such-option
	expect 64 timeout 20 ark serve --listen '127.0.0.1:7000"; $SERVER'
	no_one_listens
	nothing_new
	sed -i '/^auth/d' "$ARK_CONF"
}

no_one_listens() {
	equal "$(ss -Hltn 'sport = 7000')" ''
}

@test "it ends with everything of it on TERM, INT, and the death of a part" {
	echo 'auth = none' >>"$ARK_CONF"
	for signal in TERM INT HUP; do
		serve
		pid=$(cat "$work/serve.pid")
		kill -s "$signal" "$pid"
		soon 10 gone "$pid"
		no_one_listens
		nothing_new
	done
	serve
	# No half of it stays when the other one has died.
	for part in web listener; do
		pid=$(cat "$work/serve.pid")
		kill -KILL "$(serve_processes | awk -v p="$part" '
			$3 == p { print $1 }')"
		soon 10 gone "$pid" || healthy
		serve_end
		soon 10 no_one_listens
		nothing_new
		serve
	done
	serve_end
	sed -i '/^auth/d' "$ARK_CONF"
}

@test "after kill -9 of all of it the next one starts" {
	echo 'auth = none' >>"$ARK_CONF"
	serve
	pids=$(serve_processes | cut -d ' ' -f 1)
	# shellcheck disable=SC2086 # numbers
	kill -KILL "$(cat "$work/serve.pid")" $pids
	rm -f "$work/serve.pid"
	soon 10 no_one_listens
	serve
	wants 200 GET /v1/vms
	serve_end
	nothing_new
	sed -i '/^auth/d' "$ARK_CONF"
}

@test "a port that is taken is told" {
	echo 'auth = none' >>"$ARK_CONF"
	serve
	expect fail timeout 20 ark serve
	[ -s "$err" ]
	# The first one is not disturbed.
	wants 200 GET /v1/vms
	serve_end
	# Beside each other on two ports.
	sed -i '/^auth/d' "$ARK_CONF"
	nothing_new
}

@test "beyond loopback with a token, with and without TLS" {
	token=$(ark auth add --scope admin host)
	serve --listen 198.51.100.7:7000 || [ -s "$work/serve.log" ]
	base=http://198.51.100.7:7000
	soon 10 healthy
	wants 200 GET /v1/vms
	token='' wants 401 GET /v1/vms
	serve_end
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ark \
		-addext subjectAltName=IP:198.51.100.7 \
		-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
	base=https://198.51.100.7:7000
	export CURL_CA_BUNDLE=$work/cert.pem
	serve --listen 198.51.100.7:7000 --tls "$work/cert.pem,$work/key.pem"
	wants 200 GET /v1/vms
	# Nothing in the clear on that port, nothing old.
	run ! curl -s -m 5 "http://198.51.100.7:7000/v1/health" -f
	run ! curl -s -m 5 --tls-max 1.1 "$base/v1/health" -f
	serve_end
	unset CURL_CA_BUNDLE
	ark auth rm host
	nothing_new
}
