/*
 * The running statistics of batch norm, which each rank has its own of until they are averaged; and
 * statistics.safetensors of a checkpoint: the running statistics of batch norm that each rank had
 * before they were averaged, (ranks, channels) a tensor, by torchvision's names; those of the
 * averaged weights (ema) are called "ema.NAME".
 *
 * An evaluation and a checkpoint average the statistics in the run itself. A run that is stopped
 * writes a checkpoint where an undisturbed run may have none, and would have averaged once more,
 * which rounds once more. With this file the run goes on with what each rank had.
 */
#ifndef TRAIND_WORKER_SAVE_RANK_STATISTICS_H
#define TRAIND_WORKER_SAVE_RANK_STATISTICS_H

#include "worker/run.h"

/* Of rank 0; the others have none. */
struct rank_statistics {
    float *of_model;   /* (ranks, model_stat_count); NULL: none */
    float *of_average; /* the same; NULL: no averaged weights */
};

/* The running means and variances of batch norm, and those of the averaged weights, which become
 * whole, after this step; r->averaged_at remembers it. Collective. */
void rank_statistics_average(struct run *r, int64_t step);

/* Before they are averaged. A run of one rank, or without batch norm, has none. Collective; an
 * error is the same on every rank. */
int rank_statistics_gather(struct run *r, struct rank_statistics *out, struct error *e);
void rank_statistics_free(struct rank_statistics *s);

/* Writes folder/statistics.safetensors, if there is anything to write. Rank 0. */
int rank_statistics_save(const struct run *r, const struct rank_statistics *s, const char *folder,
                         struct error *e);

/* A run that goes on: each rank takes its own from the checkpoint, if it has them and is of as many
 * ranks; otherwise all keep the average. Behind ema_resume. Collective. */
int rank_statistics_resume(struct run *r, struct error *e);

#endif
