/*
 * The plan's chapter on batches by epoch. With batch_schedule "fill" each size of images has a
 * batch of its own, and so a phase with its own steps per epoch; otherwise the run is one phase.
 *
 * Without steps_rounding exact, phases begin between two epochs (job_check.c sees to it), so an
 * epoch has steps of one kind. With it, a phase begins at the step that is nearest to its epoch,
 * with the image behind those of the step before.
 */
#include <math.h>

#include "common/job/job_options.h"
#include "common/plan/parts.h"

#define BATCH_MULTIPLE 8    /* of a batch that the plan chooses */
#define EPOCHS_NOISE   1e-9 /* of rounding, in a sum of phases or a product: 0.1 x 12 steps */

int64_t plan_batch_of_size(const struct job_spec *spec, int64_t size)
{
    int64_t own = spec->batch_per_worker;
    int64_t most = (int64_t)job_option_find("/batch_per_worker")->max;

    if (spec->batch_schedule != JOB_BATCH_FILL)
        return own;
    int64_t bytes = own * plan_image_bytes(spec, spec->model.image_size);
    int64_t batch = bytes / plan_image_bytes(spec, size);

    batch = (batch < most ? batch : most) / BATCH_MULTIPLE * BATCH_MULTIPLE;
    return batch > own ? batch : own;
}

/* Whole steps of the node with the fewest images, with data.locality node. */
static int64_t phases_whole_steps(const struct plan *plan, const struct job_spec *spec,
                                  int64_t batch_per_worker)
{
    int64_t on_node = spec->cluster.workers_per_node * batch_per_worker * spec->accumulate_steps;
    int64_t steps = plan->train_images / (spec->cluster.nodes * on_node);
    int64_t own = plan->node_images_least / on_node;

    return plan->node_images_least > 0 && own < steps ? own : steps;
}

struct plan_phase plan_phase_of(const struct plan *plan, const struct job_spec *spec, int64_t size,
                                int64_t batch)
{
    struct plan_phase p = {
        .size = size,
        .batch_per_worker = batch,
        .global_batch = job_spec_world_size(spec) * batch * spec->accumulate_steps,
        .steps_per_epoch = phases_whole_steps(plan, spec, batch),
    };

    p.steps_in_epoch = plan->exact ? (double)plan->train_images / (double)p.global_batch
                                   : (double)p.steps_per_epoch;
    return p;
}

/* Where a phase begins that is behind another and is to begin at this epoch. */
static void phase_place(const struct plan *plan, const struct plan_phase *before, double epoch,
                        struct plan_phase *p)
{
    int64_t steps = llround((epoch - before->epoch) * before->steps_in_epoch);

    p->step = before->step + steps;
    p->first_image = before->first_image + steps * before->global_batch;
    p->epoch = plan->exact ? (double)p->first_image / (double)plan->train_images : epoch;
    if (!plan->exact)
        p->first_image = (int64_t)epoch * plan->train_images;
}

/* Those before it that would have no step are left out: a step of theirs ends behind this epoch. */
static void phase_append(struct plan *plan, double epoch, struct plan_phase *p)
{
    size_t i = plan->phase_count;

    for (p->step = 0; i > 0; i--) {
        phase_place(plan, &plan->phases[i - 1], epoch, p);
        if (p->step > plan->phases[i - 1].step)
            break;
    }
    if (i == 0) {
        p->step = p->first_image = 0;
        p->epoch = 0;
    }
    plan->phases[i] = *p;
    plan->phase_count = i + 1;
}

static bool phase_fits(const struct plan *plan, const struct plan_phase *p,
                       struct problems *problems)
{
    if (p->steps_per_epoch > 0)
        return true;
    problems_add(problems, "/batch_schedule", NULL,
                 "\"fill\" makes a global batch of %lld at %lld pixels (%lld images a worker), but "
                 "there are %lld training images: use a smaller batch_per_worker or fewer workers, "
                 "or leave batch_schedule out",
                 (long long)p->global_batch, (long long)p->size, (long long)p->batch_per_worker,
                 (long long)plan->train_images);
    return false;
}

bool plan_phases(struct plan *plan, const struct job_spec *spec, struct problems *problems)
{
    const struct job_sizes *sizes = &spec->model.sizes;
    bool fills = spec->batch_schedule == JOB_BATCH_FILL && sizes->count > 1;

    for (size_t i = 0; fills && i < sizes->count; i++) {
        int64_t size = sizes->at[i].size;
        struct plan_phase p = plan_phase_of(plan, spec, size, plan_batch_of_size(spec, size));

        if (!phase_fits(plan, &p, problems))
            return false;
        phase_append(plan, sizes->at[i].epoch, &p);
    }
    return true;
}

const struct plan_phase *plan_phase_at(const struct plan *plan, int64_t step)
{
    size_t i = plan->phase_count;

    while (i > 1 && plan->phases[i - 1].step > step)
        i--;
    return &plan->phases[i - 1];
}

double plan_epochs_after(const struct plan *plan, int64_t steps)
{
    const struct plan_phase *p = plan_phase_at(plan, steps);

    return p->epoch + (double)(steps - p->step) / p->steps_in_epoch;
}

double plan_steps_until(const struct plan *plan, double epochs)
{
    size_t i = plan->phase_count;

    while (i > 1 && plan->phases[i - 1].epoch > epochs)
        i--;
    const struct plan_phase *p = &plan->phases[i - 1];
    return (double)p->step + (epochs - p->epoch) * p->steps_in_epoch;
}

int64_t plan_phase_end(const struct plan *plan, size_t i)
{
    return i + 1 < plan->phase_count ? plan->phases[i + 1].step : INT64_MAX;
}

int64_t plan_images_of_steps(const struct plan *plan, int64_t from, int64_t to)
{
    int64_t images = 0;

    for (size_t i = 0; i < plan->phase_count; i++) {
        int64_t first = plan->phases[i].step > from ? plan->phases[i].step : from;
        int64_t end = plan_phase_end(plan, i) < to ? plan_phase_end(plan, i) : to;
        if (end > first)
            images += (end - first) * plan->phases[i].global_batch;
    }
    return images;
}

double plan_mean_batch(const struct plan *plan)
{
    if (plan->train_steps < 1)
        return (double)plan->global_batch;
    return (double)plan_images_of_steps(plan, 0, plan->train_steps) / (double)plan->train_steps;
}

bool plan_is_due(const struct plan *plan, double every_epochs, int64_t step)
{
    double period = every_epochs * plan->steps_in_epoch;

    if (!(period > 0))
        return false;
    if (plan->phase_count == 1)
        return floor((double)step / period + EPOCHS_NOISE) >
               floor((double)(step - 1) / period + EPOCHS_NOISE);
    return floor(plan_epochs_after(plan, step) / every_epochs + EPOCHS_NOISE) >
           floor(plan_epochs_after(plan, step - 1) / every_epochs + EPOCHS_NOISE);
}
