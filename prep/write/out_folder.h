/* The output folder, written by one process at a time. Without a manifest it is incomplete. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* Creates and locks the folder; *fd holds the lock. An unfinished conversion in it is kept if it
 * has a journal, else removed. Returns ERR_CONFLICT if another process has locked it, or it
 * contains anything else. force: removes an earlier conversion, and ignores other files. */
int out_folder_take(const char *path, bool force, int *fd, struct error *e);

/* Returns whether the name is that of a shard of the role ("train"): train-00003-of-00008. */
bool out_folder_is_shard(const char *name, const char *role);
