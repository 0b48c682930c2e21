#include "daemon/http/access/guard.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Nothing, or ":" and a port; any, as a tunnel may change it. */
static bool is_port(const char *text)
{
    size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;

    return *text == '\0' || (digits > 0 && digits <= 5 && text[1 + digits] == '\0');
}

/* "HOST", "HOST:PORT", "[::1]:PORT". */
static bool is_loopback_name(const char *host)
{
    char name[64];
    struct in_addr v4;
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (length >= sizeof name || length > strlen(host) || !is_port(host + length))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, host);
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

static bool same_site(const char *origin, const char *host)
{
    size_t scheme = strncasecmp(origin, "http://", 7) == 0    ? 7
                    : strncasecmp(origin, "https://", 8) == 0 ? 8
                                                              : 0;

    return host && scheme && strcasecmp(origin + scheme, host) == 0;
}

int guard_check(bool any_host, const char *host, const char *origin, const char *fetch_site,
                bool changes, struct error *e)
{
    if (!any_host && host && !is_loopback_name(host))
        return error_set(e, ERR_NOT_ALLOWED,
                         "the Host header must name this machine's loopback, as localhost or "
                         "127.0.0.1, not \"%.100s\"",
                         host);
    if (!changes)
        return 0;
    if ((origin && !same_site(origin, host)) ||
        (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0))
        return error_set(e, ERR_NOT_ALLOWED,
                         "requests from the pages of other web sites are not taken");
    return 0;
}
