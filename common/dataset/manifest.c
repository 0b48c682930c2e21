#include "common/dataset/manifest.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/dataset/tfrecord.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"

/* Returns the entry of a shard, or NULL. *next: where to search first, because manifests usually
 * have the order of the list. */
static const json_t *manifest_find_entry(const json_t *manifest, const char *file, size_t *next)
{
    static const char *const roles[] = {"train", "validation"};

    for (int r = 0; r < 2; r++) {
        const json_t *shards = json_object_get(json_object_get(manifest, roles[r]), "shards");
        size_t count = json_array_size(shards);
        for (size_t k = 0; k < count; k++) {
            size_t i = (*next + k) % count;
            const json_t *shard = json_array_get(shards, i);
            const char *name = json_string_value(json_object_get(shard, "file"));
            if (name && strcmp(file_base_name(name), file_base_name(file)) == 0) {
                *next = i + 1;
                return shard;
            }
        }
    }
    return NULL;
}

static int64_t manifest_shard_images(const json_t *manifest, const char *file, uint64_t bytes,
                                     size_t *next)
{
    const json_t *shard = manifest_find_entry(manifest, file, next);
    json_int_t images = json_integer_value(json_object_get(shard, "images"));
    uint64_t most = bytes / (TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES);

    if (!shard || (uint64_t)json_integer_value(json_object_get(shard, "bytes")) != bytes)
        return -1;
    return images > 0 && (uint64_t)images > most ? -1 : images;
}

static bool manifest_fits(const json_t *manifest, const struct dataset_list *list, int64_t *in_file)
{
    bool fits = list->count > 0;
    size_t next = 0;

    for (size_t i = 0; i < list->count && fits; i++) {
        in_file[i] = manifest_shard_images(manifest, list->files[i], list->bytes[i], &next);
        fits = in_file[i] > 0;
    }
    return fits;
}

static json_t *manifest_load(const struct dataset_list *list, int place, struct error *e)
{
    char path[PATH_MAX];

    *e = (struct error){0};
    if (file_path(path, NULL, "%s/%s" MANIFEST_NAME, list->folder, place ? "../" : ""))
        return NULL;
    json_t *manifest = json_read_fd(open_beneath_file(path, e), path, MANIFEST_LIMIT_BYTES, e);
    if (json_integer_value(json_object_get(manifest, "format")) == MANIFEST_FORMAT)
        return manifest;
    json_decref(manifest);
    return NULL;
}

static json_t *manifest_of(const struct dataset_list *list, int64_t *in_file, const char **why)
{
    struct error e;

    *why = "has shards without a manifest.json of train-prep";
    for (int place = 0; place < 2; place++) {
        json_t *manifest = manifest_load(list, place, &e);
        if (manifest && manifest_fits(manifest, list, in_file))
            return manifest;
        if (manifest)
            *why = "has shards that are not those of its manifest.json";
        else if (e.code != ERR_NONE && e.code != ERR_NOT_FOUND)
            *why = "has a manifest.json that cannot be read";
        json_decref(manifest);
    }
    return NULL;
}

bool manifest_count(const struct dataset_list *list, int64_t *in_file)
{
    const char *why;
    json_t *manifest = manifest_of(list, in_file, &why);
    bool found = manifest != NULL;

    json_decref(manifest);
    return found;
}

bool manifest_are_names(const json_t *classes)
{
    const json_t *name;
    size_t i;

    json_array_foreach (classes, i, name)
        if (!json_is_string(name))
            return false;
    return json_array_size(classes) > 0;
}

json_t *manifest_classes(const struct dataset_list *list, const char **why)
{
    int64_t *in_file = calloc(list->count + 1, sizeof *in_file);
    json_t *manifest = NULL, *classes = NULL;

    *why = "cannot be looked at: no memory";
    if (in_file)
        manifest = manifest_of(list, in_file, why);
    if (manifest && manifest_are_names(json_object_get(manifest, "classes")))
        classes = json_incref(json_object_get(manifest, "classes"));
    else if (manifest)
        *why = "has a manifest.json that does not name the classes";
    json_decref(manifest);
    free(in_file);
    return classes;
}

int manifest_check_empty(const struct dataset_list *list, struct error *e)
{
    struct error ignored;
    size_t next = 0;
    int status = 0;

    for (int place = 0; place < 2 && !status; place++) {
        json_t *manifest = manifest_load(list, place, &ignored);
        for (size_t i = 0; i < list->count && manifest && !status; i++) {
            json_int_t bytes =
                list->bytes[i]
                    ? 0
                    : json_integer_value(json_object_get(
                          manifest_find_entry(manifest, list->files[i], &next), "bytes"));
            if (bytes > 0)
                status =
                    error_set(e, ERR_CORRUPT, "%s is empty, but manifest.json lists %lld bytes",
                              list->files[i], (long long)bytes);
        }
        json_decref(manifest);
    }
    return status;
}
