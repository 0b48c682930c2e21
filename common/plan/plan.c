#include "common/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#include "common/job/job_options.h"
#include "common/json.h"
#include "common/net/arch.h"
#include "common/number.h"
#include "common/plan/memory.h"

#define BATCH_MULTIPLE 8 /* multiple used for a batch that the plan chooses */
/* Rounding errors of a sum of phases or of a product such as 0.1 x 12 steps */
#define EPOCHS_NOISE 1e-9

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    json_decref(plan->warnings);
    json_decref(plan->explain);
    free(plan);
}

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

double plan_size_cost(const struct job_spec *spec, int64_t size)
{
    struct arch_shape shape = arch_shape_of(spec);

    if (size == shape.image_size)
        return 1;
    double largest = arch_forward_macs(&shape);
    shape.image_size = (int)size;
    return arch_forward_macs(&shape) / largest;
}

static double plan_batch_cost(const struct plan *plan, const struct plan_size *size)
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
                    plan_batch_cost(plan, &plan->sizes[i]);
    }
    return cost;
}

double plan_cost_until(const struct plan *plan, const struct job_spec *spec, double steps)
{
    int64_t whole = llround(fmax(steps, 1));

    return plan_steps_cost(plan, spec, 0, whole) / (double)whole / plan->step_cost;
}

double plan_evaluation_passes(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);
    double share = arch_forward_macs(&shape) / arch_training_macs(&shape) / PREDICT_EVAL_COST;

    return share * plan_size_cost(spec, job_spec_eval_size(spec)) * (spec->eval.flip ? 2 : 1) *
           (job_spec_averages(spec) ? 2 : 1);
}

int64_t plan_evaluations(const struct plan *plan, const struct job_spec *spec)
{
    double epochs;

    if (plan->eval_images < 1)
        return 0;
    if (spec->eval.every_epochs <= 0 || plan->steps_per_epoch < 1)
        return 1;
    epochs = plan_epochs_after(plan, plan->train_steps);
    return (int64_t)fmax(1, ceil(epochs / spec->eval.every_epochs));
}

json_t *plan_band_to_json(bool known, const struct plan_band *band)
{
    if (!known)
        return json_pack("{s:n, s:n, s:n}", "value", "low", "high");
    return json_pack("{s:o, s:o, s:o}", "value", json_number(number_rounded(band->value)), "low",
                     json_number(number_rounded(band->low)), "high",
                     json_number(number_rounded(band->high)));
}

static json_t *plan_predicted_to_json(const struct plan *plan)
{
    bool known = plan->predicted.known;

    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "images_per_sec",
        plan_band_to_json(known, &plan->predicted.images_per_sec), "images_per_second",
        plan_band_to_json(known, &plan->predicted.images_per_sec), "ttt_seconds",
        plan_band_to_json(known, &plan->predicted.ttt_seconds), "node_hours",
        plan_band_to_json(known, &plan->predicted.node_hours), "kwh",
        plan_band_to_json(known && !isnan(plan->predicted.kwh.value), &plan->predicted.kwh), "cost",
        plan_band_to_json(known && !isnan(plan->predicted.cost.value), &plan->predicted.cost),
        "currency", json_text_or_null(plan->predicted.currency));
}

static json_t *plan_sizes_to_json(const struct plan *plan)
{
    json_t *sizes = json_array();

    for (size_t i = 0; i < plan->size_count; i++)
        json_array_append_new(sizes,
                              json_pack("{s:I, s:I}", "step", (json_int_t)plan->sizes[i].step,
                                        "size", (json_int_t)plan->sizes[i].size));
    return sizes;
}

static json_t *plan_phases_to_json(const struct plan *plan)
{
    json_t *phases = json_array();

    for (size_t i = 0; i < plan->phase_count && plan->phases[i].step < plan->train_steps; i++) {
        const struct plan_phase *p = &plan->phases[i];
        int64_t end = plan_phase_end(plan, i);
        end = end < plan->train_steps ? end : plan->train_steps;
        json_array_append_new(
            phases,
            json_pack("{s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "step",
                      (json_int_t)p->step, "steps", (json_int_t)(end - p->step), "epoch",
                      json_number(number_rounded(p->epoch)), "end_epoch",
                      json_number(number_rounded(plan_epochs_after(plan, end))), "image_size",
                      (json_int_t)p->size, "batch_per_worker", (json_int_t)p->batch_per_worker,
                      "global_batch", (json_int_t)p->global_batch, "steps_per_epoch",
                      (json_int_t)p->steps_per_epoch, "lr_factor",
                      json_number(number_rounded(plan->lr.phases[i].factor)), "first_lr",
                      json_number(number_rounded(lr_at(&plan->lr, p->step))), "last_lr",
                      json_number(number_rounded(lr_at(&plan->lr, end - 1)))));
    }
    return phases;
}

json_t *plan_to_json(const struct plan *plan)
{
    bool trains = plan->mode == JOB_MODE_TRAIN;
    json_t *out = json_object();

    json_object_set_new(out, "train_images", json_integer_or_null(trains, plan->train_images));
    json_object_set_new(out, "global_batch", json_integer_or_null(trains, plan->global_batch));
    json_object_set_new(out, "batch_per_node", json_integer_or_null(trains, plan->batch_per_node));
    json_object_set_new(out, "world_size", json_integer(plan->world_size));
    json_object_set_new(out, "steps_per_epoch",
                        json_integer_or_null(trains, plan->steps_per_epoch));
    json_object_set_new(out, "warmup_steps", json_integer_or_null(trains, plan->warmup_steps));
    json_object_set_new(out, "train_steps", json_integer_or_null(trains, plan->train_steps));
    json_object_set_new(out, "peak_lr", trains ? json_number(plan->peak_lr) : json_null());
    json_object_set_new(out, "start_lr", trains ? json_number(plan->start_lr) : json_null());
    if (plan->size_count > 1) {
        json_object_set_new(out, "image_sizes", plan_sizes_to_json(plan));
        json_object_set_new(out, "size_cost", json_number(number_rounded(plan->size_cost)));
    }
    if (plan->phase_count > 1)
        json_object_set_new(out, "phases", plan_phases_to_json(plan));
    json_object_set_new(out, "eval_images", json_integer(plan->eval_images));
    json_object_set_new(out, "memory_bytes_per_worker",
                        json_integer(plan->memory_bytes_per_worker));
    json_object_set_new(out, "predicted", plan_predicted_to_json(plan));
    json_object_set(out, "warnings", plan->warnings);
    json_object_set(out, "explain", plan->explain);
    return out;
}
