#include "common/plan/replan.h"

#include <math.h>

#include "common/job/job_batch.h"

static int64_t global_batch(const struct job_spec *spec)
{
    return job_spec_world_size(spec) * spec->batch_per_worker * spec->accumulate_steps;
}

static void replan_rescale(struct job_spec *spec, int64_t world)
{
    int64_t before = global_batch(spec);

    spec->cluster.nodes = 1;
    spec->cluster.workers_per_node = world;
    if (!spec->has_steps)
        return;
    spec->steps = llround((double)spec->steps * (double)before / (double)global_batch(spec));
    if (spec->steps < 1)
        spec->steps = 1;
}

/* The largest batch that fits into memory and divides a worker's share; but batch norm wants no
 * tiny ones. */
static int keep_batch(struct job_spec *spec, int64_t world, struct error *e)
{
    int64_t all = global_batch(spec), share = all / world;
    int64_t most = share < spec->batch_per_worker ? share : spec->batch_per_worker;
    int64_t batch = share > 0 ? job_batch_even(share, most) : 0;

    if (all % world != 0 || 2 * batch < most)
        return error_set(
            e, ERR_INVALID,
            "restart.on_fewer_nodes is keep_batch, but a global batch of %lld images "
            "cannot be shared out over %lld workers in even batches of about %lld: use "
            "another number of workers, or rescale",
            (long long)all, (long long)world, (long long)spec->batch_per_worker);
    spec->cluster.nodes = 1;
    spec->cluster.workers_per_node = world;
    spec->batch_per_worker = batch;
    spec->accumulate_steps = share / batch;
    return 0;
}

int replan_spec(struct job_spec *spec, int64_t world, struct error *e)
{
    spec->has_global_batch = false; /* what follows decides */
    if (spec->restart.on_fewer_nodes == JOB_RESCALE_KEEP_BATCH)
        return keep_batch(spec, world, e);
    replan_rescale(spec, world);
    return 0;
}

void replan_place(int64_t epoch, int64_t epoch_images, const struct plan *plan,
                  int64_t *schedule_step, int64_t *image_shift)
{
    int64_t batch = plan->global_batch;
    int64_t images = plan->exact ? epoch * plan->train_images + epoch_images : epoch_images;
    int64_t steps = (images + batch - 1) / batch;

    if (plan->exact) {
        *schedule_step = steps;
        *image_shift = images - steps * batch;
        return;
    }
    *schedule_step = epoch * plan->steps_per_epoch + steps;
    *image_shift = epoch_images - steps * batch;
    if (steps < plan->steps_per_epoch)
        return;
    *schedule_step = (epoch + 1) * plan->steps_per_epoch;
    *image_shift = 0;
}

void replan_position(const struct plan *plan, int64_t schedule_step, int64_t first_step,
                     int64_t image_shift, int64_t *epoch, int64_t *epoch_images)
{
    if (plan->exact) {
        int64_t images = schedule_step * plan->global_batch + image_shift;
        *epoch = images / plan->train_images;
        *epoch_images = images % plan->train_images;
        return;
    }
    *epoch = schedule_step / plan->steps_per_epoch;
    *epoch_images = schedule_step % plan->steps_per_epoch * plan->global_batch +
                    (*epoch == first_step / plan->steps_per_epoch ? image_shift : 0);
}
