/* Folders of checkpoints, RUN/checkpoints/step-00000520. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"

/* Lists checkpoints, newest first. Returns their number, 0 without the folder, or an error with
 * *names NULL. */
int checkpoint_list(const char *checkpoints, struct dirent ***names, struct error *e);
void checkpoint_list_free(struct dirent **names, int count);

/* Removes all but the newest `keep` up to this step, and if `later` those of later steps, which a
 * resumed run has left. They are renamed first, so that an interrupted removal leaves no broken
 * checkpoint. Failures are logged. */
void checkpoint_keep(const char *checkpoints, int64_t step, int64_t keep, bool later);

/* Removes .step-00000520.tmp, left by a run killed while writing. Removes all it can; returns an
 * error if something is left. */
int checkpoint_remove_unfinished(const char *checkpoints, struct error *e);

/* The step in a folder's name; false: not a checkpoint. */
bool checkpoint_step(const char *name, int64_t *step);

#define CHECKPOINT_MODEL     "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"

#define CHECKPOINT_EMA "ema.safetensors"

/* Of a run stopped where no checkpoint is due: one for each machine, see
 * worker/save/rank_statistics.h. */
#define CHECKPOINT_STATISTICS_OF "statistics-%d.safetensors"

/* state.json's "files": digests by name. NULL if one that every checkpoint has is missing, or a
 * name leads out of the folder. */
json_t *checkpoint_files(const json_t *state);

/* The digest ("xxh128") of state.json's values without the digest itself; independent of spaces. */
void checkpoint_state_digest(const json_t *state, char hex[DIGEST_BYTES]);
