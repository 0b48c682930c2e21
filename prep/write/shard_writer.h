/* Writes a TFRecord shard: frames, counts and hashes its records. */
#pragma once

#include "common/dataset/tf_example.h"
#include "common/digest.h"

struct shard_writer;

/* Creates the file, or truncates one left by an interrupted run. */
int shard_writer_create(const char *path, struct shard_writer **out, struct error *e);

int shard_writer_put(struct shard_writer *w, const struct tf_example *x, struct error *e);

/* Syncs the file, returns its size and digest, and frees the writer. An error removes the file. */
int shard_writer_finish(struct shard_writer *w, uint64_t *bytes, char hex[DIGEST_BYTES],
                        struct error *e);
void shard_writer_abandon(struct shard_writer *w); /* closes and removes the file; accepts NULL */
