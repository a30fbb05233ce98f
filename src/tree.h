/*
 * tree.h - a file or a directory as frames, sent and received.  Compiled into
 * ark and the agent: `ark cp` into a guest is tree_send() here and tree_recv()
 * there, out of a guest the other way round.
 *
 * The stream:  ENTRY (DATA* END)? ... DONE, depth first, a directory before
 * what is in it.  The first ENTRY has the empty path "" (the thing itself);
 * the others have paths below it, without "", "." or ".." parts.
 *	regular file	DATA frames in rising order, then END; parts never sent
 *			are holes; `size` is exact (the receiver refuses more)
 *	symlink		one DATA with the target at offset 0, then END
 *	directory	nothing follows
 * Anything else (device, socket, FIFO) is not sent, counted and reported.
 */
#ifndef ARK_TREE_H
#define ARK_TREE_H

#include <stddef.h>

enum tree_flag {
	TREE_PARENTS = 1,  /* receiver: make missing parents of the target */
	TREE_INTO = 2,	   /* receiver: the target must be a directory */
	TREE_UNTRUSTED = 4 /* receiver: the sender is a guest, so set-uid,
			      set-gid and sticky bits are taken off */
};

/* What went wrong, for people: "cannot write 'a/b': No space left". */
struct tree_error {
	char text[512];
};

/* Send dir/name (a symlink given here is followed, below it not) down the
 * socket `fd`.  0, or -1 with the reason in *error.  When it fails in the
 * middle, FRAME_ABORT with the reason has been sent.  Files that could not be
 * read or are of no sendable type fail the whole: never a silent hole. */
int tree_send(int fd, int dir, const char *name, struct tree_error *error);

/* Receive into dir/target.  `base` is the sender's name of the thing: when
 * target is an existing directory it is made below it under that name (as
 * cp -r does), and without a base ("") the content lands in target itself.
 * Regular files appear whole or not at all (temporary name, then rename).
 * No link is followed below dir/target, whatever the stream says.
 * 0, or -1 with the reason in *error; temporary files are gone either way. */
int tree_recv(int fd, int dir, const char *target, const char *base,
	      unsigned flags, struct tree_error *error);

/* A path of the stream: relative, no empty, "." or ".." part, <= 4095 bytes.
 * Public for the tests. */
int tree_path_ok(const char *path);

#endif
