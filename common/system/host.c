#include "common/system/host.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/xalloc.h"

bool host_parse(const char *text, struct host *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strspn(text, letters);
    char *end;

    *host = (struct host){0};
    if (length == 0 || length >= sizeof host->name || text[0] == '-')
        return false;
    memcpy(host->name, text, length);
    if (text[length] == '\0')
        return true;
    if (text[length] != ':' || text[length + 1] < '1' || text[length + 1] > '9')
        return false;
    host->slots = strtoll(text + length + 1, &end, 10);
    return *end == '\0' && host->slots <= HOST_SLOTS_MAX;
}

static bool host_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)a)->sin_addr,
                      &((const struct sockaddr_in *)b)->sin_addr, sizeof(struct in_addr)) == 0;
    return a->sa_family == AF_INET6 &&
           memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool host_is_own_name(const char *name)
{
    char own[HOST_NAME_BYTES] = "";

    gethostname(own, sizeof own - 1);
    if (strcmp(name, "localhost") == 0 || strcmp(name, own) == 0)
        return true;
    size_t short_name = strcspn(own, "."), given = strcspn(name, ".");
    bool is_address = name[strspn(name, "0123456789.")] == '\0';
    return !is_address && short_name == given && strncmp(name, own, given) == 0 &&
           (!name[given] || !own[given]);
}

bool host_is_here(const char *name, bool ask)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = ask ? 0 : AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    struct ifaddrs *interfaces = NULL;
    bool here = host_is_own_name(name);

    if (here || getaddrinfo(name, NULL, &hints, &found))
        return here;
    if (getifaddrs(&interfaces))
        interfaces = NULL;
    for (const struct addrinfo *a = found; a && !here; a = a->ai_next)
        for (const struct ifaddrs *i = interfaces; i && !here; i = i->ifa_next)
            here = i->ifa_addr && host_same_address(a->ai_addr, i->ifa_addr);
    freeaddrinfo(found);
    if (interfaces)
        freeifaddrs(interfaces);
    return here;
}

static bool host_has_address_in(struct in_addr net, int bits)
{
    struct ifaddrs *interfaces = NULL;
    uint32_t mask = bits ? htonl(~UINT32_C(0) << (32 - bits)) : 0;
    bool found = false;

    if (getifaddrs(&interfaces))
        return false;
    for (const struct ifaddrs *i = interfaces; i && !found; i = i->ifa_next)
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET) {
            const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)i->ifa_addr;
            found = (in->sin_addr.s_addr & mask) == (net.s_addr & mask);
        }
    freeifaddrs(interfaces);
    return found;
}

static bool host_parse_subnet(const char *text, struct in_addr *net, int *bits)
{
    char address[32];
    int end = 0;

    return sscanf(text, "%31[0-9.]/%2d%n", address, bits, &end) == 2 && !text[end] && *bits >= 0 &&
           *bits <= 32 && inet_pton(AF_INET, address, net) == 1;
}

bool host_is_subnet(const char *text)
{
    struct in_addr net;
    int bits;

    return text[strspn(text, "0123456789./")] == '\0' && host_parse_subnet(text, &net, &bits);
}

bool host_has_interface(const char *interface)
{
    struct in_addr net;
    int bits;

    if (!strchr(interface, '/'))
        return if_nametoindex(interface) != 0;
    return host_parse_subnet(interface, &net, &bits) && host_has_address_in(net, bits);
}

/* Accepts nothing, or ":" and any port, as a tunnel may have changed it. */
static bool host_is_port(const char *text)
{
    size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;

    return *text == '\0' || (digits > 0 && digits <= 5 && text[1 + digits] == '\0');
}

bool host_is_loopback(const char *host)
{
    char name[64];
    struct in_addr v4;
    size_t length = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

    if (length >= sizeof name || length > strlen(host) || !host_is_port(host + length))
        return false;
    snprintf(name, sizeof name, "%.*s", (int)length, host);
    if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

int64_t host_memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && bytes > 0 ? (int64_t)pages * bytes : 0;
}

#define HOSTS_MAX  1000000
#define NAME_BYTES 512

struct expansion {
    const char *name;    /* host to find; NULL: produce entries of host.h */
    size_t place, count; /* place: position of the host, SIZE_MAX until it is found */
    size_t max;
    char **hosts, *wrong, host[NAME_BYTES];
};

