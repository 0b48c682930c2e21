#include "common/system/hostlist.h"

#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/xalloc.h"
#include "common/system/host.h"

#define HOSTS_MAX  1000000
#define NAME_BYTES 512

struct expansion {
    const char *name;    /* to be found; NULL: hosts are entries of host.h */
    size_t place, count; /* place: SIZE_MAX where it was not found */
    size_t most;
    char **hosts, *wrong, host[NAME_BYTES];
};

#define REFUSE(x, ...) (snprintf((x)->wrong, HOSTLIST_WRONG_BYTES, __VA_ARGS__), false)

static bool hostlist_name(struct expansion *x, size_t used, const char *rest);

static bool hostlist_add(struct expansion *x)
{
    struct host host;

    if (!*x->host)
        return REFUSE(x, "a name of it is empty");
    if (x->count == x->most)
        return REFUSE(x, "it names more than %zu hosts", x->most);
    if (!x->name && !host_parse(x->host, &host))
        return false;
    if (x->hosts)
        x->hosts[x->count] = xstrdup(x->host);
    if (x->name && x->place == SIZE_MAX && strcmp(x->host, x->name) == 0)
        x->place = x->count;
    x->count++;
    return true;
}

/* "1-3" or "07": each of its numbers behind the `used` bytes of the host, and what follows. */
static bool hostlist_range(struct expansion *x, size_t used, const char *range, const char *rest)
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
        if (!hostlist_name(x, used + (size_t)digits, rest))
            return false;
    }
    return true;
}

/* What is left of one name, behind the `used` bytes of the host. */
static bool hostlist_name(struct expansion *x, size_t used, const char *rest)
{
    size_t plain = strcspn(rest, "[");
    const char *close = strchr(rest + plain, ']');

    if (used + plain + sizeof "999999999" > NAME_BYTES)
        return REFUSE(x, "a name of it is too long");
    memcpy(x->host + used, rest, plain);
    x->host[used + plain] = '\0';
    if (!rest[plain])
        return hostlist_add(x);
    if (!close)
        return REFUSE(x, "the bracket of \"%.40s\" is not closed", rest);
    for (const char *at = rest + plain; at < close;) {
        char range[24]; /* a longer one has more digits than it may */
        size_t length = strcspn(++at, ",]");
        snprintf(range, sizeof range, "%.*s", (int)length, at);
        if (!hostlist_range(x, used + plain, range, close + 1))
            return false;
        at += length;
    }
    return true;
}

static bool hostlist_read(struct expansion *x, const char *list)
{
    bool right = true, inside = false;

    for (const char *from = list; right; from = list + 1) {
        for (list = from; *list && (inside || *list != ','); list++)
            inside = *list == '[' || (inside && *list != ']');
        char *name = xstrndup(from, (size_t)(list - from));
        right = hostlist_name(x, 0, name);
        free(name);
        if (!*list)
            break;
    }
    return right;
}

size_t hostlist_expand(const char *list, size_t most, char **hosts,
                       char wrong[HOSTLIST_WRONG_BYTES])
{
    struct expansion x = {.most = most, .hosts = hosts, .wrong = wrong};

    wrong[0] = '\0';
    return hostlist_read(&x, list) ? x.count : 0;
}

int hostlist_place(const char *list, const char *name, int *count)
{
    char wrong[HOSTLIST_WRONG_BYTES];
    struct expansion x = {.name = name, .place = SIZE_MAX, .most = HOSTS_MAX, .wrong = wrong};
    bool right = hostlist_read(&x, list);

    *count = right ? (int)x.count : 0;
    return right && x.place != SIZE_MAX ? (int)x.place : -1;
}
