/*
 * Running statistics of batch norm, which differ between the ranks until they are averaged, and the
 * files statistics-RANK.safetensors of a checkpoint, which hold them from before averaging. There
 * is one file per machine, written by its first rank, with the tensor "ranks" and tensors (ranks,
 * channels) of torchvision's names, and "ema.NAME". Older versions wrote one statistics.safetensors
 * without "ranks".
 *
 * Evaluations and checkpoints average the statistics of the running model, which rounds. A stopped
 * run may write a checkpoint where an uninterrupted run writes none; these files let the resumed
 * run end with the same bits anyway.
 */
#pragma once

#include <jansson.h>

#include "worker/run.h"

/* Averages the running statistics and those of the EMA over the ranks, completes the EMA, and sets
 * r->averaged_at to step. Collective. */
void rank_statistics_average(struct run *r, int64_t step);

/* Call before averaging. Each machine writes its file, and rank 0 adds the digests by file name. No
 * effect with one rank or without batch norm. Collective; an error is the same on every rank. */
int rank_statistics_save(struct run *r, const char *folder, json_t *digests, struct error *e);

/* Call after ema_resume. Each rank restores its own statistics if the checkpoint has them for the
 * same number of ranks; otherwise all ranks keep the average. Collective. */
int rank_statistics_resume(struct run *r, struct error *e);
