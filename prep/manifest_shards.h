/* The shards in a manifest.json (common/dataset/manifest.h). */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"

struct manifest_shard {
    const char *file; /* "train/train-00003-of-00008": never a path that leads elsewhere */
    const char *hash; /* 32 hex digits */
    int64_t images;
    uint64_t bytes;
    enum dataset_role role;
    int number; /* in its role's list, from 0 */
};

struct manifest_shards {
    json_t *manifest; /* owns the texts */
    struct manifest_shard *shards;
    size_t count, room;
    struct dataset_part part; /* what train-prep stage brought here; {0, 1}: all */
};

/* Reads folder/manifest.json. ERR_NOT_FOUND; ERR_CORRUPT: not train-prep's. Free with
 * manifest_shards_free, also after an error. */
int manifest_shards_read(const char *folder, struct manifest_shards *m, struct error *e);
void manifest_shards_free(struct manifest_shards *m);

/* Whether a shard belongs to the part; all validation shards do. */
int manifest_shard_in(const struct manifest_shard *shard, struct dataset_part part);
