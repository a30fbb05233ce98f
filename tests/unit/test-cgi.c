/*
 * test-cgi - bytes in other clothes: base64, UTF-8, percents, ports of a
 * request, archives there and back.
 */
#include "tap.h"

#include "cgi.h"
#include "tar.h"
#include "tree-part.h"

#include <sys/stat.h>

static void test_base64(void)
{
	static const char *const pairs[][2] = {
		{"", ""},	  {"f", "Zg=="},	{"fo", "Zm8="},
		{"foo", "Zm9v"},  {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="},
		{"\xff", "/w=="}, {"\xfb\xff", "+/8="},
	};
	static const char *const bad[] = {
		"Z",	"Zg",	"Zg=",	"Zg===",  "=",	      "====", "Zh==",
		"Zm9=", "Zm 9", "Z=m9", "Zm9v\n", "Zm9v====", "-_-_",
	};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		AUTO_FREE char *text = strdup(pairs[i][1]);
		size_t len = strlen(text);
		AUTO_FREE char *coded =
			base64_encode(pairs[i][0], strlen(pairs[i][0]));

		is_str(coded, pairs[i][1], "base64 of it");
		ok(!base64_decode(text, &len) && len == strlen(pairs[i][0]) &&
			   memcmp(text, pairs[i][0], len) == 0,
		   "%s back again", pairs[i][1]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO_FREE char *text = strdup(bad[i]);
		size_t len = strlen(text);

		ok(base64_decode(text, &len) != NULL, "'%s' is none", bad[i]);
	}
}

static void test_utf8(void)
{
	static const struct {
		const char *text;
		size_t good;
	} cases[] = {
		{"abc", 3},
		{"\xc3\xa9", 2},
		{"\xe2\x82\xac", 3},
		{"\xf0\x9f\x98\x80", 4},
		{"\xc0\x80", 0},
		{"\xe0\x80\x80", 0},
		{"\xf0\x80\x80\x80", 0},
		{"\xed\xa0\x80", 0},
		{"\xf4\x90\x80\x80", 0},
		{"a\xff", 1},
		{"a\xc3", 1},
		{"\x80", 0},
		{"a\xe2\x82", 1},
		{"\xf8\x88\x80\x80\x80", 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		is_num((long long)utf8_span(cases[i].text,
					    strlen(cases[i].text)),
		       (long long)cases[i].good, "so much of it is UTF-8");
}

static void test_decode(void)
{
	static const struct {
		const char *text, *want; /* NULL: bad */
	} cases[] = {
		{"a%2Fb", "a/b"}, {"%41%7e", "A~"},	  {"a+b", "a b"},
		{"%", NULL},	  {"%4", NULL},		  {"%zz", NULL},
		{"a%00b", NULL},  {"%c3%a9", "\xc3\xa9"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO_FREE char *text = strdup(cases[i].text);
		bool good = uri_decode(text, true) >= 0;

		if (cases[i].want)
			is_str(good ? text : NULL, cases[i].want, "decoded");
		else
			ok(!good, "'%s' is refused", cases[i].text);
	}
}

static void test_ports(void)
{
	static const char *const cases[][6] = {
		{"", "", "80", "", "", "80"},
		{"", "8080", "80", "tcp", "", "8080:80"},
		{"127.0.0.1", "", "80", "", "", "80"},
		{"0.0.0.0", "1", "2", "udp", "x", "0.0.0.0:1:2/udp=x"},
		{"", "", "5-6", "", "code", "5-6=code"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *const *c = cases[i];
		char text[100];

		port_spec(text, sizeof(text), c[0], c[1], c[2], c[3], c[4]);
		is_str(text, c[5], "a port as ark-net has it");
	}
}

/* ---- archives ------------------------------------------------------------ */

static const char *read_back(const void *data, size_t len, int *frames)
{
	int in = memfd_create("in", MFD_CLOEXEC);

	*frames = memfd_create("out", MFD_CLOEXEC);
	if (in < 0 || write_full(in, data, len) < 0 ||
	    lseek(in, 0, SEEK_SET) < 0)
		die(EX_OSERR, "no memory");
	return tar_read(in, len, *frames);
}

/* The path of the last entry. */
static void last_entry(int fd, char path[TREE_PATH], uint32_t *mode,
		       uint64_t *size)
{
	static struct frame f;

	lseek(fd, 0, SEEK_SET);
	while (frame_recv(fd, &f) == 1) {
		if (f.type != FRAME_ENTRY)
			continue;
		*mode = get_u32(f.data);
		*size = get_u64(f.data + 4);
		snprintf(path, TREE_PATH, "%.4000s",
			 (char *)f.data + ENTRY_HEAD);
	}
}

static void test_tar(void)
{
	static char archive[TAR_HEAD_MAX + 4 * TAR_BLOCK];
	char name[300], path[TREE_PATH] = "";
	uint64_t size = 0;
	uint32_t mode = 0;
	size_t len;
	int frames;

	memset(name, 'n', sizeof(name));
	name[100] = '/';
	name[sizeof(name) - 1] = '\0';
	len = tar_head(archive, name, S_IFREG | 0640, 600, 1000000000, "");
	is_num((long long)(len % TAR_BLOCK), 0, "heads are whole blocks");
	len += 600 + tar_padding(600) + 2 * TAR_BLOCK;
	ok(!read_back(archive, len, &frames), "a long name is read back");
	last_entry(frames, path, &mode, &size);
	is_str(path, name, "as it was");
	is_num((long long)size, 600, "with its size");
	is_num(mode, S_IFREG | 0640, "and its mode");
	is_str(read_back(archive, len - 2 * TAR_BLOCK, &frames),
	       "the archive ends early", "without an end it is refused");
	archive[len - 3 * TAR_BLOCK] = 'x';
	archive[3] ^= 1;
	is_str(read_back(archive, len, &frames), "not a tar archive",
	       "and with a wrong sum");
}

static void test_bad_tar(void)
{
	static const char *const names[] = {"../x", "a/../../x", "/x", ".."};
	static char archive[TAR_HEAD_MAX + 2 * TAR_BLOCK];
	int frames;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len =
			tar_head(archive, names[i], S_IFREG | 0644, 0, 0, "");

		memset(archive + len, 0, 2 * TAR_BLOCK);
		ok(read_back(archive, len + 2 * TAR_BLOCK, &frames) != NULL,
		   "'%s' is refused", names[i]);
	}
}

int main(void)
{
	test_base64();
	test_utf8();
	test_decode();
	test_ports();
	test_tar();
	test_bad_tar();
	return done();
}
