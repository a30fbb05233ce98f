/*
 * test-screen - what a terminal is sent for a text: lines cut to the window,
 * what was there before wiped, no character lost at its edges.
 */
#include "tap.h"

#include "screen.h"

int main(void)
{
	static const struct {
		const char *text;
		size_t rows, columns;
		const char *sent, *what;
	} rows[] = {
		{"", 2, 9, "\033[H\033[J", "nothing"},
		{"ab\nc\n", 3, 9, "\033[H\033[Kab\r\n\033[Kc\r\n\033[J",
		 "two lines and room"},
		{"ab\nc\n", 2, 9, "\033[H\033[Kab\r\n\033[Kc",
		 "the last line of the window, and no line feed there"},
		{"ab\nc\nd\n", 2, 9, "\033[H\033[Kab\r\n\033[Kc",
		 "more than the window has"},
		{"abc\n\nd\n", 3, 3, "\033[H\033[Kabc\r\n\033[K\r\n\033[Kd",
		 "a line as wide as the window stays whole"},
		{"abcd\ne\n", 2, 3, "\033[H\033[Kabc\r\n\033[Ke",
		 "a wider one is cut"},
		{"äöü€\n", 1, 3, "\033[H\033[Käöü", "at characters"},
		{"ab", 1, 1, "\033[H\033[Ka", "a window of one"},
		{"ab", 0, 0, "\033[H", "a window of none"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *sent = NULL;
		size_t len;
		FILE *out = open_memstream(&sent, &len);

		screen_print(out, rows[i].text, rows[i].rows, rows[i].columns);
		fclose(out);
		is_str(sent, rows[i].sent, rows[i].what);
	}
	return done();
}
