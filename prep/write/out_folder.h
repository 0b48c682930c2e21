/* The output folder: locked by one process, and complete only with its manifest. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* Creates and locks the folder; *fd holds the lock. ERR_CONFLICT: locked by another process, or it
 * holds anything but an unfinished conversion, which stays if it has a journal, else is removed.
 * force: removes an earlier conversion, and leaves other files. */
int out_folder_take(const char *path, bool force, int *fd, struct error *e);

/* Whether it is named as a shard of the role ("train"): train-00003-of-00008. */
bool out_folder_is_shard(const char *name, const char *role);
