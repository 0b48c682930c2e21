/* Where a resumed run goes on from: --resume FOLDER, or "latest". */
#pragma once

#include <jansson.h>
#include <limits.h>

#include "worker/save/state.h"

/* Checks the checkpoint of that folder: whole (the digests of its files)
 * and of this job; a checkpoint that is not is refused by name. "latest" takes the newest one of
 * run_dir/checkpoints that passes, and words about each newer one go into warnings (strings). A run
 * that has no checkpoint at all starts from the beginning: path is then "" and a warning says so;
 * but if there are some and none passes, that is an error. */
int resume_find(const char *run_dir, const char *from, const struct job_spec *spec,
                char path[PATH_MAX], struct run_state *state, json_t *warnings, struct error *e);
