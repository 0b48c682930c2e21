/*
 * A job on another number of workers than it asks for, as a resumed one may have to run.
 *
 * restart.on_fewer_nodes "rescale": each worker keeps its batch, so the global batch and with it
 * (lr.scaling) the learning rate change. "keep_batch": the global batch stays, shared out over the
 * workers by accumulate_steps; the schedule then stays as it is. Both hold for more workers too.
 */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/plan.h"

/* Changes cluster, batch_per_worker, accumulate_steps and (rescale) steps of the spec. ERR_INVALID
 * when keep_batch cannot share the batch out evenly. */
int replan_spec(struct job_spec *spec, int64_t world, struct error *e);

/* The inverse of replan_place: the epoch that a step of the schedule belongs to, and how many of
 * its images are done before it. first_step: the schedule's step that the run began at, with
 * image_shift as replan_place gave it (a run from the beginning: both 0). */
void replan_position(const struct plan *plan, int64_t schedule_step, int64_t first_step,
                     int64_t image_shift, int64_t *epoch, int64_t *epoch_images);

/* Where a checkpoint (after so many images of an epoch) stands in a plan: *schedule_step of it are
 * done, and the images of that epoch's later steps stand at their positions + *image_shift
 * (loader.h, first_epoch_shift). With the checkpoint's own global batch this is exact; with another
 * one the next step begins at the first image that was not seen, and at most one partial batch more
 * than usual is dropped at the epoch's end. With data.locality node each node has its share of
 * these images, and of the shift. */
void replan_place(int64_t epoch, int64_t epoch_images, const struct plan *plan,
                  int64_t *schedule_step, int64_t *image_shift);
