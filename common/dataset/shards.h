/*
 * Reading the shards of a list. Internal to common/dataset. Thread-safe.
 *
 * Uses pread, not mmap: truncating a mapped shard would kill the process by SIGBUS. Keeps as many
 * descriptors open as the process's hard limit allows, and opens other shards for each record.
 */
#pragma once

#include "common/dataset/file_list.h"

struct shards;

/* Borrows the list. */
struct shards *shards_create(const struct dataset_list *list);
void shards_destroy(struct shards *s); /* NULL is fine */

/* Walks a shard's frames. *lengths: the payload bytes of *count records; the caller frees it.
 * Updates size and time in the list. ERR_CORRUPT and others, naming the file. */
int shards_walk(struct dataset_list *list, uint32_t file, uint64_t **lengths, uint64_t *count,
                struct error *e);

/* Reads and checks a record. *frame: with header; the caller frees it. ERR_CORRUPT if the shard is
 * not as indexed, ERR_NOT_FOUND, ERR_IO, ERR_NO_MEMORY. */
int shards_read(struct shards *s, const struct dataset_entry *entry, uint8_t **frame,
                struct error *e);

void shards_expect(struct shards *s, const struct dataset_entry *entry);
