#include "prep/manifest_shards.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/system/file.h"
#include "common/dataset/manifest.h"

static const char *const folders[] = {[DATASET_TRAIN] = "train/", [DATASET_EVAL] = "validation/"};

/* Accepts only names inside the folder, because an untrusted manifest's shards are copied. */
static int manifest_shards_is_harmless(const char *file, enum dataset_role role)
{
    size_t folder = strlen(folders[role]);
    return file && strncmp(file, folders[role], folder) == 0 && strlen(file) < 128 &&
           file[folder] && file[folder] != '.' && !strchr(file + folder, '/');
}

static int manifest_shards_take(struct manifest_shards *m, enum dataset_role role, int number,
                                const json_t *shard)
{
    struct manifest_shard *s = &m->shards[m->count];

    s->file = json_string_value(json_object_get(shard, "file"));
    s->hash = json_string_value(json_object_get(shard, "xxh128"));
    s->images = json_integer_value(json_object_get(shard, "images"));
    s->bytes = (uint64_t)json_integer_value(json_object_get(shard, "bytes"));
    s->role = role;
    s->number = number;
    if (!manifest_shards_is_harmless(s->file, role) || !s->hash || s->images < 1 ||
        (int64_t)s->bytes < 1)
        return -1;
    m->count++;
    return 0;
}

static int manifest_shards_take_role(struct manifest_shards *m, enum dataset_role role)
{
    const char *name = role == DATASET_TRAIN ? "train" : "validation";
    const json_t *shards = json_object_get(json_object_get(m->manifest, name), "shards");
    struct manifest_shard *larger =
        array_reserve(m->shards, m->count + json_array_size(shards), &m->capacity, sizeof *larger);
    const json_t *shard;
    size_t i;

    if (!larger)
        return -1;
    m->shards = larger;
    json_array_foreach (shards, i, shard)
        if (manifest_shards_take(m, role, (int)i, shard))
            return -1;
    return 0;
}

int manifest_shards_read(const char *folder, struct manifest_shards *m, struct error *e)
{
    char path[PATH_MAX];

    *m = (struct manifest_shards){
        .part = {0, 1}
    };
    file_path(path, NULL, "%s/" MANIFEST_NAME, folder);
    if (access(path, F_OK))
        return error_set(e, ERR_NOT_FOUND,
                         "%s does not exist: the data set was not made by train-prep convert, or "
                         "its conversion is not finished",
                         path);
    m->manifest = json_read_fd(file_open(path, e), path, MANIFEST_LIMIT_BYTES, e);
    if (!m->manifest)
        return -(int)e->code;
    if (json_integer_value(json_object_get(m->manifest, "format")) != MANIFEST_FORMAT ||
        manifest_shards_take_role(m, DATASET_TRAIN) || manifest_shards_take_role(m, DATASET_EVAL) ||
        m->count == 0)
        return error_set(e, ERR_CORRUPT, "%s is not a train-prep manifest of format %d", path,
                         MANIFEST_FORMAT);
    const json_t *stage = json_object_get(m->manifest, "stage");
    if (stage)
        m->part = (struct dataset_part){
            (int)json_integer_value(json_object_get(stage, "node")),
            (int)json_integer_value(json_object_get(stage, "nodes")),
        };
    if (m->part.of < 1 || m->part.number < 0 || m->part.number >= m->part.of)
        return error_set(e, ERR_CORRUPT, "%s has an invalid \"stage\"", path);
    return 0;
}

void manifest_shards_free(struct manifest_shards *m)
{
    json_decref(m->manifest);
    free(m->shards);
    *m = (struct manifest_shards){0};
}

int manifest_shard_in(const struct manifest_shard *shard, struct dataset_part part)
{
    return shard->role == DATASET_EVAL || shard->number % part.of == part.number;
}
