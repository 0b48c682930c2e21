#include "daemon/http/access/guard.h"

#include <string.h>
#include <strings.h>

#include "common/system/host.h"

static bool guard_same_site(const char *origin, const char *host)
{
    size_t scheme = strncasecmp(origin, "http://", 7) == 0    ? 7
                    : strncasecmp(origin, "https://", 8) == 0 ? 8
                                                              : 0;

    return host && scheme && strcasecmp(origin + scheme, host) == 0;
}

int guard_check(bool any_host, const char *host, const char *origin, const char *fetch_site,
                bool changes, struct error *e)
{
    if (!any_host && host && !host_is_loopback(host))
        return error_set(e, ERR_NOT_ALLOWED,
                         "the Host header must name this machine's loopback, as localhost or "
                         "127.0.0.1, not \"%.100s\"",
                         host);
    if (!changes)
        return 0;
    if ((origin && !guard_same_site(origin, host)) ||
        (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0))
        return error_set(e, ERR_NOT_ALLOWED,
                         "requests from the pages of other web sites are not taken");
    return 0;
}
