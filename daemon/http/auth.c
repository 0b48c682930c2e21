#include "daemon/http/auth.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/http/token.h"

#define ANYONE  RIGHT(ROLE_ANYONE)
#define READS   (ANYONE | RIGHT(ROLE_READ))
#define SUBMITS (READS | RIGHT(ROLE_SUBMIT))
#define NODES   (ANYONE | RIGHT(ROLE_NODE))
#define ADMINS  (SUBMITS | NODES | RIGHT(ROLE_ADMIN))

const char *auth_role_name(enum route_role role)
{
    static const char *const names[] = {"anyone", "read", "submit", "node", "admin"};
    return names[role];
}

/* ---------------------------------------------------------------- over the unix socket */

static bool in_group(int socket, gid_t primary, gid_t group)
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

static void name_user(uid_t uid, char *who)
{
    struct passwd user, *found = NULL;
    char text[4096];

    if (getpwuid_r(uid, &user, text, sizeof text, &found) == 0 && found)
        snprintf(who, REQUEST_WHO_BYTES, "%s", found->pw_name);
    else
        snprintf(who, REQUEST_WHO_BYTES, "user %lu", (unsigned long)uid);
}

static unsigned peer_rights(const struct http_app *app, int socket, char *who)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;

    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes))
        return ANYONE;
    name_user(peer.uid, who);
    if (peer.uid == 0 || peer.uid == geteuid())
        return ADMINS;
    if (app->socket_gid != (gid_t)-1 && in_group(socket, peer.gid, app->socket_gid))
        return SUBMITS;
    return ANYONE;
}

/* ---------------------------------------------------------------- tokens */

static int token_rights(const struct http_app *app, const char *authorization, int64_t per_second,
                        struct caller *caller, struct error *e)
{
    static const unsigned of[TOKEN_ROLES] = {[TOKEN_READ] = READS,
                                             [TOKEN_SUBMIT] = SUBMITS,
                                             [TOKEN_NODE] = NODES,
                                             [TOKEN_ADMIN] = ADMINS};
    struct token_owner owner;

    if (strncasecmp(authorization, "Bearer ", 7) != 0)
        return error_set(e, ERR_NO_TOKEN,
                         "the header Authorization must be \"Bearer TOKEN\", with a token that "
                         "trainctl token create made");
    const char *text = authorization + 7;
    text += strspn(text, " ");
    if (tokens_check(app->tokens, text, clock_now(), per_second, &owner, e))
        return -(int)e->code;
    caller->rights = of[owner.role];
    caller->token = owner.id;
    snprintf(caller->who, sizeof caller->who, "%s", owner.name);
    return 0;
}

int auth_caller(const struct http_app *app, const struct config *config, int socket,
                const char *authorization, bool counts, struct caller *caller, struct error *e)
{
    *caller = (struct caller){.rights = ANYONE};
    if (authorization)
        return token_rights(app, authorization, counts ? config->requests_per_second : 0, caller,
                            e);
    if (socket >= 0)
        caller->rights = peer_rights(app, socket, caller->who);
    else if (!config->require_token)
        caller->rights = ADMINS & ~RIGHT(ROLE_ADMIN);
    return 0;
}

int auth_check(const struct route *route, unsigned rights, struct error *e)
{
    if (rights & RIGHT(route->role))
        return 0;
    if (rights == ANYONE)
        return error_set(
            e, ERR_NO_TOKEN,
            "%s %s needs a token with the role %s, in the header Authorization: Bearer "
            "TOKEN; trainctl token create makes one",
            route->method, route->pattern, auth_role_name(route->role));
    return error_set(e, ERR_NOT_ALLOWED,
                     "%s %s needs the role %s%s, and this caller does not have it", route->method,
                     route->pattern, auth_role_name(route->role),
                     route->role == ROLE_ADMIN
                         ? " (a token of it, or the unix socket as root or as the daemon's user)"
                         : "");
}
