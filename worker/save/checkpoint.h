/*
 * checkpoints/step-00000520/: model.safetensors (torchvision's names), optimizer.safetensors,
 * state.json, and where they exist ema.safetensors (worker/ema.h) and statistics-RANK.safetensors
 * (rank_statistics.h). Made in a hidden folder and renamed, so that a folder of that name is always
 * whole.
 */
#pragma once

#include "worker/optim/optimizer.h"
#include "worker/run.h"

/* relative (64 bytes, may be NULL) gets "checkpoints/step-%08d/model.safetensors".
 * Averages the running statistics over the ranks; rank 0 writes and removes all but the newest
 * checkpoint.keep. stopped: an undisturbed run would have none here, and what each rank has is
 * saved too. Collective. ERR_NO_SPACE and ERR_IO leave the older checkpoints as they are. */
int checkpoint_write(struct run *r, struct optimizer *optimizer, const struct run_state *state,
                     bool stopped, char *relative, struct error *e);

/* After success: with checkpoint.keep auto, rank 0 removes those before the one of this step, which
 * is the last and complete. */
void checkpoint_keep_last(const struct run *r, int64_t step);
