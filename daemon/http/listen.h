#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/error.h"

/* Listens on "HOST:PORT", "[::1]:PORT" or "localhost:0". url is set to "http://HOST:PORT" with the
 * actual port, or "https://..." with tls. ERR_USAGE: no such address, or it is not on the loopback
 * and `everywhere` is false. ERR_CONFLICT: in use. */
struct listen_rules {
    bool tls;
    bool everywhere; /* allow addresses other than loopback */
};
int listen_tcp(const char *address, const struct listen_rules *rules, int *fd, char *url,
               size_t url_bytes, struct error *e);

int listen_check(const char *address, const struct listen_rules *rules, struct error *e);

/* Listens on a unix socket of mode 0600, or 0660 for members of a group ((gid_t)-1: none). A stale
 * socket is replaced. ERR_CONFLICT: it is in use, or path is something else. */
int listen_unix(const char *path, gid_t group, int *fd, struct error *e);

/* Sockets passed by systemd (sd_listen_fds(3), traind.socket); -1: none of this kind. */
struct listen_inherited {
    int tcp, local;
};
/* Takes the sockets over, so that child processes do not inherit them. url as for listen_tcp.
 * ERR_USAGE: two of one kind, not a listening stream socket, or an address the rules forbid; all
 * are closed in that case. */
int listen_inherit(const struct listen_rules *rules, struct listen_inherited *in, char *url,
                   size_t url_bytes, struct error *e);
