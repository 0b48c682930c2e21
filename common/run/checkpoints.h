/* The folders RUN/checkpoints/step-00000520: the worker makes them, worker and daemon look for the
 * newest. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"

/* The folders of checkpoints, newest first. Returns how many, or an error, with *names NULL; a
 * missing folder has none, but in one that cannot be read there may be some. */
int checkpoint_list(const char *checkpoints, struct dirent ***names, struct error *e);
void checkpoint_list_free(struct dirent **names, int count);

/* Removes all but the newest `keep` up to this step, and if `later` those of later steps, which are
 * of a past that a resumed run left. Renamed first: what a kill leaves half removed is unfinished.
 * Failures go to the log. */
void checkpoint_keep(const char *checkpoints, int64_t step, int64_t keep, bool later);

/* Removes what a run that was killed while it wrote one has left: .step-00000520.tmp. All that can
 * be removed is; an error if something cannot. */
int checkpoint_remove_unfinished(const char *checkpoints, struct error *e);

/* The step of a folder's name; false: it is no checkpoint's. */
bool checkpoint_step(const char *name, int64_t *step);

#define CHECKPOINT_MODEL     "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"

/* Of a job with averaged weights (ema), from the epoch on that they begin in. */
#define CHECKPOINT_EMA "ema.safetensors"

/* Of each machine of a run that was stopped where it would not have written a checkpoint, by its
 * first rank: worker/save/rank_statistics.h */
#define CHECKPOINT_STATISTICS_OF "statistics-%d.safetensors"

/* What a folder holds beside state.json: "files" there, digests by name. NULL: it lacks one that
 * each checkpoint has, or names what is not in the folder. */
json_t *checkpoint_files(const json_t *state);

/* state.json's own digest (its "xxh128"): of its values without the digest, so that no editor's
 * spaces matter. */
void checkpoint_state_digest(const json_t *state, char hex[DIGEST_BYTES]);
