/* The optimiser that a job names (optimizer.name), for those who need not know which: training and
 * checkpoints. */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "worker/model/model.h"

struct optimizer;

/* The model must outlive it; of the spec it takes a copy of what it needs. */
int optimizer_create(struct model *m, const struct job_spec *spec, struct optimizer **out,
                     struct error *e);
void optimizer_destroy(struct optimizer *o); /* NULL is fine */

/* Updates the model's parameters from its gradients, which are divided by loss_scale first. Returns
 * the sum of the squared gradients (without decay). The bits do not depend on the number of
 * threads. */
double optimizer_step(struct optimizer *o, double lr);

/* Where a resumed run begins: how many steps were done, and the rate of the last of them. On every
 * rank. */
void optimizer_set_place(struct optimizer *o, int64_t steps, double last_lr);

/* What it remembers from step to step (common/job/recipe/optimizers.h): each is one number for each
 * of model_params, in that layout. */
size_t optimizer_states(const struct optimizer *o);
float *optimizer_state(struct optimizer *o, size_t i);

/* Writes all of that as "exp_avg.NAME" and so on, in torchvision's shapes, to a safetensors file,
 * with the optimiser's name and the step; reads it back, bit for bit. ERR_CONFLICT for another
 * optimiser's. */
int optimizer_save(struct optimizer *o, int64_t step, const char *path, struct error *e);
int optimizer_load(struct optimizer *o, const char *path, struct error *e);
