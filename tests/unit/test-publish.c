/*
 * test-publish - ports as people type them and as files hold them.
 */
#include "tap.h"

#include "publish.h"

static struct port ports[PORTS_MAX + 1];
static const char *why;

static void test_good(void)
{
	static const struct {
		const char *spec;
		int count;
		const char *first, *last;
	} rows[] = {
		{"80", 1, "tcp 127.0.0.1 0 80 -", NULL},
		{"80/tcp", 1, "tcp 127.0.0.1 0 80 -", NULL},
		{"53/udp", 1, "udp 127.0.0.1 0 53 -", NULL},
		{"5901=gui", 1, "tcp 127.0.0.1 0 5901 gui", NULL},
		{"53/udp=dns", 1, "udp 127.0.0.1 0 53 dns", NULL},
		{"8080:80", 1, "tcp 127.0.0.1 8080 80 -", NULL},
		{"8080:80/udp", 1, "udp 127.0.0.1 8080 80 -", NULL},
		{"8080:80=web", 1, "tcp 127.0.0.1 8080 80 web", NULL},
		{"0.0.0.0:8080:80", 1, "tcp 0.0.0.0 8080 80 -", NULL},
		{"198.51.100.1:1:65535/tcp=a.b-c_d", 1,
		 "tcp 198.51.100.1 1 65535 a.b-c_d", NULL},
		{"5736-5740=code", 5, "tcp 127.0.0.1 0 5736 code",
		 "tcp 127.0.0.1 0 5740 code"},
		{"8000-8002:80-82", 3, "tcp 127.0.0.1 8000 80 -",
		 "tcp 127.0.0.1 8002 82 -"},
		{"0.0.0.0:7-8:9-10/udp", 2, "udp 0.0.0.0 7 9 -",
		 "udp 0.0.0.0 8 10 -"},
		{"1024:80", 1, "tcp 127.0.0.1 1024 80 -", NULL},
		{"1-256", 256, "tcp 127.0.0.1 0 1 -", "tcp 127.0.0.1 0 256 -"},
		{"65535", 1, "tcp 127.0.0.1 0 65535 -", NULL},
		{"80-80", 1, "tcp 127.0.0.1 0 80 -", NULL},
		{"80=abcdefghijklmnopqrstuvwxyz01234", 1,
		 "tcp 127.0.0.1 0 80 abcdefghijklmnopqrstuvwxyz01234", NULL},
	};
	char line[PORT_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int n = port_parse(rows[i].spec, ports, PORTS_MAX, &why);

		is_num(n, rows[i].count, rows[i].spec);
		if (n < 1)
			continue;
		port_line(&ports[0], line);
		is_str(line, rows[i].first, "the first");
		port_line(&ports[n - 1], line);
		if (rows[i].last)
			is_str(line, rows[i].last, "the last");
	}
}

static void test_bad(void)
{
	static const char *const rows[] = {
		"",
		" ",
		"x",
		"0",
		"65536",
		"-1",
		"+80",
		" 80",
		"80 ",
		"80\n",
		"0x50",
		"8080:",
		":80",
		"::80",
		"8080:80:",
		":8080:80",
		"1:2:3",
		"127.0.0.1:80",
		"127.0.0.1::80",
		"127.1:8080:80",
		"127.0.0.01:8080:80",
		"0127.0.0.1:8080:80",
		"127.0.0.1.:8080:80",
		"256.0.0.1:8080:80",
		"localhost:8080:80",
		"[::1]:8080:80",
		"::1:8080:80",
		"0:80",
		"0.0.0.0:0:80",
		"8080:0",
		"80/",
		"80/TCP",
		"80/sctp",
		"80/udp/tcp",
		"80=",
		"80==x",
		"80=a b",
		"80=-x",
		"80=.x",
		"80=\"x",
		"80=x\ny",
		"80=abcdefghijklmnopqrstuvwxyz012345",
		"1024",
		"8080:1024",
		"1000-1100",
		"2000-2100:1000-1100",
		"82-80",
		"80-",
		"-80",
		"80-81-82",
		"80-81:80",
		"80:80-81",
		"80-82:80-81",
		"1-257",
		"1-65535:1-65535",
		"80;reboot",
		"80 -j ACCEPT",
		"127.0.0.1/8:80:80",
		"0.0.0.0:8080:80/tcp=x=y z",
		"8080:80:tcp",
	};
	char big[600];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		why = NULL;
		ok(port_parse(rows[i], ports, PORTS_MAX, &why) == 0,
		   "refused: %s", rows[i]);
		ok(why && *why, "with a reason");
	}
	memset(big, '8', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	is_num(port_parse(big, ports, PORTS_MAX, &why), 0, "600 characters");
	is_num(port_parse("80-90", ports, 10, &why), 0, "one too many");
	is_num(port_parse("80-89", ports, 10, &why), 10, "just as many");
}

