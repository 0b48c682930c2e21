#include "daemon/http/access/auth.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/system/host.h"
#include "daemon/http/access/token.h"
#include "daemon/store/sweep.h"

static bool auth_in_group(int socket, gid_t primary, gid_t group)
{
    gid_t groups[1024];
    socklen_t bytes = sizeof groups;

    if (primary == group)
        return true;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &bytes))
        return false;
    for (size_t i = 0; i < bytes / sizeof groups[0]; i++)
        if (groups[i] == group)
            return true;
    return false;
}

static unsigned auth_peer_rights(const struct http_app *app, int socket, char *who)
{
    struct passwd user, *found = NULL;
    char text[4096];
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
        return role_at(ROLE_ANYONE)->rights;
    if (getpwuid_r(peer.uid, &user, text, sizeof text, &found) == 0 && found)
        snprintf(who, REQUEST_WHO_BYTES, "user:%.*s", REQUEST_WHO_BYTES - 6, found->pw_name);
    else
        snprintf(who, REQUEST_WHO_BYTES, "uid:%lu", (unsigned long)peer.uid);
    if (peer.uid == 0 || peer.uid == geteuid())
        return role_at(ROLE_ADMIN)->rights;
    if (app->socket_gid != (gid_t)-1 && auth_in_group(socket, peer.gid, app->socket_gid))
        return role_at(ROLE_SUBMIT)->rights;
    return role_at(ROLE_ANYONE)->rights;
}

int auth_caller(const struct http_app *app, const struct config *config, int socket,
                const char *authorization, bool counts, struct caller *caller, struct error *e)
{
    struct token_owner owner;

    *caller = (struct caller){.rights = role_at(ROLE_ANYONE)->rights};
    if (!authorization && socket >= 0)
        caller->rights = auth_peer_rights(app, socket, caller->who);
    else if (!authorization && !config->require_token)
        caller->rights = role_at(ROLE_SUBMIT)->rights;
    if (!authorization)
        return 0;
    if (strncasecmp(authorization, "Bearer ", 7) != 0)
        return error_set(
            e, ERR_NO_TOKEN,
            "the header Authorization must be \"Bearer TOKEN\", with a token created by "
            "trainctl token create");
    const char *text = authorization + 7;
    if (tokens_check(app->tokens, text + strspn(text, " "), clock_now(),
                     counts ? config->requests_per_second : 0, &owner, e))
        return -(int)e->code;
    caller->rights = role_at(owner.role)->rights;
    caller->token = owner.id;
    snprintf(caller->who, sizeof caller->who, "token:%s", owner.name);
    return 0;
}

int auth_check(const struct route *route, unsigned rights, struct error *e)
{
    if (rights & RIGHT(route->role))
        return 0;
    const char *role = role_at(route->role)->name;
    if (rights == role_at(ROLE_ANYONE)->rights)
        return error_set(
            e, ERR_NO_TOKEN,
            "%s %s needs a token with the role %s, in the header Authorization: Bearer "
            "TOKEN; by the daemon's unix socket, which needs none, trainctl --server unix:PATH "
            "token create NAME makes one",
            route->method, route->pattern, role);
    return error_set(e, ERR_NOT_ALLOWED,
                     "%s %s requires the role %s%s, which this caller does not have", route->method,
                     route->pattern, role,
                     route->role == ROLE_ADMIN
                         ? " (a token of it, or the unix socket as root or as the daemon's user)"
                         : "");
}

const char *request_by(const struct request *q)
{
    return *q->who ? q->who : NULL;
}

static int auth_check_owner(const struct request *q, const char *owner, const char *what,
                            struct error *e)
{
    if (!owner || !*owner || q->rights & RIGHT(ROLE_OPERATOR) || strcmp(owner, q->who) == 0)
        return 0;
    return error_set(e, ERR_NOT_ALLOWED,
                     "%s belongs to %s, but you are %s: changing it requires the role %s", what,
                     owner, *q->who ? q->who : "not known here", role_at(ROLE_OPERATOR)->name);
}

static int auth_sweep_owner(const struct request *q, int64_t id, char **owner, struct error *e)
{
    struct store_sweep sweep;

    *owner = NULL;
    if (store_sweep_get(q->app->store, id, &sweep, e))
        return -(int)e->code;
    *owner = sweep.submitted_by;
    sweep.submitted_by = NULL;
    store_sweep_clear(&sweep);
    return 0;
}

int auth_check_sweep(const struct request *q, int64_t id, struct error *e)
{
    char what[32], *owner;
    int status = auth_sweep_owner(q, id, &owner, e);

    snprintf(what, sizeof what, "sweep %lld", (long long)id);
    if (!status)
        status = auth_check_owner(q, owner, what, e);
    free(owner);
    return status;
}

int auth_check_job(const struct request *q, int64_t id, struct error *e)
{
    char what[32], *owner;
    struct store_job job;
    long long sweep;
    int used = 0, status = store_job_get(q->app->store, id, &job, e);

    if (status)
        return status;
    owner = job.submitted_by;
    job.submitted_by = NULL;
    store_job_clear(&job);
    /* Users and tokens have a prefix, so this can only be a sweep. */
    if (owner && sscanf(owner, "sweep %lld%n", &sweep, &used) == 1 && !owner[used]) {
        free(owner);
        status = auth_sweep_owner(q, sweep, &owner, e);
    }
    snprintf(what, sizeof what, "job %lld", (long long)id);
    if (!status)
        status = auth_check_owner(q, owner, what, e);
    free(owner);
    return status;
}

static bool auth_same_site(const char *origin, const char *host)
{
    size_t scheme = strncasecmp(origin, "http://", 7) == 0    ? 7
                    : strncasecmp(origin, "https://", 8) == 0 ? 8
                                                              : 0;

    return host && scheme && strcasecmp(origin + scheme, host) == 0;
}

int csrf_check(bool any_host, const char *host, const char *origin, const char *fetch_site,
               bool changes, struct error *e)
{
    if (!any_host && host && !host_is_loopback(host))
        return error_set(e, ERR_NOT_ALLOWED,
                         "the Host header must name this machine's loopback, such as localhost or "
                         "127.0.0.1, not \"%.100s\"",
                         host);
    if (!changes)
        return 0;
    if ((origin && !auth_same_site(origin, host)) ||
        (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0))
        return error_set(e, ERR_NOT_ALLOWED, "requests from pages of other web sites are rejected");
    return 0;
}

void audit_request(const struct request *q, enum store_audit_kind action, int64_t target,
                   const char *detail)
{
    struct store_audit line = {action, target, request_by(q), detail, clock_now()};

    store_audit_add(q->app->store, &line);
}
