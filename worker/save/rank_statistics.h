/*
 * The running statistics of batch norm, which each rank has its own of until they are averaged; and
 * statistics-RANK.safetensors of a checkpoint: those that the ranks of one machine had before they
 * were averaged. RANK is the machine's first rank, which writes the file: "ranks", whose they are,
 * and (ranks, channels) a tensor, by torchvision's names; those of the averaged weights (ema) are
 * called "ema.NAME". Older versions wrote one statistics.safetensors, of all ranks, without
 * "ranks".
 *
 * An evaluation and a checkpoint average the statistics in the run itself. A run that is stopped
 * writes a checkpoint where an undisturbed run may have none, and would have averaged once more,
 * which rounds once more. With these files the run goes on with what each rank had.
 */
#pragma once

#include <jansson.h>

#include "worker/run.h"

/* The running means and variances of batch norm, and those of the averaged weights, which become
 * whole, after this step; r->averaged_at remembers it. Collective. */
void rank_statistics_average(struct run *r, int64_t step);

/* Before they are averaged: each machine writes its file into the folder. A run of one rank, or
 * without batch norm, has none. Rank 0 adds the digests by name. Collective; an error is the same
 * on every rank. */
int rank_statistics_save(struct run *r, const char *folder, json_t *digests, struct error *e);

/* A run that goes on: each rank takes its own from the checkpoint, if it has them and is of as many
 * ranks; otherwise all keep the average. Behind ema_resume. Collective. */
int rank_statistics_resume(struct run *r, struct error *e);
