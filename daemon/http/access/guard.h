/* Requests that a browser sends for another site: refused. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* any_host: a token is needed for everything, which another site's page does not have, so that the
 * server may have any name. host, origin, fetch_site: values of the headers Host, Origin and
 * Sec-Fetch-Site, NULL: not sent. ERR_NOT_ALLOWED where Host is no name of this machine's loopback
 * (DNS rebinding: another site's name that was pointed at 127.0.0.1), or where a request that
 * changes something comes from another site's page. */
int guard_check(bool any_host, const char *host, const char *origin, const char *fetch_site,
                bool changes, struct error *e);
