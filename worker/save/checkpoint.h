/* checkpoints/step-00000520/: model.safetensors (torchvision's names), optimizer.safetensors,
 * state.json, and if applicable ema.safetensors and statistics-RANK.safetensors
 * (rank_statistics.h). Written into a hidden folder and renamed, so always complete. */
#pragma once

#include "worker/optim/optimizer.h"
#include "worker/run.h"

/* Averages the running statistics over the ranks, writes, and removes all but the newest
 * checkpoint.keep. stopped: an undisturbed run would write none here, so each rank's statistics are
 * saved too. relative (64 bytes or NULL) gets "checkpoints/step-%08d/model.safetensors". Errors
 * leave the older checkpoints. Collective. */
int checkpoint_write(struct run *r, struct optimizer *optimizer, const struct run_state *state,
                     bool stopped, char *relative, struct error *e);

/* After the run's last checkpoint: with checkpoint.keep auto, rank 0 removes the earlier ones. */
void checkpoint_keep_last(const struct run *r, int64_t step);
