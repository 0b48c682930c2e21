/* The folder train-prep writes to: taken by one process at a time, fresh, and complete only when
 * its manifest is there. */
#pragma once

#include <stdbool.h>

#include "common/error.h"

/* Creates the folder if need be and locks it; *fd holds the lock until closed. ERR_CONFLICT:
 * another process has it, or it holds anything but what an unfinished conversion leaves: that stays
 * if it has its journal (prep/journal.h), else its temporary files are removed. With force, what
 * any earlier conversion made is removed, and anything else is left alone. */
int out_folder_take(const char *path, bool force, int *fd, struct error *e);

/* Whether a file in the folder of a role ("train") is named as its shards: train-00003-of-00008. */
bool out_folder_is_shard(const char *name, const char *role);
