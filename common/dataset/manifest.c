#include "common/dataset/manifest.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "common/json.h"
#include "common/open_beneath.h"

/* The images of one shard, or -1 if the manifest knows none of this name and size. */
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
            return json_integer_value(json_object_get(shard, "images"));
        }
    }
    return -1;
}

bool manifest_count(const struct dataset_list *list, int64_t *in_file)
{
    static const char *const places[] = {"", "../"};
    char path[PATH_MAX];
    json_t *manifest = NULL;
    struct error e;

    for (int i = 0; i < 2 && !manifest; i++)
        if ((size_t)snprintf(path, sizeof path, "%s/%s" MANIFEST_NAME, list->folder, places[i]) <
            sizeof path)
            manifest = json_read_fd(open_beneath_file(path, &e), path, MANIFEST_LIMIT_BYTES, &e);
    bool fits = json_integer_value(json_object_get(manifest, "format")) == MANIFEST_FORMAT;
    for (size_t i = 0; i < list->count && fits; i++) {
        in_file[i] = shard_images(manifest, list->files[i], list->bytes[i]);
        fits = in_file[i] > 0;
    }
    json_decref(manifest);
    return fits;
}
