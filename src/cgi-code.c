/*
 * cgi-code.c - bytes in other clothes: base64 (RFC 4648) and UTF-8.
 */
#include "cgi.h"

static int digit_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters at a time; the last group may end in one or two '=', over
 * bits that are zero, so that there is one text for any bytes. */
const char *base64_decode(char *text, size_t *len)
{
	size_t n = *len, pad = 0, to = 0;

	while (pad < 2 && n > 0 && text[n - 1] == '=') {
		pad++;
		n--;
	}
	if (*len % 4)
		return "it is not base64";
	for (size_t i = 0; i < *len; i += 4) {
		uint32_t bits = 0;

		for (size_t k = i; k < i + 4; k++) {
			int digit = k < n ? digit_of(text[k]) : 0;

			if (digit < 0)
				return "it is not base64";
			bits = bits << 6 | (uint32_t)digit;
		}
		text[to++] = (char)(bits >> 16);
		text[to++] = (char)(bits >> 8);
		text[to++] = (char)bits;
	}
	for (size_t i = 0; i < pad; i++)
		if (text[--to])
			return "it is not base64";
	*len = to;
	return NULL;
}

char *base64_encode(const char *data, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	char *text = malloc((len + 2) / 3 * 4 + 1);
	char *to = text;

	for (size_t i = 0; text && i < len; i += 3) {
		size_t have = len - i < 3 ? len - i : 3;
		uint32_t bits = 0;

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 |
			       (k < have ? (unsigned char)data[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			*to++ = k <= have ? digits[bits >> (18 - 6 * k) & 63]
					  : '=';
	}
	if (text)
		*to = '\0';
	return text;
}

/* Length of the character that is here, or 0 when it is none. */
static size_t character(const unsigned char *p, size_t left)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {
		{0x80, 0x00, 0},
		{0xe0, 0xc0, 0x80},
		{0xf0, 0xe0, 0x800},
		{0xf8, 0xf0, 0x10000},
	};

	for (size_t n = 1; n <= ARRAY_LEN(forms); n++) {
		uint32_t c = (unsigned char)(*p & ~forms[n - 1].mask);

		if ((*p & forms[n - 1].mask) != forms[n - 1].lead)
			continue;
		if (n > left)
			return 0;
		for (size_t i = 1; i < n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return 0;
			c = c << 6 | (p[i] & 0x3f);
		}
		if (c < forms[n - 1].least || c > 0x10ffff || c >> 11 == 27)
			return 0;
		return n;
	}
	return 0;
}

bool utf8_ok(const char *text, size_t len)
{
	return utf8_span(text, len) == len;
}

size_t utf8_span(const char *text, size_t len)
{
	size_t at = 0, n;

	while (at < len) {
		n = character((const unsigned char *)text + at, len - at);
		if (n == 0)
			break;
		at += n;
	}
	return at;
}

json_t *json_guest(const char *data, size_t len)
{
	static const char instead[] = "\xef\xbf\xbd";
	AUTO_FREE char *text = malloc(len * 3 + 1);
	size_t to = 0;

	if (!text)
		return NULL;
	while (len > 0) {
		size_t good = utf8_span(data, len);

		memcpy(text + to, data, good);
		to += good;
		data += good;
		len -= good;
		if (len == 0)
			break;
		for (size_t i = 0; i < sizeof(instead) - 1; i++)
			text[to++] = instead[i];
		data++;
		len--;
	}
	return json_stringn(text, to);
}
