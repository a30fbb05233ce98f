# The network of sandboxes, in namespaces that play a host and the world around
# it, with real guests.  The machine's own firewall is never touched.
#
#	world	198.51.100.9, and 203.0.113.7 (the internet), 169.254.169.254
#		(metadata), 192.168.77.7 (somebody's LAN), the resolver
#	host	198.51.100.1, its default route leads to the world; all of ark
#		runs in it

load helper

setup_file() {
	ark_files mini
	export host=ark-host-$$ world=ark-world-$$ host2=ark-hos2-$$ world2=ark-worl2-$$
	# shellcheck disable=SC2155 # no resolver is the empty word
	export resolver=$(sed -n 's/^nameserver \([0-9.]*\)$/\1/p' /etc/resolv.conf | head -n 1)
	make_world "$host" "$world"
	build_udp
	boot_net a 127.0.0.1:8080:80 0.0.0.0:8081:80 0.0.0.0:5300:7777/udp
	boot_net b 127.0.0.1:9080:80 198.51.100.1:9081:80
	serve a
	serve b
}

teardown_file() {
	local ns pid run
	for run in "$work"/run[0-9]; do
		kill_slots "$run"
	done
	ark_end
	for ns in "$host" "$world" "$host2" "$world2"; do
		for pid in $(ip netns pids "$ns" 2>/dev/null); do
			kill -KILL "$pid" 2>/dev/null || :
		done
		ip netns del "$ns" 2>/dev/null || :
	done
}

# ---- the world --------------------------------------------------------------

H() { ip netns exec "$host" "$@"; }
W() { ip netns exec "$world" "$@"; }

