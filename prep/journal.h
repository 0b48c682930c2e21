/* DIR/.convert.jsonl: progress of an unfinished conversion, from which the same command can resume
 * it. The first line contains the settings and the identity of the input, each other line a
 * finished shard as in manifest.json. A line is written after its shard is on disk. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/error.h"

#define JOURNAL_NAME ".convert.jsonl"

struct journal;

/* Opens or creates the journal of a folder that this process has locked. settings (borrowed): a
 * flat object. ERR_CONFLICT names a setting that differs from those of the journal. */
int journal_open(const char *folder, const json_t *settings, struct journal **out, struct error *e);
void journal_close(struct journal *j); /* accepts NULL */

/* Returns the line of a finished shard by its name ("train/train-00000-of-00008"), or NULL. Must
 * not be called while other threads add lines. */
json_t *journal_find(const struct journal *j, const char *file);

/* Adds a finished shard, {"file", "images", "bytes", "xxh128"}; steals it. Thread-safe. */
int journal_add(struct journal *j, json_t *shard, struct error *e);

int64_t journal_count(const struct journal *j); /* number of finished shards */

/* Call after completion, or if nothing in it is worth keeping. */
void journal_remove(const char *folder);
