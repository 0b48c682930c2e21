#include "common/notify/target.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DIGITS  "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool target_fail(const char **why, const char *words)
{
    *why = words;
    return false;
}

static bool target_copy_host(const char *text, size_t length, struct notice_target *t)
{
    if (length == 0 || length >= sizeof t->host)
        return false;
    for (size_t i = 0; i < length; i++)
        t->host[i] = (char)tolower((unsigned char)text[i]);
    t->host[length] = '\0';
    return true;
}

static bool target_name_right(const char *host)
{
    return strspn(host, LETTERS DIGITS ".-_") == strlen(host) && *host != '-' && *host != '.';
}

static bool target_read_mail(const char *address, struct notice_target *t, const char **why)
{
    size_t local = strspn(address, LETTERS DIGITS "._+-");

    t->kind = NOTICE_TARGET_MAIL;
    t->port = 0;
    if (local == 0 || *address == '-' || address[local] != '@' ||
        !target_copy_host(address + local + 1, strlen(address + local + 1), t) ||
        !target_name_right(t->host))
        return target_fail(why, "is not an address such as mailto:eve@example.org, of letters, "
                                "digits and ._+-");
    return true;
}

/* Reads "[::1]" or "host". Returns the number of bytes read, 0 if malformed. */
static size_t target_read_host(const char *authority, size_t length, struct notice_target *t)
{
    struct in6_addr address;

    if (*authority != '[') {
        const char *colon = memchr(authority, ':', length);
        size_t bytes = colon ? (size_t)(colon - authority) : length;
        return target_copy_host(authority, bytes, t) && target_name_right(t->host) ? bytes : 0;
    }
    const char *end = memchr(authority, ']', length);
    if (!end || !target_copy_host(authority + 1, (size_t)(end - authority) - 1, t) ||
        inet_pton(AF_INET6, t->host, &address) != 1)
        return 0;
    return (size_t)(end - authority) + 1;
}

static bool target_read_port(const char *text, size_t length, int *port)
{
    if (length < 2 || length > 6 || *text != ':' || strspn(text + 1, DIGITS) < length - 1)
        return false;
    *port = atoi(text + 1);
    return *port > 0 && *port < 65536;
}

static bool target_read_url(const char *authority, struct notice_target *t, const char **why)
{
    size_t length = strcspn(authority, "/?");

    for (const char *c = authority; *c; c++)
        if (*c <= ' ' || *c > '~' || strchr("\"<>\\^`{|}#", *c))
            return target_fail(why, "has a character that no URL has: write it as %XX; a fragment "
                                    "(#...) is never sent");
    if (memchr(authority, '@', length))
        return target_fail(
            why, "contains a user name or password, which everyone who may read the job would see");
    size_t host = target_read_host(authority, length, t);
    if (!host || (host < length && !target_read_port(authority + host, length - host, &t->port)))
        return target_fail(why, "has no host or no valid port after \"//\"");
    return true;
}

bool notice_target_parse(const char *text, struct notice_target *target, const char **why)
{
    *target = (struct notice_target){.port = 443};
    if (strlen(text) >= NOTICE_TARGET_BYTES)
        return target_fail(why, "is longer than 1024 bytes");
    if (strncasecmp(text, "mailto:", 7) == 0)
        return target_read_mail(text + 7, target, why);
    if (strncasecmp(text, "https://", 8) == 0)
        return target_read_url(text + 8, target, why);
    if (strncasecmp(text, "http://", 7) != 0)
        return target_fail(why, "is not https://HOST/..., http://HOST/... or mailto:NAME@HOST");
    target->kind = NOTICE_TARGET_HTTP;
    target->port = 80;
    return target_read_url(text + 7, target, why);
}
