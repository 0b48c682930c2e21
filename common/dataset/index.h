/*
 * Stores the index of a data set in a file, so that only the first run walks shards or lists a
 * million images. Internal to common/dataset.
 *
 * The file is .traind-index-train, -validation or -classes beside the data or, if that folder is
 * not writable, in the user's cache folder. It is used if its checksum is right and each shard (or
 * class folder) has the recorded name, size and modification time. If the content of an image in a
 * class folder changes, its entry stays valid, because it does not depend on the content. Numbers
 * are in native byte order.
 */
#pragma once

#include "common/dataset/file_list.h"

struct dataset_index {
    struct dataset_entry *entries; /* (images), in the order of the files; the caller frees it */
    int64_t images;
    size_t capacity;
};

int dataset_index_add(struct dataset_index *index, struct dataset_entry entry, struct error *e);

/* Fills the index and, for class folders, the list of images. False: there is no valid index. */
bool dataset_index_load(struct dataset_list *list, struct dataset_index *index);

/* Writes the file atomically; errors are logged. Does nothing if the data changed less than a
 * second before listed_at (Unix time): it might change again within a clock tick of the file
 * system. */
void dataset_index_store(const struct dataset_list *list, const struct dataset_index *index,
                         double listed_at);
