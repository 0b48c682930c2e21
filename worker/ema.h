/* Exponential moving average of the weights and of batch norm's running statistics: after each step
 * from ema.from_epoch on, or each ema.every steps, average = d average + (1 - d) weights (Polyak
 * and Juditsky 1992; TensorFlow's ExponentialMovingAverage). With ema.warmup the decay d of update
 * n is at most (1 + n) / (10 + n). Each rank averages its share of the weights, until ema_gather.
 * The result does not depend on the number of ranks. */
#pragma once

#include "worker/run.h"

struct ema;

/* Sets r->ema; NULL if the job has none. */
int ema_create(struct run *r, struct error *e);

/* Reads the average of the checkpoint. Collective. */
int ema_resume(struct run *r, struct error *e);
void ema_destroy(struct ema *m); /* NULL is fine */

/* Call after step `step` (0-based) of the plan's schedule. */
void ema_update(struct run *r, int64_t step);

/* True after the first step of ema.from_epoch. */
bool ema_has_begun(const struct ema *m);

/* Completes the average on all ranks. Collective. */
void ema_gather(struct run *r);

/* This rank's, laid out as model_stats. */
float *ema_stats(struct ema *m);

/* Exchanges weights and statistics of the model with the average; a second call undoes it. */
void ema_swap(struct run *r);
