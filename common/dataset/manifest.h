/*
 * manifest.json of train-prep, beside the folders train and validation:
 *
 *   {"tool": "train-prep 0.1.0", "format": 1, "source": "idx", "seed": 1, "classes": ["n01440764",
 * ...], "train": {"images": 60000, "shards": [{"file": "train/train-00000-of-00008", "images":
 * 7500, "bytes": 7123456, "xxh128": "32 hex digits"}, ...]}, "validation": {...}}
 *
 * It is written last: a folder without one was not finished. It holds no date, so that the same
 * input gives the same bytes.
 */
#ifndef TRAIND_COMMON_DATASET_MANIFEST_H
#define TRAIND_COMMON_DATASET_MANIFEST_H

#include <stdbool.h>

#include "common/dataset/list.h"

#define MANIFEST_NAME        "manifest.json"
#define MANIFEST_FORMAT      1
#define MANIFEST_LIMIT_BYTES ((size_t)64 << 20)

/* Fills in_file (list->count) with the images of each shard by a manifest in their folder or the
 * one above. False if there is none, it cannot be read, or any shard is not in it with just this
 * size: then the shards must be walked. */
bool manifest_count(const struct dataset_list *list, int64_t *in_file);

/* How many classes a manifest there lists whose first shard is the list's; 0: not known. */
int64_t manifest_classes(const struct dataset_list *list);

#endif
