/*
 * checkpoints/step-00000520/: model.safetensors (torchvision's names), optimizer.safetensors,
 * state.json, and if applicable ema.safetensors (worker/ema.h) and statistics-RANK.safetensors
 * (rank_statistics.h). Written into a hidden folder and then renamed, so a folder with that name is
 * always complete.
 */
#pragma once

#include "worker/optim/optimizer.h"
#include "worker/run.h"

/* Averages the running statistics over the ranks; rank 0 writes the checkpoint and removes all but
 * the newest checkpoint.keep. stopped: an undisturbed run would write none here, so each rank's
 * statistics are saved too. relative (64 bytes, may be NULL) gets
 * "checkpoints/step-%08d/model.safetensors". After ERR_NO_SPACE or ERR_IO the older checkpoints are
 * untouched. Collective. */
int checkpoint_write(struct run *r, struct optimizer *optimizer, const struct run_state *state,
                     bool stopped, char *relative, struct error *e);

/* Call after the run's last checkpoint was written: with checkpoint.keep auto, rank 0 removes the
 * earlier ones. */
void checkpoint_keep_last(const struct run *r, int64_t step);
