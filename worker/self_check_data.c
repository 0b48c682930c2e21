#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/check.h"
#include "common/dataset/list.h"
#include "common/dataset/manifest.h"
#include "common/digest.h"
#include "worker/self_check_parts.h"

#define ADVICE                                                                                     \
    "look whether the file system is mounted here and whether the job names the right folder; "    \
    "train-prep audit tells more"

/* The manifest of the data set that the list's files belong to; false: there is none. */
static bool find_manifest(const struct dataset_list *list, char path[PATH_MAX])
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
static struct dataset_part part_of(const char *path)
{
    static const char *const places[] = {"", "../"};
    struct dataset_part part = {0, 1};
    char name[PATH_MAX];

    for (size_t i = 0; i < 2 && part.of == 1; i++) {
        if ((size_t)snprintf(name, sizeof name, "%s/%s" MANIFEST_NAME, path, places[i]) >=
            sizeof name)
            continue;
        json_t *manifest = json_load_file(name, 0, NULL);
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
static int read_a_byte(const struct dataset_list *list, struct error *e)
{
    char byte;

    if (list->count == 0)
        return 0;
    int fd = open(list->files[0], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(e, errno, "cannot open %s", list->files[0]);
    ssize_t got = pread(fd, &byte, 1, 0);
    int reason = errno;
    close(fd);
    if (got < 0)
        return error_set_errno(e, reason, "cannot read %s", list->files[0]);
    return got ? 0 : error_set(e, ERR_CORRUPT, "%s is empty", list->files[0]);
}

static int look_at(const struct dataset_list *list, json_t *item, struct error *e)
{
    char manifest[PATH_MAX], digest[DIGEST_BYTES];
    int64_t *in_file = calloc(list->count + 1, sizeof *in_file), images = 0;
    int status = in_file ? read_a_byte(list, e) : error_set(e, ERR_NO_MEMORY, "no memory");

    json_object_set_new(item, "shards", json_integer((json_int_t)list->count));
    json_object_set_new(item, "classes", json_integer(list->class_count));
    json_object_set_new(item, "manifest", json_null());
    if (!status && list->format == DATASET_TFRECORD && find_manifest(list, manifest)) {
        status = digest_file(manifest, digest, e);
        if (!status && !manifest_count(list, in_file))
            status = error_set(e, ERR_CORRUPT,
                               "the shards in %s do not have the names and sizes that %s gives "
                               "them",
                               list->folder, manifest);
        for (size_t i = 0; !status && i < list->count; i++)
            images += in_file[i];
        if (!status) {
            json_object_set_new(item, "manifest", json_string(digest));
            json_object_set_new(item, "images", json_integer((json_int_t)images));
        }
    }
    free(in_file);
    return status;
}

static void describe(const char *path, const json_t *item, json_t *list)
{
    const char *digest = json_string_value(json_object_get(item, "manifest"));
    long long shards = json_integer_value(json_object_get(item, "shards"));
    long long classes = json_integer_value(json_object_get(item, "classes"));

    if (digest)
        check_note(list, "data", true, NULL, "%s: %lld shards, %lld images, manifest %s", path,
                   shards, (long long)json_integer_value(json_object_get(item, "images")), digest);
    else if (shards)
        check_note(list, "data", true, NULL, "%s: %lld shards, without a manifest", path, shards);
    else
        check_note(list, "data", true, NULL, "%s: %lld class folders", path, classes);
}

bool self_check_data(const char *path, json_t *report, json_t *list)
{
    struct dataset_list files = {0};
    struct error e = {0};
    json_t *item = json_pack("{s:s}", "path", path), *all = json_object_get(report, "data");
    int status = 0;

    if (strcmp(path, "synthetic") == 0) {
        check_note(list, "data", true, NULL, "synthetic");
    } else {
        status = dataset_list_find(path, DATASET_TRAIN, part_of(path), &files, &e);
        if (!status)
            status = look_at(&files, item, &e);
        if (status)
            check_note(list, "data", false, ADVICE, "%s", e.text);
        else
            describe(path, item, list);
        dataset_list_free(&files);
    }
    json_object_set_new(item, "ok", json_boolean(status == 0));
    json_array_append_new(all, item);
    return status == 0;
}
