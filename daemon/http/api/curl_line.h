/* A route's first example as a line of curl that works when it is pasted into a shell. */
#pragma once

#include <jansson.h>

#include "daemon/http/routes.h"

/* How the daemon is reached by who asks. */
struct curl_server {
    const char *socket; /* path of the unix socket; NULL: over TCP */
    const char *scheme, *host;
    bool token; /* requests need one: $TRAINCTL_TOKEN */
};

/* doc: what schema/api says of the route, NULL: nothing. The caller frees it; NULL: no memory. */
char *curl_line(const struct route *route, const json_t *doc, const struct curl_server *server);
