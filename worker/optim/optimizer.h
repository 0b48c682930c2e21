/* The optimiser that a job names (optimizer.name), for those who need not know which: training and
 * checkpoints. */
#ifndef TRAIND_WORKER_OPTIM_OPTIMIZER_H
#define TRAIND_WORKER_OPTIM_OPTIMIZER_H

#include <stdint.h>

#include "common/error.h"
#include "common/job_spec.h"
#include "worker/model/model.h"

struct optimizer;

/* The model must outlive it. */
int optimizer_create(struct model *m, const struct job_spec *spec, struct optimizer **out,
                     struct error *e);
void optimizer_destroy(struct optimizer *o); /* NULL is fine */

/* Updates the model's parameters from its gradients. Returns the sum of the squared gradients
 * (without decay). The caller calls model_params_changed. */
double optimizer_step(struct optimizer *o, double lr);

/* The rate of the last step, where a resumed run begins: for optimizer.momentum_correction. On
 * every rank. */
void optimizer_set_last_rate(struct optimizer *o, double lr);

/* What it remembers from step to step: one number for each of model_params, in that layout. */
float *optimizer_momentum(struct optimizer *o);

/* Writes that as "momentum.NAME", in torchvision's shapes, to a safetensors file, with the
 * optimiser's name and the step; reads it back, bit for bit. ERR_CONFLICT for another optimiser's.
 */
int optimizer_save(struct optimizer *o, int64_t step, const char *path, struct error *e);
int optimizer_load(struct optimizer *o, const char *path, struct error *e);

#endif
