/* The folders of checkpoints, RUN/checkpoints/step-00000520. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/digest.h"

/* Lists checkpoints, newest first. Returns their number (0 without the folder), or an
 * error with *names NULL. */
int checkpoint_list(const char *checkpoints, struct dirent ***names, struct error *e);
void checkpoint_list_free(struct dirent **names, int count);

/* Removes all but the newest `keep` checkpoints up to `step`, and the best ones. If `later` is
 * true, also removes those of later steps, which a resumed run has left. Each is renamed first, so
 * that an interrupted removal leaves no broken checkpoint. Errors are logged. */
void checkpoint_keep(const char *checkpoints, int64_t step, int64_t keep, bool later);

/* Removes folders such as .step-00000520.tmp, left by a run that was killed while writing.
 * Continues after errors; returns an error if any is left. */
int checkpoint_remove_unfinished(const char *checkpoints, struct error *e);

/* Parses the step in a folder's name. Returns false if it is not that of a checkpoint. */
bool checkpoint_step(const char *name, int64_t *step);

#define CHECKPOINT_MODEL     "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"

#define CHECKPOINT_EMA "ema.safetensors"

/* Exists in checkpoints of a stopped run, one file for each machine: see
 * worker/save/rank_statistics.h. */
#define CHECKPOINT_STATISTICS_OF "statistics-%d.safetensors"

/* In state.json: what the evaluations decided (worker/monitor.h), with an array of the steps of the
 * best ones. */
#define CHECKPOINT_MONITOR "monitor"
#define CHECKPOINT_BEST    "best"

/* Returns the steps of the checkpoints kept for checkpoint.keep_best, the best first, as the
 * newest checkpoint's state.json lists them; NULL or empty: none. */
const json_t *checkpoint_best(const json_t *state);

/* Returns the place of a step among them, from 1, or 0. */
int checkpoint_place(const json_t *best, int64_t step);

/* Returns the member "files" of state.json: digests by file name. NULL if a file that every
 * checkpoint has is missing, or a name leads out of the folder. */
json_t *checkpoint_files(const json_t *state);

/* Computes the digest ("xxh128") of state.json's other values; white space is irrelevant. */
void checkpoint_state_digest(const json_t *state, char hex[DIGEST_BYTES]);
