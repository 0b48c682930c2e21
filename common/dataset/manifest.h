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

/* Fills in_file (list->count) with the images of each shard by a manifest in their folder or the
 * one above. False if there is none, it cannot be read, or any shard is not in it with just this
 * size: then the shards must be walked. */
bool manifest_count(const struct dataset_list *list, int64_t *in_file);

/* The names of the classes, an array of strings, by the same manifest; the caller owns it. NULL:
 * not known, and *why, of the data set, says it: "has shards without a manifest.json of
 * train-prep". */
json_t *manifest_classes(const struct dataset_list *list, const char **why);

/* Whether this is a list of one or more strings. */
bool manifest_are_names(const json_t *classes);

/* A shard of 0 bytes is fine where no manifest says that it has more: ERR_CORRUPT. */
int manifest_check_empty(const struct dataset_list *list, struct error *e);
