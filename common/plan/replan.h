/*
 * A job on another number of workers than it asks for, as after a resume.
 *
 * restart.on_fewer_nodes "rescale": each worker keeps its batch, so the global batch and
 * (lr.scaling) the learning rate change. "keep_batch": accumulate_steps shares the same global
 * batch over the workers, and the schedule stays. Both also apply to more workers.
 */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"

/* Changes cluster, batch_per_worker, accumulate_steps and (rescale) steps. ERR_INVALID if
 * keep_batch cannot divide the batch evenly. */
int replan_spec(struct job_spec *spec, int64_t world, struct error *e);

/* The inverse of replan_place: the epoch of a step of the schedule, and how many of its images
 * precede it. first_step, image_shift: where the run began, from replan_place; 0 for a run from the
 * beginning. */
void replan_position(const struct plan *plan, int64_t schedule_step, int64_t first_step,
                     int64_t image_shift, int64_t *epoch, int64_t *epoch_images);

/* Where a checkpoint taken after these images of an epoch is in a plan: *schedule_step steps are
 * done, and images of the epoch's later steps are at their positions + *image_shift (loader.h,
 * first_epoch_shift). Exact with the checkpoint's global batch; with another the next step begins
 * at the first unseen image, and the epoch drops at most one more partial batch. With data.locality
 * node each node has its share of the images and the shift. */
void replan_place(int64_t epoch, int64_t epoch_images, const struct plan *plan,
                  int64_t *schedule_step, int64_t *image_shift);