# One answer per connection: who has called whom.  UDP is answered the same, on
# port 53 with the address 203.0.113.7 for whatever is asked.
server='
import socket, socketserver, sys, threading
class Tcp(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
        text = "%s called %s\n" % (self.client_address[0],
                                   self.request.getsockname()[0])
        self.request.sendall(("HTTP/1.0 200 OK\r\n\r\n" + text).encode())
class Udp(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        sock.sendto(self.client_address[0].encode() + b"\n", self.client_address)
class Dns(socketserver.BaseRequestHandler):
    def handle(self):
        data, sock = self.request
        end = data.index(b"\0", 12) + 5
        a = data[end - 4:end - 2] == b"\0\1"
        answer = data[:2] + b"\x81\x80\0\1" + (b"\0\1" if a else b"\0\0") + b"\0\0\0\0"
        answer += data[12:end]
        if a:
            answer += b"\xc0\x0c\0\1\0\1\0\0\0\x0a\0\4" + bytes([203, 0, 113, 7])
        sock.sendto(answer, self.client_address)
class T(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
class T6(T):
    address_family = socket.AF_INET6
    def server_bind(self):
        self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        T.server_bind(self)
all = []
for word in sys.argv[1:]:
    kind, address, port = word.split(",")
    make = {"tcp": (T, Tcp), "tcp6": (T6, Tcp), "dns": (socketserver.UDPServer, Dns),
            "udp": (socketserver.UDPServer, Udp)}[kind]
    all.append(make[0]((address, int(port)), make[1]))
print("up", flush=True)
for one in all:
    threading.Thread(target=one.serve_forever).start()
'

# serve_in NAMESPACE KIND,ADDRESS,PORT...
serve_in() {
	local said=$work/server.$1
	mkfifo "$said"
	env -u ARK_RUN ip netns exec "$1" python3 -c "$server" "${@:2}" \
		>"$said" 2>/dev/null 3>&- </dev/null &
	read -r _ <"$said"
	rm "$said"
}

make_world() { # HOST WORLD
	local address
	ip netns add "$1"
	ip netns add "$2"
	ip -n "$1" link set lo up
	ip -n "$2" link set lo up
	ip -n "$1" link add up0 type veth peer name eth0 netns "$2"
	ip -n "$1" addr add 198.51.100.1/24 dev up0
	ip -n "$2" addr add 198.51.100.9/24 dev eth0
	ip -n "$1" addr add 2001:db8:1::1/64 dev up0 nodad
	ip -n "$2" addr add 2001:db8:1::9/64 dev eth0 nodad
	ip -n "$1" link set up0 up
	ip -n "$2" link set eth0 up
	for address in 203.0.113.7 169.254.169.254 192.168.77.7 $resolver; do
		ip -n "$2" addr add "$address/32" dev lo
	done
	ip -n "$1" route add default via 198.51.100.9
	# Whatever would get there without ark's rules must find its way back.
	ip -n "$2" route add 10.20.0.0/16 via 198.51.100.1
	serve_in "$2" tcp,0.0.0.0,80 tcp6,::,80 udp,203.0.113.7,7000 \
		udp,192.168.77.7,7000 \
		${resolver:+dns,$resolver,53}
	serve_in "$1" tcp,0.0.0.0,22 tcp6,::,22 udp,0.0.0.0,7000
}

# boot_net NAME PORT...
boot_net() {
	expect 0 H ark create --image mini "$1"
	expect 0 H ark publish "$@"
	expect 0 H ark start "$1"
}

# udp ADDRESS PORT: ask once; udp ADDRESS PORT TEXT: answer each with TEXT and
# who has asked.  busybox has nothing for either.
build_udp() {
	musl-gcc -static -Os -o "$work/udp" -xc - <<-'EOF'
	#include <arpa/inet.h>
	#include <stdio.h>
	#include <stdlib.h>
	#include <sys/time.h>
	#include <unistd.h>
	int main(int n, char **word)
	{
		int s = socket(AF_INET, SOCK_DGRAM, 0);
		struct sockaddr_in a = {.sin_family = AF_INET,
			.sin_port = htons(atoi(word[2]))};
		struct sockaddr *at = (struct sockaddr *)&a;
		struct timeval limit = {.tv_sec = 2};
		socklen_t size = sizeof(a);
		char text[200];
		inet_aton(word[1], &a.sin_addr);
		if (n == 3) {
			setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
			sendto(s, "x", 1, 0, at, size);
			n = recv(s, text, sizeof(text), 0);
			return n <= 0 || write(1, text, n) != n;
		}
		bind(s, at, size);
		while (recvfrom(s, text, sizeof(text), 0, at, &size) >= 0) {
			n = sprintf(text, "%s, %s\n", word[3], inet_ntoa(a.sin_addr));
			sendto(s, text, n, 0, at, size);
		}
		return 1;
	}
	EOF
}

# A page that says whose it is and who has called, and UDP as well.
serve() {
	H ark cp "$work/udp" "$1:/bin/udp"
	H ark exec -n "$1" -- sh -c 'mkdir -p /w/cgi-bin
		printf "#!/bin/sh\necho; echo $1, \$REMOTE_ADDR\n" >/w/cgi-bin/who
		chmod 755 /w/cgi-bin/who
		busybox httpd -h /w' sh "$1"
	H ark exec -d "$1" -- udp 10.0.2.2 7777 "$1" >/dev/null
}

# page NAMESPACE ADDRESS: what is served there, or nothing.
page() {
	ip netns exec "$1" curl -sS -m "$(within 2)" "http://$2/cgi-bin/who" 2>/dev/null |
		sed 's/\[::ffff:\(.*\)\]/\1/' || :
}

is_page() { # NAMESPACE ADDRESS PAGE
	equal "$(page "$1" "$2")" "$3" "$2 from $1"
}

# fetch NAME ADDRESS [PORT]: what a guest gets from there, or nothing.
fetch() {
	H ark exec -n "$1" -- sh -c 'printf "GET /\n" | timeout $3 nc -w $3 "$1" "$2"' \
		sh "$2" "${3:-80}" "$(within 2)" 2>/dev/null | tail -n 1 || :
}

gets_nothing() { # NAME ADDRESS [PORT]
	equal "$(fetch "$@")" '' "$* was reached"
}

# lacks TEXT COMMAND...: that it does not print.
lacks() {
	"${@:2}" 2>/dev/null >"$BATS_TEST_TMPDIR/lacks"
	[ "$(grep -cF -e "$1" "$BATS_TEST_TMPDIR/lacks")" = 0 ] ||
		grep -F -e "$1" "$BATS_TEST_TMPDIR/lacks" | sed 's/^/still there: /;$q1'
}

rules() { # without what only counts
	H iptables-save | grep -v '^#' | sed 's/\[[0-9:]*\]//'
	H ip6tables-save | grep -v '^#' | sed 's/\[[0-9:]*\]//'
}

outer() {
	cat "$(slot "$1")/net"
}

# ---- ways in ----------------------------------------------------------------

# bats test_tags=lab
@test "two guests with one address: each on its own ports, and the caller's address is kept" {
	for name in a b; do
		expect 0 H ark exec -n "$name" -- ip -4 addr show eth0
		[[ $stdout == *' 10.0.2.2/30 '* ]]
	done
	is_page "$host" 127.0.0.1:8080 'a, 169.254.1.1'
	is_page "$host" 127.0.0.1:9080 'b, 169.254.1.1'
	is_page "$host" 127.0.0.1:8081 'a, 169.254.1.1'
	is_page "$host" 198.51.100.1:8081 'a, 198.51.100.1'
	is_page "$host" 198.51.100.1:9081 'b, 198.51.100.1'
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	is_page "$world" 198.51.100.1:9081 'b, 198.51.100.9'
	is_page "$host" "$(outer a)" 'a, 198.51.100.1'
	is_page "$host" "$(outer b)" 'b, 198.51.100.1'
	[ "$(outer a)" != "$(outer b)" ]
}

@test "a published UDP port" {
	equal "$(W "$work/udp" 198.51.100.1 5300)" 'a, 198.51.100.9'
	equal "$(H "$work/udp" 198.51.100.1 5300)" 'a, 198.51.100.1'
	equal "$(H "$work/udp" 127.0.0.1 5300)" 'a, 169.254.1.1'
	expect fail W "$work/udp" "$(outer a)" 7777
}

@test "nobody else gets in: other machines, other ports, the agent's port" {
	# Published for the host alone.
	is_page "$world" 198.51.100.1:8080 ''
	is_page "$world" 198.51.100.1:9080 ''
	# On the one address, not on others.
	is_page "$host" 127.0.0.1:9081 ''
	# Not at all.
	is_page "$world" 198.51.100.1:80 ''
	for name in a b; do
		is_page "$world" "$(outer "$name")" ''
		for ns in "$host" "$world"; do
			expect fail ip netns exec "$ns" timeout 2 \
				bash -c "</dev/tcp/$(outer "$name")/1024"
		done
		# It is there, from where it may be asked.
		expect 0 H ark exec -n "$name" -- true
	done
	expect 64 H ark publish a 7000:1024
	says agent
}

# ---- ways out ---------------------------------------------------------------

@test "policy open: the internet by address and by name, under the host's address" {
	equal "$(fetch a 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
	expect 0 H ark exec -n a -- nslookup anything.example
	[[ $stdout == *203.0.113.7* ]]
	equal "$(fetch a anything.example)" '198.51.100.1 called 203.0.113.7'
	expect 0 H ark exec -n a -- ping -c 1 -W 2 203.0.113.7
	equal "$(H ark exec -n a -- udp 203.0.113.7 7000)" 198.51.100.1
}

@test "what no guest reaches: metadata, LANs, the host, its ports, the others" {
	other=$(outer b)
	denied=(169.254.169.254 192.168.77.7 198.51.100.1 "$other" 10.20.255.1
		"$(outer a)" 169.254.1.1 127.0.0.1 224.0.0.1 255.255.255.255 0.0.0.1)
	for address in "${denied[@]}"; do
		[ "$address" = "$(outer a)" ] || [ "$address" = 127.0.0.1 ] ||
			gets_nothing a "$address" 80
		gets_nothing a "$address" 22
		gets_nothing a "$address" 1023
	done
	# Hairpin: the host's address, a port that leads to a guest.
	gets_nothing a 198.51.100.1 9081
	gets_nothing a 198.51.100.1 8081
	# Inside: the gateway has nothing but DNS.
	gets_nothing a 10.0.2.1 22
	gets_nothing a 10.0.2.1 1024
	# The agent of another.
	gets_nothing a "$other" 1024
	# UDP.
	for address in 198.51.100.1 192.168.77.7 "$other"; do
		expect fail H ark exec -n a -- udp "$address" 7000
		equal "$stdout" ''
	done
}

@test "denied TCP fails at once, not after a time-out" {
	for address in 169.254.169.254 198.51.100.1; do
		begin=$(date +%s%N)
		expect fail H ark exec -n a -- nc -w 5 "$address" 22
		took=$((($(date +%s%N) - begin) / 1000000))
		[ "$took" -lt 2500 ] || wrong "took $took ms"
	done
}

@test "a guest that lies about its source address, and routes around us" {
	expect 0 H ark exec -n a -- sh -c "ip addr add 203.0.113.99/32 dev eth0 &&
		ip addr add $(outer b)/32 dev eth0"
	sent=$(H cat /sys/class/net/up0/statistics/tx_packets)
	H ark exec -n a -- ping -c 3 -W 1 -I 203.0.113.99 203.0.113.7 || :
	H ark exec -n a -- ping -c 3 -W 1 -I "$(outer b)" 203.0.113.7 || :
	# Nothing but the odd neighbour packet.
	[ $(($(H cat /sys/class/net/up0/statistics/tx_packets) - sent)) -le 2 ]
	expect 0 H ark exec -n a -- sh -c "ip addr del 203.0.113.99/32 dev eth0 &&
		ip addr del $(outer b)/32 dev eth0"
	# The same by whoever owns the whole namespace: the host's own check.
	pid=$(pid_of vmm a)
	nsenter -t "$pid" -n ip addr add 203.0.113.99/32 dev eth0
	nsenter -t "$pid" -n iptables -P OUTPUT ACCEPT
	before=$(H cat /sys/class/net/up0/statistics/tx_packets)
	nsenter -t "$pid" -n ping -q -c 3 -i 0.2 -W 1 -I 203.0.113.99 203.0.113.7 || :
	[ $(($(H cat /sys/class/net/up0/statistics/tx_packets) - before)) -le 2 ]
	nsenter -t "$pid" -n ip addr del 203.0.113.99/32 dev eth0
	nsenter -t "$pid" -n iptables -P OUTPUT DROP
}

@test "a VMM that was taken over reaches its own guest and nothing else" {
	pid=$(pid_of vmm a)
	for address in 203.0.113.7/80 198.51.100.1/22 "$(outer b)/80" 10.0.2.2/80; do
		expect fail timeout 1 nsenter -t "$pid" -n bash -c "</dev/tcp/$address"
	done
	expect 0 timeout 2 nsenter -t "$pid" -n bash -c '</dev/tcp/10.0.2.2/1024'
}

@test "IPv6 leads nowhere" {
	pid=$(pid_of vmm a)
	expect 0 nsenter -t "$pid" -n cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6
	equal "$stdout" 1
	expect 0 H cat "/proc/sys/net/ipv6/conf/ark$(cat "$ARK_ROOT/vm/a/slot")/disable_ipv6"
	equal "$stdout" 1
	H ark exec -n a -- sh -c 'ip -6 addr add 2001:db8:1::77/64 dev eth0
		ip -6 route add default via fe80::aff:fe00:201 dev eth0' || :
	for address in 2001:db8:1::1 2001:db8:1::9; do
		gets_nothing a "$address" 80
		gets_nothing a "$address" 22
	done
}

@test "TCP in the middle is answered with a reset, as a clone's would be" {
	# It asks when told to, and what it asked has not been answered before.
	expect 0 H ark exec -d a -- sh -c 'rm -f /tmp/f; mkfifo /tmp/f
		nc 203.0.113.7 80 </tmp/f >/tmp/got 2>&1; echo $? >/tmp/code'
	H ark exec -n a -- sh -c 'until [ -p /tmp/f ]; do sleep 0.1; done
		exec 9>/tmp/f; echo $$ >/tmp/pid
		until [ -e /tmp/go ]; do sleep 0.1; done; echo GET >&9; sleep 5' &
	asker=$!
	known() {
		nsenter -t "$(pid_of vmm a)" -n conntrack -L -p tcp 2>/dev/null |
			grep 'ESTABLISHED.*dport=80 '
	}
	soon 10 known
	# All that was known of the connection goes, as it does in a clone.
	nsenter -t "$(pid_of vmm a)" -n conntrack -F
	H ark exec -n a -- touch /tmp/go
	soon 10 H ark exec -n a -- test -s /tmp/code
	equal "$(H ark exec -n a -- grep called /tmp/got || :)" '' 'it went on'
	wait "$asker"
}

# bats test_tags=lab
@test "policy none: nothing, not even names, and at once; published ports stay" {
	expect 0 H ark policy a none
	quiet
	gets_nothing a 203.0.113.7
	begin=$SECONDS
	expect fail H ark exec -n a -- nslookup anything.example
	[ $((SECONDS - begin)) -lt "$(within 8)" ]
	[ -z "$resolver" ] || gets_nothing a "$resolver" 53
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	equal "$(fetch b 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
	expect 0 H ark port a
	[[ $stdout == *'policy   none'* ]]
	expect 0 H ark policy a open
	equal "$(fetch a 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
	expect 64 H ark policy a some
	says policy
}

# ---- the host's firewall ----------------------------------------------------

@test "a host that drops what it does not know, as Docker's and ufw's do" {
	H iptables -P FORWARD DROP
	H iptables -P INPUT DROP
	H iptables -A INPUT -i lo -j ACCEPT
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	is_page "$host" 127.0.0.1:8080 'a, 169.254.1.1'
	equal "$(fetch a 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
	H iptables -P FORWARD ACCEPT
	H iptables -P INPUT ACCEPT
	H iptables -D INPUT -i lo -j ACCEPT
}

@test "init again changes nothing, and never anything that is not ours" {
	H iptables -N OTHERS
	H iptables -A OTHERS -s 192.0.2.1 -j DROP
	H iptables -I FORWARD -j OTHERS
	H iptables -t nat -A POSTROUTING -s 172.30.0.0/16 -j MASQUERADE
	rules >"$BATS_TEST_TMPDIR/before"
	expect 0 H ark net init
	quiet
	expect 0 H ark net init
	expect 0 H ark net check
	quiet
	rules | diff "$BATS_TEST_TMPDIR/before" -
	# Jumps that are there twice, a chain with a stranger in it.
	H iptables -I INPUT -i ark+ -m comment --comment ark -j ARK-IN
	H iptables -t nat -A OUTPUT -m addrtype --dst-type LOCAL -m comment \
		--comment ark -j ARK-PF
	H iptables -I ARK-FROM -j ACCEPT
	expect 69 H ark net check
	says ARK
	expect 0 H ark net init
	rules | sort | diff <(sort "$BATS_TEST_TMPDIR/before") -
	H iptables -t nat -D POSTROUTING -s 172.30.0.0/16 -j MASQUERADE
	H iptables -D FORWARD -j OTHERS
	H iptables -F OTHERS
	H iptables -X OTHERS
}

@test "a flushed firewall: guests stay where they are, the next up mends it for all" {
	rules | sort >"$BATS_TEST_TMPDIR/before"
	for table in raw nat filter; do
		H iptables -t "$table" -F
		H iptables -t "$table" -X
		H ip6tables -t "$table" -F
		H ip6tables -t "$table" -X
	done
	expect 69 H ark net check
	says ARK-
	for address in 169.254.169.254 192.168.77.7 198.51.100.1 "$(outer b)"; do
		gets_nothing a "$address" 22
		gets_nothing a "$address" 80
	done
	expect 0 H ark net up b
	quiet
	expect 0 H ark net check
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	is_page "$world" 198.51.100.1:9081 'b, 198.51.100.9'
}

@test "open twice, up twice: nothing twice, and all works" {
	rules | sort >"$BATS_TEST_TMPDIR/before"
	for verb in up open up open; do
		expect 0 H ark net "$verb" a
		quiet
	done
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	expect 0 H ip -o link
	equal "$(grep -c 'ark[0-9a-f]*@' "$out")" 2 links
}

# A VMM that has not left the host's namespace yet, or a slot that lies about
# its VMM: rules for the inside would shut the host itself.
@test "up never takes the host for the inside of a sandbox" {
	slot=$(grep -lx b "$ARK_RUN"/0*/vm) slot=${slot%/vm}
	rules | sort >"$BATS_TEST_TMPDIR/before"
	H ip -o addr >"$BATS_TEST_TMPDIR/addresses"
	cp "$slot/vmm" "$BATS_TEST_TMPDIR/vmm"
	(exec ip netns exec "$host" sleep 60) 3>&- &
	pid=$!
	until [ "$(cat /proc/$pid/comm)" = sleep ]; do sleep 0.01; done
	echo "$pid $(cut -d ' ' -f 22 "/proc/$pid/stat")" >"$slot/vmm"
	for verb in up prepare; do
		expect fail H ark net "$verb" b
		says namespace
	done
	cp "$BATS_TEST_TMPDIR/vmm" "$slot/vmm"
	kill $pid
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	H ip -o addr | diff "$BATS_TEST_TMPDIR/addresses" -
	is_page "$world" 198.51.100.1:9081 'b, 198.51.100.9'
}

@test "prepare lets nothing through, open does" {
	for verb in down prepare down; do
		expect 0 H ark net "$verb" b
		quiet
	done
	expect 0 H ip -o link
	equal "$(grep -c 'ark[0-9a-f]*@' "$out")" 1 links
	expect 0 H ark net prepare b
	is_page "$world" 198.51.100.1:9081 ''
	gets_nothing b 203.0.113.7 80
	expect 0 H ark net open b
	is_page "$world" 198.51.100.1:9081 'b, 198.51.100.9'
	equal "$(fetch b 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
}

@test "plan prints it all; show as text and as JSON" {
	expect 0 H ark net plan a
	silent
	for text in "-A ARK-PF -d 127.0.0.1/32 -p tcp --dport 8080" '-A EGRESS -d 169.254.0.0/16' \
		"link add eth0" "route replace $(outer a)/32"; do
		[[ $stdout == *"$text"* ]] || wrong "no $text"
	done
	expect 0 H ark port a
	[[ $stdout == *'port     0.0.0.0:5300 -> 7777/udp'* ]]
	expect 0 H ark port --json a
	equal "$(jq -r '.address, .policy, .ports[0].host' "$out" | xargs)" "$(outer a) open 8080"
	expect 66 H ark port nobody
	says nobody
}

@test "another ARK_RUN on the same host: its link is not touched, its rules stay" {
	expect 0 H ark create --image mini c
	mkdir -m 700 "$work/run2"
	expect 0 env ARK_RUN="$work/run2" ip netns exec "$host" ark start c || :
	# Slot 1 of both: the name of the link and the address are taken.
	expect 0 H ip -j link show dev ark0001
	[[ $stdout =~ \"ark:[0-9a-f]{8}:0001:a\" ]]
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	rules | sort >"$BATS_TEST_TMPDIR/before"
	expect 0 env ARK_RUN="$work/run2" ip netns exec "$host" ark net gc
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	expect 0 env ARK_RUN="$work/run2" ip netns exec "$host" ark rm -f c
}

# ---- ports while it runs ----------------------------------------------------

@test "publish and unpublish while it runs" {
	expect 0 H ark publish a 0.0.0.0:8085:80=web 80
	[[ $stdout == '0.0.0.0:8085 -> 80/tcp web'*'127.0.0.1:2'* ]]
	free=$(sed -n 's/^127.0.0.1:\(2[0-9]*\) -> 80.tcp$/\1/p' "$out")
	is_page "$world" 198.51.100.1:8085 'a, 198.51.100.9'
	is_page "$host" "127.0.0.1:$free" 'a, 169.254.1.1'
	expect fail H ark publish b 0.0.0.0:8085:80
	says "'a'"
	expect 73 H ark publish a 127.0.0.1:8085:81
	expect fail H ark publish b 127.0.0.1:22:80
	expect 0 H ark unpublish a 8085 "$free"
	quiet
	is_page "$world" 198.51.100.1:8085 ''
	is_page "$host" "127.0.0.1:$free" ''
	expect 66 H ark unpublish a 8085
	says 8085
	expect 0 H ark publish b 0.0.0.0:8085:80
	is_page "$world" 198.51.100.1:8085 'b, 198.51.100.9'
	expect 0 H ark unpublish b 8085
	expect 64 H ark publish a 0:80
	expect 64 H ark publish a 127.1:80:80
	expect 64 H ark publish a 80-82:80
}

# ---- the end ----------------------------------------------------------------

@test "a stop leaves nothing: links, rules, connections, files" {
	name=$(outer b)
	is_page "$host" "$name" 'b, 198.51.100.1'
	[ "$(fetch b 203.0.113.7)" ]
	is_page "$world" 198.51.100.1:9081 'b, 198.51.100.9'
	H conntrack -L 2>/dev/null | grep -F "$name"
	expect 0 H ark kill b
	expect 0 H ark net gc
	quiet
	lacks ark0002 H ip -o link
	lacks ':0002:' H iptables-save
	lacks "=$name " H conntrack -L
	[ ! -e "$ARK_RUN/0002" ]
	expect 0 H ark net down b
	quiet
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
}

@test "keeper and VMM killed at once: gc finds links, rules and connections" {
	name=$(outer a)
	is_page "$world" 198.51.100.1:8081 'a, 198.51.100.9'
	keeper=$(pid_of keeper a) vmm=$(pid_of vmm a)
	kill -KILL "$keeper" "$vmm"
	soon 5 gone "$vmm"
	H iptables-save | grep ':0001:'
	expect 0 H ark gc
	lacks ark0001 H ip -o link
	lacks ':0001:' H iptables-save
	lacks "=$name " H conntrack -L
	[ ! -e "$ARK_RUN/0001" ]
	expect 0 H ark net check
}

# holders N: sandboxes k1 ... of an ARK_ROOT and ARK_RUN of their own, whose VMM
# is a process in an empty namespace: all that the network sees of one.
holders() {
	local i number pid
	export ARK_ROOT=$work/root4 ARK_RUN=$work/run4
	mkdir -m 700 "$ARK_ROOT" "$ARK_RUN" "$ARK_ROOT/vm"
	cat /proc/sys/kernel/random/boot_id >"$ARK_RUN/boot_id"
	pids=()
	for i in $(seq "$1"); do
		number=$(printf %04x $((i + 512)))
		mkdir "$ARK_ROOT/vm/k$i" "$ARK_RUN/$number"
		echo "$number" >"$ARK_ROOT/vm/k$i/slot"
		echo "k$i" >"$ARK_RUN/$number/vm"
		echo "tcp 127.0.0.1 $((21000 + i)) 80 -" >"$ARK_RUN/$number/ports"
		ip netns exec "$host" unshare -n sleep 300 3>&- &
		pid=$!
		pids+=("$pid")
		soon 5 holds "$pid"
		echo "$pid $(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 20)" \
			>"$ARK_RUN/$number/vmm"
	done
}

holds() { # PID: in a namespace that is neither the host's nor this one
	local there
	there=$(readlink "/proc/$1/ns/net")
	[ "$there" != "$(readlink /proc/self/ns/net)" ] &&
		[ "$there" != "$(H readlink /proc/self/ns/net)" ]
}

# What the host holds for sandboxes.
traces() {
	H ip -o link | sed 's/^[0-9]*: \([^:@]*\).*/\1/'
	H ip route
	rules
	H conntrack -L 2>/dev/null | grep -F 10.20.2. | sed 's/ [0-9]* / /' || :
	ls "$ARK_RUN"/????
}

@test "20 up, open and down at once" {
	holders 20
	expect 0 H ark net init
	traces | sort >"$BATS_TEST_TMPDIR/before"
	for verb in up open down; do
		jobs=()
		for i in $(seq 20); do
			ip netns exec "$host" ark net "$verb" "k$i" 3>&- &
			jobs+=("$!")
		done
		for job in "${jobs[@]}"; do
			wait "$job"
		done
		[ "$verb" != open ] || {
			equal "$(H ip -o link | grep -c 'ark02')" 20 links
			equal "$(H ip route | grep -c '^10.20.2.')" 20 routes
			equal "$(H iptables-save -t nat | grep -c 'dport 210[0-9][0-9] ')" 20 rules
		}
	done
	traces | sort | diff "$BATS_TEST_TMPDIR/before" -
	kill -KILL "${pids[@]}"
	rm -rf "$ARK_ROOT" "$ARK_RUN"
}

# killed_at_each VERB SYSCALL: at its first, second ... until there is none.
killed_at_each() {
	for step in $(seq 100); do
		case $1 in
		open) H ark net up k1 ;;
		down) H ark net up k1 && H ark net open k1 ;;
		esac
		ended=0
		H strace -o /dev/null -e trace="$2" -e "inject=$2:signal=KILL:when=$step" \
			"$tree/bin/ark-net" "$1" k1 2>/dev/null || ended=$?
		expect 0 H ark net down k1
		quiet
		rm -f "$ARK_RUN"/????/.*.[0-9]*
		traces | sort | diff "$BATS_TEST_TMPDIR/before" - ||
			wrong "left by $2 $step of $1"
		[ "$ended" != 0 ] || break
		equal "$ended" 137 "$2 $step of $1"
		steps=$((steps + 1))
	done
}

@test "killed at any step of up, open and down: down takes it all away, and so does gc" {
	holders 1
	expect 0 H ark net init
	traces | sort >"$BATS_TEST_TMPDIR/before"
	steps=0
	for verb in up open down; do
		for call in clone renameat unlinkat flock setns; do
			killed_at_each "$verb" "$call"
		done
	done
	[ "$steps" -ge 30 ] || wrong "only $steps steps"
	H ark net up k1
	H ark net open k1
	kill -KILL "${pids[@]}"
	soon 5 gone "${pids[0]}"
	expect 0 H ark net gc
	equal "$stdout" 'removed network of slot 0201'
	traces | sort | diff "$BATS_TEST_TMPDIR/before" -
	expect 0 H ark net gc
	quiet
	rm -rf "$ARK_ROOT" "$ARK_RUN"
}

@test "the legacy back end: the same, and never both" {
	# In a host of its own, with an ARK_RUN of its own.
	export ARK_RUN=$work/run3 host=$host2 world=$world2
	mkdir -m 700 "$ARK_RUN"
	make_world "$host" "$world"
	mkdir "$work/legacy"
	for command in iptables iptables-save iptables-restore ip6tables \
		ip6tables-save ip6tables-restore; do
		ln -s /usr/sbin/xtables-legacy-multi "$work/legacy/$command"
	done
	plain=$PATH
	PATH=$work/legacy:$PATH
	expect 0 H ark create --image mini l
	expect 0 H ark publish l 127.0.0.1:8080:80 0.0.0.0:8081:80
	expect 0 H ark start l
	serve l
	equal "$(cat "$ARK_RUN/iptables")" legacy
	equal "$(PATH=$plain H iptables-save | grep -c ARK-)" 0 'rules in the other'
	H iptables -P FORWARD DROP
	is_page "$host" 127.0.0.1:8080 'l, 169.254.1.1'
	is_page "$world" 198.51.100.1:8081 'l, 198.51.100.9'
	is_page "$world" 198.51.100.1:8080 ''
	is_page "$world" "$(outer l)" ''
	equal "$(fetch l 203.0.113.7)" '198.51.100.1 called 203.0.113.7'
	equal "$(fetch l anything.example)" '198.51.100.1 called 203.0.113.7'
	for address in 169.254.169.254 192.168.77.7 198.51.100.1; do
		gets_nothing l "$address" 22
		gets_nothing l "$address" 80
	done
	gets_nothing l 198.51.100.1 8081
	expect fail H timeout 2 bash -c "</dev/tcp/$(outer l)/1024"
	rules | sort >"$BATS_TEST_TMPDIR/before"
	expect 0 H ark net init
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	H iptables -t filter -F
	H iptables -t nat -F
	expect 69 H ark net check
	expect 0 H ark net up l
	rules | sort | diff "$BATS_TEST_TMPDIR/before" -
	is_page "$world" 198.51.100.1:8081 'l, 198.51.100.9'
	PATH=$plain expect 69 H ark net init
	says legacy
	expect 0 H ark rm -f l
	lacks 'ark:' H iptables-save
	lacks '=10.20.0.' H conntrack -L
	expect 0 H ark net gc
	quiet
}
