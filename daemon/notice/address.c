#include "daemon/notice/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/notify/target.h"

/* An address or a network in IPv6 form; IPv4 is stored as ::ffff:a.b.c.d. */
struct network {
    unsigned char bytes[16];
    int bits;
};

#define MAPPED_BITS 96

static const char *const special[] = {
    /* IPv4. */
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    /* IPv6, inside 2000::/3, the only range assigned so far. */
    "2001::/23", "2001:db8::/32", "3fff::/20"};

static bool address_network_has(const struct network *n, const unsigned char bytes[16])
{
    int whole = n->bits / 8, rest = n->bits % 8;

    return memcmp(n->bytes, bytes, (size_t)whole) == 0 &&
           (rest == 0 || (n->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0);
}

static void address_network_map(const void *v4, unsigned char bytes[16])
{
    memset(bytes, 0, 10);
    bytes[10] = bytes[11] = 0xff;
    memcpy(bytes + 12, v4, 4);
}

static bool address_network_parse(const char *text, size_t length, struct network *n)
{
    char copy[INET6_ADDRSTRLEN + 8], *slash, *end = NULL;

    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    if ((slash = strchr(copy, '/')))
        *slash = '\0';
    struct in_addr v4;
    bool is_v4 = inet_pton(AF_INET, copy, &v4) == 1;
    if (is_v4)
        address_network_map(&v4, n->bytes);
    else if (inet_pton(AF_INET6, copy, n->bytes) != 1)
        return false;
    long max = is_v4 ? 32 : 128, bits = slash ? strtol(slash + 1, &end, 10) : max;
    if (slash && (end == slash + 1 || *end || slash[1] == '+' || slash[1] == '-'))
        return false;
    n->bits = (int)bits + (is_v4 ? MAPPED_BITS : 0);
    return bits >= 0 && bits <= max;
}

static bool address_bytes(const struct sockaddr *address, unsigned char bytes[16])
{
    if (address->sa_family == AF_INET)
        address_network_map(&((const struct sockaddr_in *)(const void *)address)->sin_addr, bytes);
    else if (address->sa_family == AF_INET6)
        memcpy(bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    else
        return false;
    return true;
}

static bool address_is_within(const char *network, const unsigned char bytes[16])
{
    struct network n;

    return address_network_parse(network, strlen(network), &n) && address_network_has(&n, bytes);
}

/* Extracts an embedded IPv4 address, in mapped form. */
static bool address_unwrap(unsigned char bytes[16])
{
    unsigned char inner[4];

    if (address_is_within("::ffff:0:0/96", bytes))
        return true;
    if (address_is_within("64:ff9b::/96", bytes)) /* NAT64, RFC 6052 */
        memcpy(inner, bytes + 12, 4);
    else if (address_is_within("2002::/16", bytes)) /* 6to4, RFC 3056 */
        memcpy(inner, bytes + 2, 4);
    else
        return false;
    address_network_map(inner, bytes);
    return true;
}

bool address_is_public(const struct sockaddr *address)
{
    unsigned char bytes[16];

    if (!address_bytes(address, bytes))
        return false;
    if (!address_unwrap(bytes) && !address_is_within("2000::/3", bytes))
        return false;
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (address_is_within(special[i], bytes))
            return false;
    return true;
}

#define BETWEEN " ,\t"

static const char *address_next_word(const char **at, size_t *length)
{
    *at += strspn(*at, BETWEEN);
    *length = strcspn(*at, BETWEEN);
    const char *word = *at;
    *at += *length;
    return *length ? word : NULL;
}

static size_t address_port_at(const char *word, size_t length, int *port)
{
    const char *colon = memchr(word, ':', length);

    *port = 0;
    if (!colon)
        return length;
    *port = atoi(colon + 1);
    return (size_t)(colon - word);
}

static bool address_name_right(const char *word, size_t length)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    int port;
    size_t name = address_port_at(word, length, &port),
           digits = strspn(word + name + (name < length), "0123456789");

    if (name < length && (digits != length - name - 1 || port < 1 || port > 65535))
        return false;
    return name > 0 && strspn(word, letters) >= name && *word != '-' &&
           strspn(word, "0123456789.") < name;
}

int address_list_check(const char *list, struct error *e)
{
    struct network n;
    size_t length;
    const char *word, *at = list;

    while (list && (word = address_next_word(&at, &length)))
        if (!address_network_parse(word, length, &n) && !address_name_right(word, length))
            return error_set(e, ERR_USAGE,
                             "notify_allow: \"%.*s\" is neither a network (10.0.0.0/8), an address "
                             "nor a host, with or without a port (chat.internal:8443)",
                             (int)length, word);
    return 0;
}

bool address_is_allowed(const char *list, const struct sockaddr *address)
{
    unsigned char bytes[16];
    struct network n;
    size_t length;
    const char *word, *at = list;

    if (!list || !address_bytes(address, bytes))
        return false;
    while ((word = address_next_word(&at, &length)))
        if (address_network_parse(word, length, &n) && address_network_has(&n, bytes))
            return true;
    return false;
}

bool address_host_is_allowed(const char *list, const char *host, int port)
{
    size_t length;
    const char *word, *at = list;
    struct network n;

    while (list && (word = address_next_word(&at, &length))) {
        int only;
        if (address_network_parse(word, length, &n))
            continue;
        size_t name = address_port_at(word, length, &only);
        if (strlen(host) == name && strncasecmp(word, host, name) == 0 && (!only || only == port))
            return true;
    }
    return false;
}

int address_domains_check(const char *list, struct error *e)
{
    size_t length;
    const char *word, *at = list;

    while (list && (word = address_next_word(&at, &length)))
        if (memchr(word, ':', length) || !address_name_right(word, length))
            return error_set(e, ERR_USAGE,
                             "notify_mail_domains: \"%.*s\" is not a domain such as example.org",
                             (int)length, word);
    return 0;
}

bool address_mail_is_allowed(const char *domains, const char *to)
{
    struct notice_target target;
    const char *why;

    return !domains || !notice_target_parse(to, &target, &why) ||
           target.kind != NOTICE_TARGET_MAIL || address_host_is_allowed(domains, target.host, 0);
}
