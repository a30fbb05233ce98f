/*
 * screen.h - a program that fills the terminal with text, anew and anew, and
 * gives it back as it was.
 */
#ifndef ARK_SCREEN_H
#define ARK_SCREEN_H

#include "ark.h"

/* Take the terminal that stdout is.  It is given back at exit(3), whatever
 * signal asks for the end.  0, or -1 and errno. */
int screen_open(void);
void screen_close(void);

/* Show the beginning of the lines, as far as the window reaches; `text` has no
 * control bytes but the ends of its lines. */
void screen_show(const char *text);

/* Wait until then, on the clock of now_ms(), and keep what is shown right: in
 * a window of another size, and after the program was stopped.  False when its
 * user wants no more (q); a signal that ends it, as by ^C, ends it here. */
bool screen_wait(uint64_t until);

/* ---- pure, for the tests ------------------------------------------------ */

/* What of the text is seen in such a window, as a terminal wants it that has
 * other text there. */
void screen_print(FILE *out, const char *text, size_t rows, size_t columns);

#endif
