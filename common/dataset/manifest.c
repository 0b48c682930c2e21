#include "common/dataset/manifest.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/dataset/tfrecord.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/system/open_beneath.h"

/* The images of one shard, or -1 if the manifest knows none of this name and size, or says more
 * than have room in it. */
static int64_t shard_images(const json_t *manifest, const char *file, uint64_t bytes)
{
    static const char *const roles[] = {"train", "validation"};

    for (int r = 0; r < 2; r++) {
        const json_t *shards = json_object_get(json_object_get(manifest, roles[r]), "shards"),
                     *shard;
        size_t i;
        json_array_foreach (shards, i, shard) {
            const char *name = json_string_value(json_object_get(shard, "file"));
            if (!name || strcmp(file_base_name(name), file_base_name(file)) != 0)
                continue;
            if ((uint64_t)json_integer_value(json_object_get(shard, "bytes")) != bytes)
                return -1;
            json_int_t images = json_integer_value(json_object_get(shard, "images"));
            uint64_t most = bytes / (TFRECORD_HEADER_BYTES + TFRECORD_FOOTER_BYTES);
            return images > 0 && (uint64_t)images > most ? -1 : images;
        }
    }
    return -1;
}

/* The manifest in the list's folder or the one above; NULL: none that can be read. */
static json_t *manifest_load(const struct dataset_list *list)
{
    static const char *const places[] = {"", "../"};
    char path[PATH_MAX];
    json_t *manifest = NULL;
    struct error e;

    for (int i = 0; i < 2 && !manifest; i++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s" MANIFEST_NAME, list->folder, places[i]) <
            sizeof path)
            manifest = json_read_fd(open_beneath_file(path, &e), path, MANIFEST_LIMIT_BYTES, &e);
    return manifest;
}

static bool manifest_is_known(const json_t *manifest)
{
    return json_integer_value(json_object_get(manifest, "format")) == MANIFEST_FORMAT;
}

bool manifest_count(const struct dataset_list *list, int64_t *in_file)
{
    json_t *manifest = manifest_load(list);
    bool fits = manifest_is_known(manifest);

    for (size_t i = 0; i < list->count && fits; i++) {
        in_file[i] = shard_images(manifest, list->files[i], list->bytes[i]);
        fits = in_file[i] > 0;
    }
    json_decref(manifest);
    return fits;
}

int64_t manifest_classes(const struct dataset_list *list)
{
    json_t *manifest = manifest_load(list);
    bool fits = manifest_is_known(manifest) && list->count > 0 &&
                shard_images(manifest, list->files[0], list->bytes[0]) > 0;
    int64_t classes = fits ? (int64_t)json_array_size(json_object_get(manifest, "classes")) : 0;

    json_decref(manifest);
    return classes;
}
