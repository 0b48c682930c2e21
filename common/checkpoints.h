/* The folders RUN/checkpoints/step-00000520: the worker makes them, worker and daemon look for the
 * newest. */
#ifndef TRAIND_COMMON_CHECKPOINTS_H
#define TRAIND_COMMON_CHECKPOINTS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/* The folders of checkpoints, newest first. Returns how many; a missing folder has none. */
int checkpoint_list(const char *checkpoints, struct dirent ***names);
void checkpoint_list_free(struct dirent **names, int count);

/* The step of a folder's name; false: it is no checkpoint's. */
bool checkpoint_step(const char *name, int64_t *step);

#endif
