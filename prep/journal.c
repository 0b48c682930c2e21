#include "prep/journal.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "common/xalloc.h"

#define JOURNAL_LIMIT_BYTES (64 << 20)

struct journal {
    FILE *file;
    char path[PATH_MAX];
    json_t *done; /* file name -> its line */
    pthread_mutex_t lock;
};

static int journal_write_line(struct journal *j, const json_t *line, struct error *e)
{
    if (json_dumpf(line, j->file, JSON_COMPACT) || fputc('\n', j->file) < 0 || fflush(j->file) ||
        fdatasync(fileno(j->file)))
        return error_set_errno(e, errno, "cannot write %s", j->path);
    return 0;
}

static int journal_compare_settings(const struct journal *j, const json_t *then, const json_t *now,
                                    struct error *e)
{
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)now, key, value) {
        const json_t *old = json_object_get(then, key);
        if (json_equal(old, value))
            continue;
        char *was = json_dumps(old, JSON_ENCODE_ANY), *is = json_dumps(value, JSON_ENCODE_ANY);
        int rc = strcmp(key, "input") == 0
                     ? error_set(e, ERR_CONFLICT,
                                 "%s belongs to an unfinished conversion of different input (files "
                                 "changed, or another --in); use --force to start over",
                                 j->path)
                     : error_set(e, ERR_CONFLICT,
                                 "%s belongs to an unfinished conversion with %s %s, not %s: use "
                                 "the same value to continue, or --force to start over",
                                 j->path, key, was ? was : "unset", is);
        free(was);
        free(is);
        return rc;
    }
    return 0;
}

/* Reads the lines of an earlier run. *good_bytes: end of the last complete line. */
static int journal_read_lines(struct journal *j, const json_t *settings, long *good_bytes,
                              struct error *e)
{
    char *text, *line, *end;
    size_t bytes;

    *good_bytes = 0;
    if (access(j->path, F_OK))
        return 0;
    int rc = file_read(j->path, JOURNAL_LIMIT_BYTES, &text, &bytes, e);
    if (rc)
        return rc;
    for (line = text; rc == 0 && (end = strchr(line, '\n')); line = end + 1) {
        json_t *object = json_loadb(line, (size_t)(end - line), JSON_REJECT_DUPLICATES, NULL);
        const char *file = json_string_value(json_object_get(object, "file"));
        if (line == text && object)
            rc = journal_compare_settings(j, object, settings, e);
        else if (object && file)
            json_object_set(j->done, file, object);
        json_decref(object);
        if (!object)
            break;
        *good_bytes = end + 1 - text;
    }
    free(text);
    return rc;
}

int journal_open(const char *folder, const json_t *settings, struct journal **out, struct error *e)
{
    struct journal *j = xcalloc(1, sizeof *j);
    long good_bytes;

    *out = NULL;
    pthread_mutex_init(&j->lock, NULL);
    j->done = json_object();
    file_path(j->path, NULL, "%s/" JOURNAL_NAME, folder);
    int rc = journal_read_lines(j, settings, &good_bytes, e);
    if (rc == 0)
        j->file = fopen(j->path, "ae");
    if (rc == 0 && (!j->file || ftruncate(fileno(j->file), good_bytes)))
        rc = error_set_errno(e, errno, "cannot write %s", j->path);
    if (rc == 0 && good_bytes == 0)
        rc = journal_write_line(j, settings, e);
    if (rc) {
        journal_close(j);
        return rc;
    }
    *out = j;
    return 0;
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->file)
        fclose(j->file);
    json_decref(j->done);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

json_t *journal_find(const struct journal *j, const char *file)
{
    return json_object_get(j->done, file);
}

int journal_add(struct journal *j, json_t *shard, struct error *e)
{
    pthread_mutex_lock(&j->lock);
    int rc = journal_write_line(j, must_alloc(shard), e);
    if (rc == 0)
        json_object_set(j->done, json_string_value(json_object_get(shard, "file")), shard);
    pthread_mutex_unlock(&j->lock);
    json_decref(shard);
    return rc;
}

int64_t journal_count(const struct journal *j)
{
    return (int64_t)json_object_size(j->done);
}

void journal_remove(const char *folder)
{
    char path[PATH_MAX];
    file_path(path, NULL, "%s/" JOURNAL_NAME, folder);
    unlink(path);
}
