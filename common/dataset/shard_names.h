/* Internal to common/dataset: what the names of shards say: NAME-00003-of-00008ENDING. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/dataset/kinds.h"
#include "common/error.h"

/* With the ending .tfrecord(s), .tfrec or none: where one is named so, the others beside it are no
 * shards of the set. */
bool shard_name_is_numbered(const char *name);

/* Whether the name is of what editors, copies and other readers leave beside shards. */
bool shard_name_is_side_file(const char *name);

/* The 3 of it; or other, because other people's names promise nothing. */
int shard_name_number(const char *path, int other);

/* Of the numbered ones among the paths, all that are the part's must be there, once, and none of
 * another set. ERR_NOT_FOUND names the first that is missing, ERR_INVALID two that do not go
 * together. folder is for messages. */
int shard_names_check(char *const *paths, size_t count, const char *folder,
                      struct dataset_part part, struct error *e);
