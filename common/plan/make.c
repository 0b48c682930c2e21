#include "common/json.h"
#include "common/plan/plan.h"

#include <math.h>
#include <stdlib.h>

#include "common/number.h"
#include "common/plan/parts.h"
#include "common/xalloc.h"

/* The schedule is then that of a run whose steps all have the last phase's batch. */
static void make_plan_rate_phases(struct plan *plan, const struct job_spec *spec)
{
    struct lr_schedule *lr = &plan->lr;

    lr->run_steps = plan->train_steps;
    lr->warmup_steps = llround(plan->steps_in_epoch * spec->lr.warmup_epochs);
    lr->train_steps = llround(plan->steps_in_epoch * plan_epochs_after(plan, plan->train_steps));
    lr->phase_count = plan->phase_count;
    for (size_t i = 0; i < plan->phase_count; i++) {
        const struct plan_phase *p = &plan->phases[i];
        lr->phases[i] = (struct lr_phase){
            .step = p->step,
            .at = p->epoch * plan->steps_in_epoch,
            .pace = plan->steps_in_epoch / p->steps_in_epoch,
            .factor = lr_peak(spec, p->global_batch) / plan->peak_lr,
        };
    }
}

static void make_plan_rate(struct plan *plan, const struct job_spec *spec)
{
    struct lr_schedule *lr = &plan->lr;

    plan->peak_lr = lr_peak(spec, plan->global_batch);
    plan->start_lr = lr_start(spec, plan->peak_lr);
    *lr = (struct lr_schedule){
        .decay = spec->lr.decay,
        .start = plan->start_lr,
        .peak = plan->peak_lr,
        .end = spec->lr.end,
        .power = spec->lr.power,
        .warmup_steps = plan->warmup_steps,
        .train_steps = plan->train_steps,
        .milestone_count = spec->lr.milestone_count,
        .gamma = spec->lr.gamma,
        .decay_steps = plan->steps_in_epoch * spec->lr.decay_epochs,
        .staircase = spec->lr.staircase,
    };
    for (size_t i = 0; i < lr->milestone_count; i++)
        lr->milestone_steps[i] = llround(plan->steps_in_epoch * spec->lr.milestones[i]);
    if (plan->phase_count > 1)
        make_plan_rate_phases(plan, spec);
}

static void make_plan_costs(struct plan *plan, const struct job_spec *spec)
{
    plan->size_cost = plan->step_cost = 1;
    if (plan->mode == JOB_MODE_EVAL || plan->size_count < 2)
        return;
    double cost = plan_steps_cost(plan, spec, 0, plan->train_steps);
    double images = (double)plan_images_of_steps(plan, 0, plan->train_steps);

    plan->step_cost = cost / (double)plan->train_steps;
    plan->size_cost = cost / (images / (double)plan->global_batch);
}

void plan_check_data(const struct job_spec *spec, const struct plan_data *data,
                     struct problems *problems)
{
    if (data->classes > spec->model.classes)
        problems_add(problems, "/model/classes", NULL, "is %lld, but the %s data has %lld classes",
                     (long long)spec->model.classes,
                     spec->mode == JOB_MODE_TRAIN ? "training" : "evaluation",
                     (long long)data->classes);
    if (*data->other_classes)
        problems_add(problems, "/data/eval", NULL, "%s", data->other_classes);
}

/* The document's threads, or a worker's share of the cores that are known. */
static int64_t make_threads_of(const struct job_spec *spec, const struct plan_inputs *inputs)
{
    int64_t threads = spec->cluster.threads_per_worker, workers = spec->cluster.workers_per_node;

    if (threads > 0 || inputs->node_cores < 1 || workers < 1)
        return threads;
    return inputs->node_cores > workers ? inputs->node_cores / workers : 1;
}

struct plan *plan_make(const struct job_spec *document, const struct plan_inputs *inputs,
                       struct problems *problems)
{
    struct plan *plan = xcalloc(1, sizeof *plan);
    struct job_spec with_threads = *document;
    const struct job_spec *spec = &with_threads;

    with_threads.cluster.threads_per_worker = make_threads_of(document, inputs);
    plan->mode = spec->mode;
    plan->train_images = spec->mode == JOB_MODE_TRAIN ? inputs->train_images : 0;
    plan->eval_images = inputs->eval_images;
    plan->node_images_least = inputs->node_images_least;
    plan->node_images_most = inputs->node_images_most;
    plan->warnings = json_array();
    plan->explain = json_object();
    size_t before = problems->count;
    plan_check_data(spec, &inputs->data, problems);
    if (!plan_batch(plan, spec, problems) || problems->count > before) {
        plan_destroy(plan);
        return NULL;
    }
    plan_sizes(plan, spec);
    if (plan->mode == JOB_MODE_TRAIN)
        make_plan_rate(plan, spec);
    make_plan_costs(plan, spec);
    struct plan_memory memory = plan_memory_of(spec);
    plan->memory_bytes_per_worker = plan_memory_bytes(&memory);
    plan_predict(plan, spec, inputs);
    plan_warn(plan, spec, inputs);
    plan_explain(plan, spec, inputs);
    return plan;
}

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    json_decref(plan->warnings);
    json_decref(plan->explain);
    free(plan);
}

json_t *plan_band_to_json(bool known, const struct plan_band *band)
{
    if (!known)
        return json_pack("{s:n, s:n, s:n}", "value", "low", "high");
    return json_pack("{s:o, s:o, s:o}", "value", json_number(number_rounded(band->value)), "low",
                     json_number(number_rounded(band->low)), "high",
                     json_number(number_rounded(band->high)));
}

static json_t *make_predicted_to_json(const struct plan *plan)
{
    bool known = plan->predicted.known;

    /* images_per_second: its name before version 0.1, which scripts may read. */
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

static json_t *make_plan_sizes_to_json(const struct plan *plan)
{
    json_t *sizes = json_array();

    for (size_t i = 0; i < plan->size_count; i++)
        json_array_append_new(sizes,
                              json_pack("{s:I, s:I}", "step", (json_int_t)plan->sizes[i].step,
                                        "size", (json_int_t)plan->sizes[i].size));
    return sizes;
}

/* Those that the run comes to. */
static json_t *make_plan_phases_to_json(const struct plan *plan)
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
        json_object_set_new(out, "image_sizes", make_plan_sizes_to_json(plan));
        json_object_set_new(out, "size_cost", json_number(number_rounded(plan->size_cost)));
    }
    if (plan->phase_count > 1)
        json_object_set_new(out, "phases", make_plan_phases_to_json(plan));
    json_object_set_new(out, "eval_images", json_integer(plan->eval_images));
    json_object_set_new(out, "memory_bytes_per_worker",
                        json_integer(plan->memory_bytes_per_worker));
    json_object_set_new(out, "predicted", make_predicted_to_json(plan));
    json_object_set(out, "warnings", plan->warnings);
    json_object_set(out, "explain", plan->explain);
    return out;
}
