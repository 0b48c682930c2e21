/*
 * DIR/.convert.jsonl: what an unfinished conversion has done so far, so that the same command can
 * go on from there. The first line holds the settings and the identity of the input; each further
 * line a finished shard as manifest.json will have it. A line is written when its shard is safely
 * on disk, so a torn last line (a killed process) is one shard to be made again.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/error.h"

#define JOURNAL_NAME ".convert.jsonl"

struct journal;

/* Opens the journal of a folder that this process has locked, or begins one. settings (borrowed) is
 * a flat object. ERR_CONFLICT, naming a setting, if the conversion begun there had others. */
int journal_open(const char *folder, const json_t *settings, struct journal **out, struct error *e);
void journal_close(struct journal *j); /* NULL is fine */

/* The line of a finished shard, by its name in DIR ("train/train-00000-of-00008"); NULL: not done.
 * Not to be called while other threads add. */
json_t *journal_find(const struct journal *j, const char *file);

/* Takes over shard: {"file", "images", "bytes", "xxh128"}. Thread-safe. */
int journal_add(struct journal *j, json_t *shard, struct error *e);

int64_t journal_count(const struct journal *j); /* finished shards */

/* The conversion is complete, or has done nothing worth keeping. */
void journal_remove(const char *folder);
