/* Writes one TFRecord shard: frames, counts and hashes records. */
#pragma once

#include "common/dataset/tf_example.h"
#include "common/digest.h"

struct shard_writer;

/* Truncates what an interrupted run left. */
int shard_writer_create(const char *path, struct shard_writer **out, struct error *e);

int shard_writer_put(struct shard_writer *w, const struct tf_example *x, struct error *e);

/* Syncs and returns size and digest. Frees the writer; after an error the file is removed too. */
int shard_writer_finish(struct shard_writer *w, uint64_t *bytes, char hex[DIGEST_BYTES],
                        struct error *e);
void shard_writer_abandon(struct shard_writer *w); /* closes and removes; NULL is fine */
