/*
 * Plans a job again for another number of workers, for example after a resume.
 *
 * restart.on_fewer_nodes "rescale": each worker keeps its batch, so the global batch and
 * (lr.scaling) the learning rate change. "keep_batch": accumulate_steps divides the same global
 * batch among the workers, and the schedule stays. Both also apply to more workers.
 */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"

/* Changes cluster, batch_per_worker, accumulate_steps and (rescale) steps. Returns ERR_INVALID if
 * keep_batch cannot divide the batch evenly. */
int replan_spec(struct job_spec *spec, int64_t world, struct error *e);

/* The inverse of replan_place: sets the epoch of a step of the schedule and the number of its
 * images before that step. first_step, image_shift: start of the run, from replan_place; 0 for a
 * run from the beginning. */
void replan_position(const struct plan *plan, int64_t schedule_step, int64_t first_step,
                     int64_t image_shift, int64_t *epoch, int64_t *epoch_images);

/* Finds the position in a plan of a checkpoint taken after `epoch_images` images of an epoch.
 * *schedule_step steps are done, and the images of later steps of the epoch are at their positions
 * + *image_shift (loader.h, first_epoch_shift). Exact if the global batch is that of the
 * checkpoint. With another one the next step begins at the first unused image, and the epoch drops
 * at most one more partial batch. With data.locality node each node has its share of both. */
void replan_place(int64_t epoch, int64_t epoch_images, const struct plan *plan,
                  int64_t *schedule_step, int64_t *image_shift);