#define REFUSE(x, ...) (snprintf((x)->wrong, HOST_LIST_WRONG_BYTES, __VA_ARGS__), false)

static bool host_list_name(struct expansion *x, size_t used, const char *rest);

static bool host_list_add(struct expansion *x)
{
    struct host host;

    if (!*x->host)
        return REFUSE(x, "a name of it is empty");
    if (x->count == x->max)
        return REFUSE(x, "it names more than %zu hosts", x->max);
    if (!x->name && !host_parse(x->host, &host))
        return false;
    if (x->hosts)
        x->hosts[x->count] = xstrdup(x->host);
    if (x->name && x->place == SIZE_MAX && strcmp(x->host, x->name) == 0)
        x->place = x->count;
    x->count++;
    return true;
}

/* Expands "1-3" or "07" after the first `used` bytes of the host name. */
static bool host_list_range(struct expansion *x, size_t used, const char *range, const char *rest)
{
    char first[10], last[10] = "";
    int end = 0;

    if (sscanf(range, "%9[0-9]%n-%9[0-9]%n", first, &end, last, &end) < 1 || range[end])
        return REFUSE(x,
                      "\"%s\" between brackets is not a number or range of at most 9 digits, for "
                      "example n[01-64,70]",
                      range);
    long from = strtol(first, NULL, 10), to = *last ? strtol(last, NULL, 10) : from;
    if (to < from)
        return REFUSE(x, "the range %s runs backwards", range);
    for (long n = from; n <= to; n++) {
        int width = *first == '0' ? (int)strlen(first) : 1;
        int digits = snprintf(x->host + used, NAME_BYTES - used, "%0*ld", width, n);
        if (!host_list_name(x, used + (size_t)digits, rest))
            return false;
    }
    return true;
}

static bool host_list_name(struct expansion *x, size_t used, const char *rest)
{
    size_t plain = strcspn(rest, "[");
    const char *close = strchr(rest + plain, ']');

    if (used + plain + sizeof "999999999" > NAME_BYTES)
        return REFUSE(x, "a name of it is too long");
    memcpy(x->host + used, rest, plain);
    x->host[used + plain] = '\0';
    if (!rest[plain])
        return host_list_add(x);
    if (!close)
        return REFUSE(x, "the bracket of \"%.40s\" is not closed", rest);
    for (const char *at = rest + plain; at < close;) {
        char range[24]; /* a longer one exceeds the limit of digits */
        size_t length = strcspn(++at, ",]");
        snprintf(range, sizeof range, "%.*s", (int)length, at);
        if (!host_list_range(x, used + plain, range, close + 1))
            return false;
        at += length;
    }
    return true;
}

static bool host_list_read(struct expansion *x, const char *list)
{
    bool right = true, inside = false;

    for (const char *from = list; right; from = list + 1) {
        for (list = from; *list && (inside || *list != ','); list++)
            inside = *list == '[' || (inside && *list != ']');
        char *name = xstrndup(from, (size_t)(list - from));
        right = host_list_name(x, 0, name);
        free(name);
        if (!*list)
            break;
    }
    return right;
}

size_t host_list_expand(const char *list, size_t max, char **hosts,
                        char wrong[HOST_LIST_WRONG_BYTES])
{
    struct expansion x = {.max = max, .hosts = hosts, .wrong = wrong};

    wrong[0] = '\0';
    return host_list_read(&x, list) ? x.count : 0;
}

int host_list_place(const char *list, const char *name, int *count)
{
    char wrong[HOST_LIST_WRONG_BYTES];
    struct expansion x = {.name = name, .place = SIZE_MAX, .max = HOSTS_MAX, .wrong = wrong};
    bool right = host_list_read(&x, list);

    *count = right ? (int)x.count : 0;
    return right && x.place != SIZE_MAX ? (int)x.place : -1;
}

char *host_cpuinfo(const char *name)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    size_t length = strlen(name), capacity = 0;
    char *line = NULL, *value = NULL;

    /* getline, because the line of flags has 2,000 bytes on newer processors. */
    while (file && !value && getline(&line, &capacity, file) > 0) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, length) != 0 || !isspace((unsigned char)line[length]))
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        value = strndup(colon, strcspn(colon, "\n"));
    }
    free(line);
    if (file)
        fclose(file);
    return value;
}
