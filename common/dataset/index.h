/*
 * Internal to common/dataset: the index of a data set in a file, so that only the first run walks
 * shards or lists a million images.
 *
 * It lies beside the data as .traind-index-train, -validation or -classes, or, where that cannot be
 * written, in $XDG_CACHE_HOME/traind (~/.cache/traind). It is believed only if its checksum is
 * right and each shard (or class folder) has the name, size and time of change it had; else it is
 * made anew. Of class folders, an image whose content changes under its name keeps its entry, which
 * holds nothing of the content. The numbers are in this machine's byte order; another one's is not
 * believed.
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
