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
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/dataset/file_list.h"

#define MANIFEST_NAME        "manifest.json"
#define MANIFEST_FORMAT      1
#define MANIFEST_LIMIT_BYTES ((size_t)64 << 20)

/* Sets in_file (list->count) to the images of each shard. False if there is no manifest that has
 * all shards with their sizes: then they must be walked. */
bool manifest_count(const struct dataset_list *list, int64_t *in_file);

/* The class names, an array of strings owned by the caller. NULL: not known, with the end of a
 * sentence about the data set in *why. */
json_t *manifest_classes(const struct dataset_list *list, const char **why);

/* Whether it is a non-empty list of strings. */
bool manifest_are_names(const json_t *classes);

/* ERR_CORRUPT if a manifest says that an empty shard is not. */
int manifest_check_empty(const struct dataset_list *list, struct error *e);
