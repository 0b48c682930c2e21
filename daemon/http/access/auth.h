/* Authentication and authorisation of requests. Callers are identified by a token over TCP (header
 * "Authorization: Bearer ...") and by the kernel over the unix socket (SO_PEERCRED). The table of
 * routes lists the role that each route requires. */
#pragma once

#include <stdbool.h>

#include "common/error.h"
#include "daemon/http/routes.h"
#include "daemon/store/audit.h"

struct caller {
    unsigned rights;             /* RIGHT() bits */
    int64_t token;               /* token id; 0: none */
    char who[REQUEST_WHO_BYTES]; /* as in struct request */
};

/* Determines the caller's rights. socket: a connected unix socket, or -1 for TCP. If a token is
 * sent, only the token counts; an invalid one is ERR_NO_TOKEN even where none is needed. Without a
 * token: on the unix socket, root and the daemon's own user may do everything, members of
 * socket_group may submit, and others have the role anyone; over TCP the role is anyone, or submit
 * if require_token is no. counts: count the request towards the token's rate limit (ERR_TOO_MANY).
 */
int auth_caller(const struct http_app *app, const struct config *config, int socket,
                const char *authorization, bool counts, struct caller *caller, struct error *e);

/* Returns 0, ERR_NO_TOKEN (the caller is anonymous) or ERR_NOT_ALLOWED (the role is
 * insufficient). */
int auth_check(const struct route *route, unsigned rights, struct error *e);

/* Checks whether the caller may change a job or a sweep: its owner and operators may, and every
 * submitter if the owner is unknown. A user of the unix socket and a token of the same name are
 * different owners. A sweep's jobs belong to its owner. ERR_NOT_ALLOWED, ERR_NOT_FOUND. */
int auth_check_job(const struct request *q, int64_t id, struct error *e);
int auth_check_sweep(const struct request *q, int64_t id, struct error *e);

/* Returns the caller's name for the store and the log: q->who, or NULL if unknown. */
const char *request_by(const struct request *q);

/* Rejects requests that a browser sends on behalf of another web site. host, origin, fetch_site:
 * the headers Host, Origin and Sec-Fetch-Site; NULL: not sent. any_host: accept any Host, because
 * every request needs a token, which pages of other sites do not have. ERR_NOT_ALLOWED if Host does
 * not name the loopback (DNS rebinding: another site's name resolving to 127.0.0.1), or if a
 * request that changes something comes from another site's page. */
int csrf_check(bool any_host, const char *host, const char *origin, const char *fetch_site,
               bool changes, struct error *e);

/* Writes an audit log entry. Failures are only logged. */
void audit_request(const struct request *q, enum store_audit_kind action, int64_t target,
                   const char *detail);
