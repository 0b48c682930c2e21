/*
 * The index of a data set in a file, so that only the first run walks shards or lists a million
 * images. Internal to common/dataset.
 *
 * The file is .traind-index-train, -validation or -classes beside the data or, if that is not
 * writable, in the user's cache folder. It is used if its checksum is right and every shard (or
 * class folder) has the recorded name, size and modification time. An image of a class folder that
 * changes under its name keeps its entry, which does not depend on the content. Numbers are in
 * native byte order.
 */
#pragma once

#include "common/dataset/file_list.h"

struct dataset_index {
    struct dataset_entry *entries; /* (images), in the order of the files; freed by the caller */
    int64_t images;
    size_t room;
};

int dataset_index_add(struct dataset_index *index, struct dataset_entry entry, struct error *e);

/* Fills the index, and of class folders the list's images too. False: none fits. */
bool dataset_index_load(struct dataset_list *list, struct dataset_index *index);

/* Writes it atomically; failures are logged. Skips a data set that changed in the second before
 * listed_at (Unix time), as it might change again within one clock tick of the file system. */
void dataset_index_store(const struct dataset_list *list, const struct dataset_index *index,
                         double listed_at);
