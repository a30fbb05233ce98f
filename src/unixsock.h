/*
 * unixsock.h - unix sockets named through the descriptor of their directory,
 * so that a path of any length works.
 */
#ifndef ARK_UNIXSOCK_H
#define ARK_UNIXSOCK_H

/* A listening socket dir/name of mode 0600 and that type (SOCK_STREAM ...);
 * one that is there is replaced.  Owned by the caller; -1 and errno. */
int unix_listen(int dir, const char *name, int type);
int unix_connect(int dir, const char *name, int type);

/* Connect to a socket that was opened with O_PATH: to that very one, whatever
 * has its name meanwhile. */
int unix_connect_node(int node, int type);

#endif
