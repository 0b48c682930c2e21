/*
 * Averaged weights: after each step from ema.from_epoch on, average = d average + (1 - d) weights,
 * running statistics of batch norm included (Polyak and Juditsky 1992; TensorFlow's
 * ExponentialMovingAverage). With ema.warmup the decay d of update n is at most
 * (1 + n) / (10 + n), so that the first weights are soon forgotten.
 *
 * Each rank averages its share of the weights, so that it costs a world's part of a pass over them;
 * the shares are brought together where the average is looked at: evaluations and checkpoints.
 * Statistics differ between ranks, so each rank averages its own, and the ranks' averages are
 * averaged where those of the model are. Numbers do not depend on how many ranks share them.
 */
#pragma once

#include "worker/run.h"

struct ema;

/* r->ema; NULL: the job has none. */
int ema_create(struct run *r, struct error *e);

/* A run that goes on reads the checkpoint's. Collective. */
int ema_resume(struct run *r, struct error *e);
void ema_destroy(struct ema *m); /* NULL is fine */

/* After the step of the plan's schedule with this number (0-based). */
void ema_update(struct run *r, int64_t step);

/* There is an average: the first step of ema.from_epoch is done. */
bool ema_has_begun(const struct ema *m);

/* The average becomes whole on all ranks. Collective. */
void ema_gather(struct run *r);

/* Of this rank, as model_stats. */
float *ema_stats(struct ema *m);

/* Exchanges weights and statistics of the model with the average; the same again undoes it. */
void ema_swap(struct run *r);
