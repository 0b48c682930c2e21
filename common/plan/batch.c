/* Batches and steps, rounded as the scripts of SURFsara and Intel (explain.c) do. */
#include <math.h>

#include "common/plan/parts.h"

static bool batch_fits(const struct plan *plan, const struct job_spec *spec,
                       struct problems *problems)
{
    int64_t share = plan->train_images / (plan->world_size * spec->accumulate_steps);

    if (plan->steps_per_epoch > 0)
        return true;
    if (share > 0)
        problems_add(problems, spec->has_global_batch ? "/global_batch" : "/batch_per_worker", NULL,
                     "makes a global batch of %lld, but there are %lld training images: use at "
                     "most %lld images per worker",
                     (long long)plan->global_batch, (long long)plan->train_images,
                     (long long)share);
    else if (plan->train_images >= plan->world_size)
        problems_add(problems, "/accumulate_steps", NULL,
                     "needs %lld images from each of %lld workers per step, more than the %lld "
                     "training images allow; use at most %lld",
                     (long long)spec->accumulate_steps, (long long)plan->world_size,
                     (long long)plan->train_images,
                     (long long)(plan->train_images / plan->world_size));
    else
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "makes %lld workers, more than the %lld training images can feed",
                     (long long)plan->world_size, (long long)plan->train_images);
    return false;
}

bool plan_batch(struct plan *plan, const struct job_spec *spec, struct problems *problems)
{
    if (job_spec_leaves_workers(spec)) {
        problems_add(problems, "/cluster/workers_per_node", NULL,
                     "0 leaves the workers to the plan, and a node's cores are not known here: "
                     "give a number, or let traind plan the job");
        return false;
    }
    plan->world_size = job_spec_world_size(spec);
    plan->batch_per_node = spec->cluster.workers_per_node * spec->batch_per_worker;
    plan->global_batch = spec->cluster.nodes * plan->batch_per_node * spec->accumulate_steps;
    if (plan->mode == JOB_MODE_EVAL)
        return true;
    if (plan->train_images < 1) {
        problems_add(problems, "/data/train_images", NULL,
                     "is not known: the plan needs the number of training images");
        return false;
    }
    plan->exact = spec->steps_rounding == JOB_ROUNDING_EXACT;
    plan->phases[0] = plan_phase_of(plan, spec, spec->model.image_size, spec->batch_per_worker);
    plan->phase_count = 1;
    plan->steps_per_epoch = plan->phases[0].steps_per_epoch;
    plan->steps_in_epoch = plan->phases[0].steps_in_epoch;
    plan->dropped_images_per_epoch =
        plan->exact ? 0 : plan->train_images - plan->steps_per_epoch * plan->global_batch;
    if (!batch_fits(plan, spec, problems) || !plan_phases(plan, spec, problems))
        return false;
    plan->warmup_steps = llround(plan_steps_until(plan, spec->lr.warmup_epochs));
    plan->train_steps =
        spec->has_steps ? spec->steps : llround(plan_steps_until(plan, spec->epochs));
    if (plan->train_steps > 0)
        return true;
    problems_add(problems, "/epochs", NULL,
                 "is less than one step: an epoch has %.10g steps, of which %.10g epochs are %.3g",
                 plan->steps_in_epoch, spec->epochs, plan->steps_in_epoch * spec->epochs);
    return false;
}
