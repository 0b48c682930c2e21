/* The sockets the daemon listens on. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* "HOST:PORT", "[::1]:PORT" or "localhost:0" to a listening socket; url becomes "http://HOST:PORT"
 * with the port really taken, or "https://..." with tls. ERR_USAGE: not an address, or, where not
 * everywhere, not of this machine's loopback. ERR_CONFLICT: in use. */
struct listen_rules {
    bool tls;
    bool everywhere; /* addresses that other machines reach may be listened on */
};
int listen_tcp(const char *address, const struct listen_rules *rules, int *fd, char *url,
               size_t url_bytes, struct error *e);

/* The same without listening: is the address one, and allowed? */
int listen_check(const char *address, const struct listen_rules *rules, struct error *e);

/* A unix socket with mode 0600, or 0660 for members of a group ((gid_t)-1: none). A socket nobody
 * listens on any more is replaced; ERR_CONFLICT where somebody does, or where path is something
 * else. */
int listen_unix(const char *path, gid_t group, int *fd, struct error *e);

/* Sockets that systemd opened for us (sd_listen_fds(3), traind.socket); -1: none of that kind. */
struct listen_inherited {
    int tcp, local;
};
/* Takes them, once: jobs do not see them. url as of listen_tcp, if there is a tcp. ERR_USAGE: two
 * of a kind, no listening stream, or an address that the rules forbid; then all are closed. */
int listen_inherit(const struct listen_rules *rules, struct listen_inherited *in, char *url,
                   size_t url_bytes, struct error *e);
