/*
 * Running statistics of batch norm, which differ between the ranks until they are averaged, and
 * statistics-RANK.safetensors of a checkpoint, from before averaging: one file per machine, written
 * by its first rank, with the tensor "ranks" and (ranks, channels) tensors of torchvision's names,
 * also "ema.NAME". Older versions wrote one statistics.safetensors without "ranks".
 *
 * Evaluations and checkpoints average the statistics in the run itself, which rounds. A stopped run
 * may write a checkpoint where an undisturbed run has none; with these files the resumed run still
 * ends with the same bits.
 */
#pragma once

#include <jansson.h>

#include "worker/run.h"

/* Averages the running statistics and those of the EMA over the ranks and completes the EMA;
 * r->averaged_at becomes step. Collective. */
void rank_statistics_average(struct run *r, int64_t step);

/* Before averaging: each machine writes its file; rank 0 adds the digests by file name. No effect
 * with one rank or without batch norm. Collective; an error is the same on every rank. */
int rank_statistics_save(struct run *r, const char *folder, json_t *digests, struct error *e);

/* After ema_resume: each rank restores its own statistics if the checkpoint has them for as many
 * ranks; otherwise all keep the average. Collective. */
int rank_statistics_resume(struct run *r, struct error *e);
