/* Reads the list of shards in a manifest.json (common/dataset/manifest.h). */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/error.h"

struct manifest_shard {
    const char *file; /* for example "train/train-00003-of-00008"; never leads out of the folder */
    const char *hash; /* 32 hex digits */
    int64_t images;
    uint64_t bytes;
    enum dataset_role role;
    int number; /* position in its role's list, from 0 */
};

struct manifest_shards {
    json_t *manifest; /* owns the strings */
    struct manifest_shard *shards;
    size_t count, capacity;
    struct dataset_part part; /* what train-prep stage has copied; {0, 1}: all */
};

/* Reads folder/manifest.json. Returns ERR_NOT_FOUND, or ERR_CORRUPT if train-prep has not written
 * it. Call manifest_shards_free also after an error. */
int manifest_shards_read(const char *folder, struct manifest_shards *m, struct error *e);
void manifest_shards_free(struct manifest_shards *m);

/* Returns whether a shard belongs to the part. All validation shards do. */
int manifest_shard_in(const struct manifest_shard *shard, struct dataset_part part);
