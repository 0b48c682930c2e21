#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json.h"
#include "common/system/file.h"
#include "common/check.h"
#include "common/dataset/list.h"
#include "common/dataset/manifest.h"
#include "common/digest.h"
#include "worker/check/self_check_parts.h"

#define ADVICE                                                                                     \
    "check that the file system is mounted here and that the path in the job is right; "           \
    "train-prep audit shows details"

/* The manifest of the data set that the list's files belong to; false: there is none. */
static bool self_check_data_find_manifest(const struct dataset_list *list, char path[PATH_MAX])
{
    static const char *const places[] = {"", "../"};

    for (size_t i = 0; i < 2; i++)
        if ((size_t)snprintf(path, PATH_MAX, "%s/%s" MANIFEST_NAME, list->folder, places[i]) <
                PATH_MAX &&
            access(path, R_OK) == 0)
            return true;
    return false;
}

/* What train-prep stage brought to this machine may be a part of the shards. */
static struct dataset_part self_check_data_part_of(const char *path)
{
    static const char *const places[] = {"", "../"};
    struct dataset_part part = {0, 1};
    char name[PATH_MAX];
    struct error e;

    for (size_t i = 0; i < 2 && part.of == 1; i++) {
        if ((size_t)snprintf(name, sizeof name, "%s/%s" MANIFEST_NAME, path, places[i]) >=
            sizeof name)
            continue;
        json_t *manifest = json_read_fd(file_open(name, &e), name, MANIFEST_LIMIT_BYTES, &e);
        const json_t *stage = json_object_get(manifest, "stage");
        int nodes = (int)json_integer_value(json_object_get(stage, "nodes"));
        int node = (int)json_integer_value(json_object_get(stage, "node"));
        if (nodes > 1 && node >= 0 && node < nodes)
            part = (struct dataset_part){node, nodes};
        json_decref(manifest);
    }
    return part;
}

/* Names and sizes say little of a file server that does not answer. */
static int self_check_data_read_a_byte(const struct dataset_list *list, struct error *e)
{
    size_t first = 0;
    char byte;

    if (list->count == 0)
        return 0;
    while (first + 1 < list->count && list->bytes[first] == 0)
        first++; /* as writers leave them that had no records for it */
    const char *path = list->files[first];
    int fd = file_open(path, e);
    if (fd < 0)
        return fd;
    ssize_t got = pread(fd, &byte, 1, 0);
    int reason = errno;
    close(fd);
    if (got < 0)
        return error_set_errno(e, reason, "cannot read %s", path);
    return got ? 0 : error_set(e, ERR_CORRUPT, "%s is empty", path);
}

static int self_check_read_image(const struct dataset_list *list, struct data_found *found,
                                 struct error *e)
{
    char manifest[PATH_MAX];
    int64_t *in_file = calloc(list->count + 1, sizeof *in_file);
    int status =
        in_file ? self_check_data_read_a_byte(list, e) : error_set(e, ERR_NO_MEMORY, "no memory");

    found->shards = (long long)list->count;
    found->classes = list->class_count;
    if (!status && list->format == DATASET_TFRECORD &&
        self_check_data_find_manifest(list, manifest)) {
        status = digest_file(manifest, found->manifest, e);
        if (!status && !manifest_count(list, in_file))
            status = error_set(e, ERR_CORRUPT,
                               "the shards in %s do not have the names and sizes that %s gives "
                               "them",
                               list->folder, manifest);
        for (size_t i = 0; !status && i < list->count; i++)
            found->images += in_file[i];
    }
    free(in_file);
    return status;
}

void data_look(const char *path, struct data_found *found)
{
    struct dataset_list files = {0};
    struct error e = {0};

    *found = (struct data_found){.ok = true};
    if (strcmp(path, "synthetic") == 0)
        return;
    int status = dataset_list_find(path, DATASET_TRAIN, self_check_data_part_of(path), &files, &e);
    if (!status)
        status = self_check_read_image(&files, found, &e);
    if (status) {
        *found = (struct data_found){0};
        snprintf(found->words, sizeof found->words, "%.*s", DATA_WORDS_BYTES - 8, e.text);
    }
    dataset_list_free(&files);
}

/* ---- as a line */

/* One line of UTF-8, whatever the names of files hold. */
static void self_check_clean(char *words)
{
    for (char *c = words; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    json_t *text = json_string(words);
    for (char *c = words; !text && *c; c++)
        if ((unsigned char)*c > 0x7e)
            *c = '?';
    json_decref(text);
}

void data_print_line(FILE *out, const struct data_found *found)
{
    char words[DATA_WORDS_BYTES];

    snprintf(words, sizeof words, "%s", found->words);
    self_check_clean(words);
    if (found->ok)
        fprintf(out, "ok %lld %lld %lld %s\n", found->shards, found->classes, found->images,
                *found->manifest ? found->manifest : "-");
    else
        fprintf(out, "bad %s\n", words);
}

static bool self_check_data_read_ok(const char *line, struct data_found *found)
{
    static const char pattern[] = "^ok ([0-9]{1,12}) ([0-9]{1,12}) ([0-9]{1,15}) (-|[0-9a-f]{32})$";
    regmatch_t m[5];
    regex_t regex;

    if (regcomp(&regex, pattern, REG_EXTENDED))
        return false;
    bool matches = regexec(&regex, line, 5, m, 0) == 0;
    regfree(&regex);
    if (!matches)
        return false;
    *found = (struct data_found){.ok = true,
                                 .shards = strtoll(line + m[1].rm_so, NULL, 10),
                                 .classes = strtoll(line + m[2].rm_so, NULL, 10),
                                 .images = strtoll(line + m[3].rm_so, NULL, 10)};
    if (line[m[4].rm_so] != '-')
        snprintf(found->manifest, sizeof found->manifest, "%s", line + m[4].rm_so);
    return true;
}

void data_read_line(char **text, struct data_found *found)
{
    char *line = strsep(text, "\n");

    *found = (struct data_found){.words = "the look at it gave no answer"};
    if (!line || self_check_data_read_ok(line, found))
        return;
    bool is_words = strncmp(line, "bad ", 4) == 0 && strlen(line) < DATA_WORDS_BYTES;
    snprintf(found->words, sizeof found->words, "%s",
             is_words ? line + 4 : "the look at it gave an answer that cannot be read");
    self_check_clean(found->words);
}

/* ---- in the report */

void data_note(const char *path, const struct data_found *found, json_t *report, json_t *list)
{
    json_t *item = json_pack("{s:s, s:b, s:I, s:I, s:s*}", "path", path, "ok", found->ok, "shards",
                             (json_int_t)found->shards, "classes", (json_int_t)found->classes,
                             "manifest", *found->manifest ? found->manifest : NULL);

    if (*found->manifest)
        json_object_set_new(item, "images", json_integer((json_int_t)found->images));
    json_array_append_new(json_object_get(report, "data"), item);
    if (!found->ok)
        check_note(list, "data", false, ADVICE, "%s", found->words);
    else if (*found->manifest)
        check_note(list, "data", true, NULL, "%s: %lld shards, %lld images, manifest %s", path,
                   found->shards, found->images, found->manifest);
    else if (found->shards)
        check_note(list, "data", true, NULL, "%s: %lld shards, without a manifest", path,
                   found->shards);
    else if (found->classes)
        check_note(list, "data", true, NULL, "%s: %lld class folders", path, found->classes);
    else
        check_note(list, "data", true, NULL, "%s", path);
}