static void test_clash(void)
{
	static const struct {
		const char *a, *b;
		bool clash;
	} rows[] = {
		{"80:1", "80:2", true},
		{"80:1", "81:1", false},
		{"80:1", "80:1/udp", false},
		{"80:1/udp", "80:2/udp", true},
		{"0.0.0.0:80:1", "80:2", true},
		{"80:1", "0.0.0.0:80:2", true},
		{"192.0.2.1:80:1", "192.0.2.2:80:1", false},
		{"1", "1", false},
	};
	struct port a, b;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		port_parse(rows[i].a, &a, 1, &why);
		port_parse(rows[i].b, &b, 1, &why);
		ok(port_clash(&a, &b) == rows[i].clash, "%s and %s", rows[i].a,
		   rows[i].b);
	}
}

static void test_show(void)
{
	char text[PORT_TEXT_MAX];

	port_parse("0.0.0.0:8080:80=web", ports, 1, &why);
	port_show(&ports[0], text);
	is_str(text, "0.0.0.0:8080 -> 80/tcp web", "for people");
	port_parse("53/udp", ports, 1, &why);
	port_show(&ports[0], text);
	is_str(text, "127.0.0.1:? -> 53/udp", "not chosen yet");
}

static void test_files(int dir)
{
	static const char good[] = "tcp 127.0.0.1 8080 80 web\n"
				   "udp 0.0.0.0 0 53 -\n";
	char text[256];
	struct port full;

	is_num(ports_read(dir, "none", ports, PORTS_MAX), 0, "no file");
	put_file(dir, "ports", good, sizeof(good) - 1);
	is_num(ports_read(dir, "ports", ports, PORTS_MAX), 2, "two");
	is_num(ports_write(dir, "ports", ports, 2), 0, "and back");
	ok(read_file(dir, "ports", text, sizeof(text)) > 0, "it is there");
	is_str(text, good, "the same");
	is_num(ports_read(dir, "ports", ports, 1), -1, "more than fit");
	is_num(ports_write(dir, "ports", ports, 0), 0, "none");
	is_num(ports_read(dir, "ports", ports, PORTS_MAX), 0, "is none");
	is_num(ports_write(dir, "ports", ports, PORTS_MAX + 1), -1, "too many");
	is_num(ports_read(dir, "ports", ports, PORTS_MAX), 0, "and unchanged");
	port_parse(
		"255.255.255.255:65535:65535=abcdefghijklmnopqrstuvwxyz01234",
		&full, 1, &why);
	for (size_t i = 0; i < PORTS_MAX; i++)
		ports[i] = full;
	is_num(ports_write(dir, "ports", ports, PORTS_MAX), 0, "the most");
	is_num(ports_read(dir, "ports", ports, PORTS_MAX), PORTS_MAX, "back");
	is_num(ports_write(-1, "ports", ports, 1), -1, "no directory");
}

static void test_bad_lines(int dir)
{
	static const char *const rows[] = {
		"\n",
		"tcp 127.0.0.1 8080 80 web",
		"tcp 127.0.0.1 8080 80\n",
		"tcp 127.0.0.1 8080 80 web more\n",
		"tcp  127.0.0.1 8080 80 web\n",
		" tcp 127.0.0.1 8080 80 web\n",
		"tcp 127.0.0.1 8080 80 web \n",
		"icmp 127.0.0.1 8080 80 -\n",
		"tcp 127.0.0.1 8080 0 -\n",
		"tcp 127.0.0.1 8080 1024 -\n",
		"tcp 127.0.0.1 65536 80 -\n",
		"tcp 127.0.0.1 -1 80 -\n",
		"tcp 127.0.0.1 08080 80 -\n",
		"tcp localhost 8080 80 -\n",
		"tcp 127.0.0.01 8080 80 -\n",
		"tcp 127.0.0.1 8080 80 -x\n",
		"tcp 127.0.0.1 8080 80 \"x\n",
		("tcp 127.0.0.1 8080 80 "
		 "abcdefghijklmnopqrstuvwxyz012345\n"),
		"tcp 127.0.0.1 8080 80 -\n\n",
		"tcp 127.0.0.1 8080 80 -\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_file(dir, "ports", rows[i], strlen(rows[i]));
		errno = 0;
		ok(ports_read(dir, "ports", ports, PORTS_MAX) == -1 &&
			   errno == EINVAL,
		   "bad line: %s", rows[i]);
	}
	put_file(dir, "ports", "tcp 127.0.0.1 1 80 -\n\0x", 23);
	is_num(ports_read(dir, "ports", ports, PORTS_MAX), -1, "a NUL");
	put_link("/etc/passwd", dir, "link");
	is_num(ports_read(dir, "link", ports, PORTS_MAX), -1, "a link");
}

int main(void)
{
	int dir = tap_dir();

	test_good();
	test_bad();
	test_clash();
	test_show();
	test_files(dir);
	test_bad_lines(dir);
	return done();
}
