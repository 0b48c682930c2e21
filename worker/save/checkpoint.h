/* checkpoints/step-00000520/: model.safetensors (torchvision's names), optimizer.safetensors,
 * state.json, and if applicable ema.safetensors and statistics-RANK.safetensors
 * (rank_statistics.h). A checkpoint is written into a hidden folder, which is then renamed, so it
 * is always complete. */
#pragma once

#include "worker/optim/optimizer.h"
#include "worker/run.h"

/* Averages the running statistics over the ranks, writes a checkpoint, and removes all but the
 * newest checkpoint.keep ones. stopped: an uninterrupted run would not write one here, so the
 * statistics of each rank are saved too. relative (64 bytes, or NULL) gets
 * "checkpoints/step-%08d/model.safetensors". On an error the older ones are kept. Collective. */
int checkpoint_write(struct run *r, struct optimizer *optimizer, const struct run_state *state,
                     bool stopped, char *relative, struct error *e);

/* Call after the last checkpoint. If checkpoint.keep is "auto", rank 0 removes the earlier ones. */
void checkpoint_keep_last(const struct run *r, int64_t step);
