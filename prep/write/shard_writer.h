/* One TFRecord shard while it is written: records are framed, counted and hashed on the way. */
#pragma once

#include "common/dataset/tf_example.h"
#include "common/digest.h"

struct shard_writer;

/* Creates the file, or empties what an interrupted run left of it. */
int shard_writer_create(const char *path, struct shard_writer **out, struct error *e);

int shard_writer_put(struct shard_writer *w, const struct tf_example *x, struct error *e);

/* Puts all on disk (fsync) and says what is there. The writer is gone afterwards, and after an
 * error the file too: a full disk gets its space back. */
int shard_writer_finish(struct shard_writer *w, uint64_t *bytes, char hex[DIGEST_BYTES],
                        struct error *e);
void shard_writer_abandon(struct shard_writer *w); /* closes and removes; NULL is fine */
