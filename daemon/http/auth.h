/*
 * Who sends a request, and may he? Over TCP a token says so (header "Authorization: Bearer ..."),
 * over the unix socket the kernel does (SO_PEERCRED). What a route needs stands in the table of
 * routes.
 */
#ifndef TRAIND_DAEMON_HTTP_AUTH_H
#define TRAIND_DAEMON_HTTP_AUTH_H

#include <stdbool.h>

#include "common/error.h"
#include "daemon/http/routes.h"

#define RIGHT(role) (1u << (role)) /* enum route_role */

/* Who asks. */
struct caller {
    unsigned rights;             /* RIGHT() bits */
    int64_t token;               /* the id of a token; 0: none */
    char who[REQUEST_WHO_BYTES]; /* the name of the token or of the socket's user; "": not known */
};

/*
 * What a request may do. socket: a connected unix socket, or -1 for TCP. A token,
 * where one is sent, decides alone; a wrong one is ERR_NO_TOKEN also where none is needed. Without:
 * over the unix socket root and the daemon's own user may do all, members of socket_group may
 * submit, others only what anyone may; over TCP all but administration, or only what anyone may
 * where require_token is set. counts: the request counts against the token's rate (ERR_TOO_MANY).
 */
int auth_caller(const struct http_app *app, const struct config *config, int socket,
                const char *authorization, bool counts, struct caller *caller, struct error *e);

/* 0, ERR_NO_TOKEN (nobody was named: name yourself) or ERR_NOT_ALLOWED (the role does not reach).
 */
int auth_check(const struct route *route, unsigned rights, struct error *e);

const char *auth_role_name(enum route_role role); /* "anyone", "read", ... */

#endif
