/* The plan's chapter on the size of images: model.image_size by steps, and what it costs. */
#include <math.h>

#include "common/net/arch.h"
#include "common/plan/parts.h"

void plan_sizes(struct plan *plan, const struct job_spec *spec)
{
    const struct job_sizes *sizes = &spec->model.sizes;

    plan->sizes[0] = (struct plan_size){0, spec->model.image_size};
    plan->size_count = 1;
    if (plan->phase_count > 1) {
        for (size_t i = 0; i < plan->phase_count; i++)
            plan->sizes[i] = (struct plan_size){plan->phases[i].step, plan->phases[i].size};
        plan->size_count = plan->phase_count;
        return;
    }
    for (size_t i = 0; plan->mode == JOB_MODE_TRAIN && i < sizes->count; i++) {
        int64_t step = llround(plan->steps_in_epoch * sizes->at[i].epoch);
        if (plan->sizes[plan->size_count - 1].step == step)
            plan->size_count--; /* the one before it would have no step */
        plan->sizes[plan->size_count++] = (struct plan_size){step, sizes->at[i].size};
    }
}

double plan_size_cost(const struct job_spec *spec, int64_t size)
{
    struct arch_shape shape = arch_shape_of(spec);

    if (size == shape.image_size)
        return 1;
    double largest = arch_forward_macs(&shape);
    shape.image_size = (int)size;
    return arch_forward_macs(&shape) / largest;
}

/* Images of a step of this size, by those of the last batch. */
static double sizes_batch_cost(const struct plan *plan, const struct plan_size *size)
{
    return (double)plan_phase_at(plan, size->step)->global_batch / (double)plan->global_batch;
}

double plan_steps_cost(const struct plan *plan, const struct job_spec *spec, int64_t from,
                       int64_t to)
{
    double cost = 0;

    for (size_t i = 0; i < plan->size_count; i++) {
        int64_t first = plan->sizes[i].step > from ? plan->sizes[i].step : from;
        int64_t end =
            i + 1 < plan->size_count && plan->sizes[i + 1].step < to ? plan->sizes[i + 1].step : to;
        if (end > first)
            cost += (double)(end - first) * plan_size_cost(spec, plan->sizes[i].size) *
                    sizes_batch_cost(plan, &plan->sizes[i]);
    }
    return cost;
}
