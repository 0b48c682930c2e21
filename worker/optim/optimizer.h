/* The optimiser of a job (optimizer.name) */
#pragma once

#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "worker/model/model.h"

struct optimizer;

/* The model must outlive it; copies what it needs of the spec. peak_lr is that of the schedule, to
 * which sgdw's decay refers. */
int optimizer_create(struct model *m, const struct job_spec *spec, double peak_lr,
                     struct optimizer **out, struct error *e);
void optimizer_destroy(struct optimizer *o); /* NULL is fine */

/* Updates the parameters from the gradients, which it first divides by loss_scale and clips.
 * Returns the sum of the squared gradients before clipping. The bits do not depend on the number of
 * threads. */
double optimizer_step(struct optimizer *o, double lr);

/* The same, shared by ranks (traincomm_gradients_update, with the optimiser as context): each
 * begins, updates its ranges, adds the others' squares, which are 0 here, and ends. Not if
 * job_optimizer_norms_first. Offsets are those of the gradients from model_first_trained on. */
void optimizer_begin(struct optimizer *o, double lr);
void optimizer_update(void *optimizer, size_t first, size_t end, float *gradients);
size_t optimizer_cut(void *optimizer, size_t at);
double *optimizer_squares(const struct optimizer *o, size_t *count);
double optimizer_end(const struct optimizer *o);

/* Start of a resumed run: steps done, and the rate of the last one. Call on every rank. */
void optimizer_set_place(struct optimizer *o, int64_t steps, double last_lr);

/* State arrays (common/job/recipe/optimizers.h), each with the layout of model_params, of which the
 * part from model_first_trained on is used. */
size_t optimizer_states(const struct optimizer *o);
float *optimizer_state(struct optimizer *o, size_t i);

/* Writes the state as "exp_avg.NAME" and so on, in torchvision's shapes, with the optimiser's name
 * and the step; reads it back, bit for bit. ERR_CONFLICT for another optimiser's. */
int optimizer_save(struct optimizer *o, int64_t step, const char *path, struct error *e);
int optimizer_load(struct optimizer *o, const char *path, struct error *e);
