#include "common/dataset/shard_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/system/file.h"

/* NAME-00003-of-00008ENDING */
struct shard_number {
    const char *name; /* the whole */
    int name_bytes;   /* of NAME */
    int number, of;
    const char *ending;
};

/* False: other people's names promise nothing. */
static bool shard_parse(const char *path, struct shard_number *s)
{
    const char *dash;

    *s = (struct shard_number){.name = file_base_name(path)};
    for (const char *of = s->name; (of = strstr(of, "-of-")); of++) {
        for (dash = of; dash > s->name && isdigit((unsigned char)dash[-1]);)
            dash--;
        size_t digits = strspn(of + 4, "0123456789");
        if (dash == of || of - dash > 9 || digits == 0 || digits > 9 || dash == s->name ||
            dash[-1] != '-')
            continue;
        s->name_bytes = (int)(dash - 1 - s->name);
        s->number = (int)strtol(dash, NULL, 10);
        s->of = (int)strtol(of + 4, NULL, 10);
        s->ending = of + 4 + digits;
        return s->number <= s->of;
    }
    return false;
}

bool shard_name_is_numbered(const char *name)
{
    static const char *const endings[] = {"", ".tfrecord", ".tfrecords", ".tfrec"};
    struct shard_number s;

    for (size_t i = 0; shard_parse(name, &s) && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(s.ending, endings[i]) == 0)
            return true;
    return false;
}

bool shard_name_is_side_file(const char *name)
{
    static const char *const endings[] = {
        ".idx",     ".index", ".bak", ".old",  ".orig",   ".tmp",    ".temp", ".part",
        ".partial", ".swp",   ".swo", ".lock", ".log",    ".txt",    ".json", ".csv",
        ".tsv",     ".md",    ".md5", ".sha1", ".sha256", ".sha512", ".crc",  ".xxh",
    };
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i]) == 0)
            return true;
    return name[strlen(name) - 1] == '~' || strstr(name, " (");
}

int shard_name_number(const char *path, int other)
{
    struct shard_number s;

    return shard_parse(path, &s) ? s.number : other;
}

static int shard_names_by_number(const void *a, const void *b)
{
    const struct shard_number *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number ? -1 : 1) : strcmp(x->name, y->name);
}

/* Of one set, and none twice. */
static int shard_names_check_one_set(const char *folder, const struct shard_number *s, size_t n,
                                     struct error *e)
{
    for (size_t i = 1; i < n; i++) {
        if (s[i].of != s[0].of || s[i].name_bytes != s[0].name_bytes ||
            strncmp(s[i].name, s[0].name, (size_t)s[0].name_bytes) != 0)
            return error_set(
                e, ERR_INVALID,
                "%s contains shards of two data sets (%s and %s): use a separate folder for each",
                folder, s[0].name, s[i].name);
        if (s[i].number == s[i - 1].number)
            return error_set(e, ERR_INVALID,
                             "%s contains two shards with the same number, %s and %s: remove one",
                             folder, s[i - 1].name, s[i].name);
    }
    return 0;
}

/* Numbers count from 0, or with other people from 1. */
static int shard_names_check_none_missing(const char *folder, const struct shard_number *s,
                                          size_t n, struct dataset_part part, struct error *e)
{
    int first = s[0].number > 0 && s[n - 1].number == s[0].of, next = first, i = 0;

    if (s[0].number == 0 && s[n - 1].number == s[0].of)
        return error_set(e, ERR_INVALID, "unexpected shard in %s: %s, but numbers start at 0",
                         folder, s[n - 1].name);
    while (next % part.of != part.number)
        next++;
    for (; i < (int)n && (s[i].number % part.of != part.number || s[i].number == next); i++)
        next += s[i].number == next ? part.of : 0;
    if (next >= s[0].of + first)
        return 0;
    return error_set(e, ERR_NOT_FOUND, "shard %.*s-%05d-of-%05d%s is missing in %s%s",
                     s[0].name_bytes, s[0].name, next, s[0].of, s[0].ending, folder,
                     part.of == 1 && strncmp(s[0].name, "train-", 6) == 0
                         ? " (if each node has only its own shards, set data.locality to \"node\")"
                         : "");
}

int shard_names_check(char *const *paths, size_t count, const char *folder,
                      struct dataset_part part, struct error *e)
{
    struct shard_number *s = calloc(count + 1, sizeof *s);
    size_t n = 0;

    if (!s)
        return error_set(e, ERR_NO_MEMORY, "no memory for a list of shards");
    for (size_t i = 0; i < count; i++)
        n += shard_parse(paths[i], &s[n]);
    qsort(s, n, sizeof *s, shard_names_by_number);
    int rc = shard_names_check_one_set(folder, s, n, e);
    if (rc == 0 && n > 0)
        rc = shard_names_check_none_missing(folder, s, n, part, e);
    free(s);
    return rc;
}
