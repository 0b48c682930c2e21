/*
 * manifest.json of train-prep, beside the folders train and validation:
 *
 *   {"tool": "train-prep 0.1.0", "format": 1, "source": "idx", "seed": 1, "classes": ["n01440764",
 *   ...], "train": {"images": 60000, "shards": [{"file": "train/train-00000-of-00008", "images":
 *   7500, "bytes": 7123456, "xxh128": "32 hex digits"}, ...]}, "validation": {...}}
 *
 * It is written last: if it is missing, the conversion was not finished. It contains no date, so
 * that the same input produces the same bytes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/dataset/file_list.h"

#define MANIFEST_NAME        "manifest.json"
#define MANIFEST_FORMAT      1
#define MANIFEST_LIMIT_BYTES ((size_t)64 << 20)

/* Sets in_file (list->count) to the number of images in each shard. Returns false if there is no
 * manifest that lists all shards with their sizes; the shards must then be walked. */
bool manifest_count(const struct dataset_list *list, int64_t *in_file);

/* Returns the class names as an array of strings, which the caller owns. Returns NULL if they are
 * unknown, and sets *why to the end of a sentence about the data set. */
json_t *manifest_classes(const struct dataset_list *list, const char **why);

bool manifest_are_names(const json_t *classes);

/* Returns ERR_CORRUPT if the manifest lists images for an empty shard. */
int manifest_check_empty(const struct dataset_list *list, struct error *e);
