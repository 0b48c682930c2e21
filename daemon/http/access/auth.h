/*
 * Who sends a request, and may he? Over TCP a token says so (header "Authorization: Bearer ..."),
 * over the unix socket the kernel does (SO_PEERCRED). What a route needs stands in the table of
 * routes.
 */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "daemon/http/routes.h"

/* Who asks. */
struct caller {
    unsigned rights;             /* RIGHT() bits */
    int64_t token;               /* the id of a token; 0: none */
    char who[REQUEST_WHO_BYTES]; /* as in struct request */
};

/*
 * What a request may do. socket: a connected unix socket, or -1 for TCP. A token,
 * where one is sent, decides alone; a wrong one is ERR_NO_TOKEN also where none is needed. Without:
 * over the unix socket root and the daemon's own user may do all, members of socket_group may
 * submit, others only what anyone may; over TCP only what anyone may, or submit where require_token
 * is no. counts: the request counts against the token's rate (ERR_TOO_MANY).
 */
int auth_caller(const struct http_app *app, const struct config *config, int socket,
                const char *authorization, bool counts, struct caller *caller, struct error *e);

/* 0, ERR_NO_TOKEN (nobody was named: name yourself) or ERR_NOT_ALLOWED (the role lacks it). */
int auth_check(const struct route *route, unsigned rights, struct error *e);

/* May this caller change a job or a sweep? Where nobody is known as its owner, all who may submit
 * may. A user of the unix socket and a token of the same name are two owners; a sweep's jobs are
 * its owner's. ERR_NOT_ALLOWED naming the owner and the role that is needed; ERR_NOT_FOUND. */
int auth_check_job(const struct request *q, int64_t id, struct error *e);
int auth_check_sweep(const struct request *q, int64_t id, struct error *e);

/* Who asks, in words for the store and the log: q->who, NULL where nobody is known. */
const char *request_by(const struct request *q);
