/*
 * Reads the shards of a list. Internal to common/dataset. Thread-safe.
 *
 * Uses pread instead of mmap, because truncating a mapped shard would kill the process with SIGBUS.
 * Keeps as many descriptors open as the process's hard limit allows, and opens the other shards for
 * each record.
 */
#pragma once

#include "common/dataset/file_list.h"

struct shards;

/* Borrows the list. */
struct shards *shards_create(const struct dataset_list *list);
void shards_destroy(struct shards *s); /* accepts NULL */

/* Walks the frames of a shard. Sets *lengths to the payload sizes of *count records; the caller
 * frees it. Updates size and time in the list. Returns ERR_CORRUPT or another error. */
int shards_walk(struct dataset_list *list, uint32_t file, uint64_t **lengths, uint64_t *count,
                struct error *e);

/* Reads and checks a record. Sets *frame to the record with its header; the caller frees it.
 * ERR_CORRUPT (the shard differs from the index), ERR_NOT_FOUND, ERR_IO or ERR_NO_MEMORY. */
int shards_read(struct shards *s, const struct dataset_entry *entry, uint8_t **frame,
                struct error *e);

void shards_expect(struct shards *s, const struct dataset_entry *entry);
