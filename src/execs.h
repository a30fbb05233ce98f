/*
 * execs.h - what ark-exec.c (run a command) and execs.c (the words ls, logs,
 * attach, kill, wait) share.
 */
#ifndef ARK_EXECS_H
#define ARK_EXECS_H

#include "session.h"

/* Run the session on an open connection until it ends, and tell the user what
 * he has to know: the exit code, negative when a line was printed for it.  The
 * text of that line is in session->text as well. */
int exec_run(struct sandbox *s, struct session *session, bool transparent);

/* The text in quotes as JSON has it, on stdout. */
void json_text(FILE *out, const char *text);

/* A line of OP_LIST (proto.h). */
struct item {
	long long id, result, age, detached;
	bool running;
	const char *command; /* in the text that was parsed */
};

/* Cuts the text up; false when it is not such a line. */
bool item_parse(char *text, struct item *i);

/* `ark-exec ls ...` and the other words: does the first argument say so? */
bool execs_word(const char *word);

/* argv[0] is the word; the exit code, negative when told. */
int execs_main(int argc, char **argv);

#endif
