#include "common/system/hostlist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS_MAX 1000000

struct search {
    const char *name;
    int place, count;
};

static void hostlist_compare(struct search *s, const char *host)
{
    if (s->place < 0 && strcmp(host, s->name) == 0)
        s->place = s->count;
    s->count++;
}

/* "1-3" or "07" at at, between a prefix and a suffix; the end of it, NULL: it is none. */
static const char *expand_range(struct search *s, const char *at, const char *prefix, int length,
                                const char *suffix, int suffix_length)
{
    char host[512], *end;
    int width = (int)strspn(at, "0123456789");
    long first = strtol(at, &end, 10), last = first;

    if (width == 0 || width > 9)
        return NULL;
    if (*end == '-') {
        const char *second = end + 1;
        last = strtol(second, &end, 10);
        if (end == second || last < first || last - first > HOSTS_MAX)
            return NULL;
    }
    if (*at != '0')
        width = 1;
    for (long n = first; n <= last && s->count <= HOSTS_MAX; n++) {
        snprintf(host, sizeof host, "%.*s%0*ld%.*s", length, prefix, width, n, suffix_length,
                 suffix);
        hostlist_compare(s, host);
    }
    return end;
}

/* One name, with or without a range; the end of it, NULL: it is none. */
static const char *hostlist_expand(struct search *s, const char *at)
{
    int length = (int)strcspn(at, ",[");
    char host[512];

    if (length > 200 || (length == 0 && at[0] != '['))
        return NULL;
    if (at[length] != '[') {
        snprintf(host, sizeof host, "%.*s", length, at);
        hostlist_compare(s, host);
        return at + length;
    }
    const char *close = strchr(at, ']'), *range = at + length + 1;
    if (!close)
        return NULL;
    int suffix = (int)strcspn(close + 1, ",");
    if (suffix > 200 || memchr(close + 1, '[', (size_t)suffix))
        return NULL;
    while (range && range < close) {
        range = expand_range(s, range, at, length, close + 1, suffix);
        if (range && *range == ',')
            range++;
        else if (range != close)
            return NULL;
    }
    return range ? close + 1 + suffix : NULL;
}

int hostlist_place(const char *list, const char *name, int *count)
{
    struct search s = {name, -1, 0};

    *count = 0;
    while (list && *list) {
        list = hostlist_expand(&s, list);
        if (!list)
            return -1;
        if (*list == ',')
            list++;
    }
    *count = s.count;
    return s.place;
}
