/* DIR/.convert.jsonl: the progress of an unfinished conversion, so that the same command can resume
 * it. The first line has the settings and the identity of the input, the others a finished shard
 * each, as in manifest.json. A line is written after its shard is on disk. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/error.h"

#define JOURNAL_NAME ".convert.jsonl"

struct journal;

/* Opens or creates the journal of a folder locked by this process. settings (borrowed): a flat
 * object. ERR_CONFLICT, naming a setting, if the conversion was begun with others. */
int journal_open(const char *folder, const json_t *settings, struct journal **out, struct error *e);
void journal_close(struct journal *j); /* NULL is fine */

/* The line of a finished shard, by its name ("train/train-00000-of-00008"); NULL: not done. Not
 * while other threads add. */
json_t *journal_find(const struct journal *j, const char *file);

/* Steals shard: {"file", "images", "bytes", "xxh128"}. Thread-safe. */
int journal_add(struct journal *j, json_t *shard, struct error *e);

int64_t journal_count(const struct journal *j); /* finished shards */

/* After completion, or if nothing is worth keeping. */
void journal_remove(const char *folder);
