#include "common/plan/replan.h"

#include <math.h>

#include "common/job/job_check.h"

static int64_t replan_global_batch(const struct job_spec *spec)
{
    return job_spec_world_size(spec) * spec->batch_per_worker * spec->accumulate_steps;
}

static void replan_rescale(struct job_spec *spec, int64_t world)
{
    int64_t before = replan_global_batch(spec);

    spec->cluster.nodes = 1;
    spec->cluster.workers_per_node = world;
    if (!spec->has_steps)
        return;
    spec->steps = llround((double)spec->steps * (double)before / (double)replan_global_batch(spec));
    if (spec->steps < 1)
        spec->steps = 1;
}

/* The largest batch that fits into memory, divides a worker's share and suffices for batch norm. */
static int replan_keep_batch(struct job_spec *spec, int64_t world, struct error *e)
{
    int64_t all = replan_global_batch(spec), share = all / world;
    int64_t most = share < spec->batch_per_worker ? share : spec->batch_per_worker;
    int64_t batch = share > 0 ? job_batch_even(share, most) : 0;

    if (all % world != 0 || batch < 1 || 2 * batch < most)
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
    spec->has_global_batch = false; /* the values set below apply */
    if (spec->restart.on_fewer_nodes == JOB_RESCALE_KEEP_BATCH)
        return replan_keep_batch(spec, world, e);
    replan_rescale(spec, world);
    return 0;
}

static const struct plan_phase *replan_phase_of_image(const struct plan *plan, int64_t epoch,
                                                      int64_t epoch_images)
{
    size_t i = plan->phase_count;
    int64_t place = epoch * plan->train_images + epoch_images;

    while (i > 1 && plan->phases[i - 1].first_image > place)
        i--;
    return &plan->phases[i - 1];
}

static int64_t replan_first_epoch(const struct plan_phase *p)
{
    return (int64_t)p->epoch;
}

void replan_place(int64_t epoch, int64_t epoch_images, const struct plan *plan,
                  int64_t *schedule_step, int64_t *image_shift)
{
    const struct plan_phase *p = replan_phase_of_image(plan, epoch, epoch_images);
    int64_t batch = p->global_batch;
    int64_t images =
        plan->exact ? epoch * plan->train_images + epoch_images - p->first_image : epoch_images;
    int64_t steps = (images + batch - 1) / batch;

    if (plan->exact) {
        *schedule_step = p->step + steps;
        *image_shift = images - steps * batch;
        return;
    }
    bool over = steps >= p->steps_per_epoch;
    *schedule_step =
        p->step + (epoch - replan_first_epoch(p) + over) * p->steps_per_epoch + (over ? 0 : steps);
    *image_shift = over ? 0 : epoch_images - steps * batch;
}

static int64_t replan_epoch_of_step(const struct plan *plan, int64_t step)
{
    const struct plan_phase *p = plan_phase_at(plan, step);

    return replan_first_epoch(p) + (step - p->step) / p->steps_per_epoch;
}

void replan_position(const struct plan *plan, int64_t schedule_step, int64_t first_step,
                     int64_t image_shift, int64_t *epoch, int64_t *epoch_images)
{
    const struct plan_phase *p = plan_phase_at(plan, schedule_step);
    int64_t steps = schedule_step - p->step;

    if (plan->exact) {
        int64_t images = p->first_image + steps * p->global_batch + image_shift;
        *epoch = images / plan->train_images;
        *epoch_images = images % plan->train_images;
        return;
    }
    *epoch = replan_epoch_of_step(plan, schedule_step);
    *epoch_images = steps % p->steps_per_epoch * p->global_batch +
                    (*epoch == replan_epoch_of_step(plan, first_step) ? image_shift : 0);
}
