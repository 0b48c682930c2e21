/* The sockets the daemon listens on. */
#ifndef TRAIND_DAEMON_HTTP_LISTEN_H
#define TRAIND_DAEMON_HTTP_LISTEN_H

#include <stddef.h>

#include "common/error.h"

/* "HOST:PORT", "[::1]:PORT" or "localhost:0" to a listening socket; url becomes "http://HOST:PORT"
 * with the port really taken. ERR_USAGE: not an address. ERR_UNSUPPORTED: not of this machine's
 * loopback. ERR_CONFLICT: in use. */
int listen_tcp(const char *address, int *fd, char *url, size_t url_bytes, struct error *e);

/* A unix socket with mode 0600. A socket nobody listens on any more is replaced; ERR_CONFLICT where
 * somebody does, or where path is something else. */
int listen_unix(const char *path, int *fd, struct error *e);

#endif
