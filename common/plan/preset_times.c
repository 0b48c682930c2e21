#include "common/plan/preset_times.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/dataset/job_data.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/json.h"
#include "common/number.h"
#include "common/plan/plan_build.h"
#include "common/plan/predict.h"

/* The job of a preset on these nodes, with its own global batch. */
static json_t *preset_times_document(const struct preset_times *t, const json_t *preset)
{
    const json_t *recipe = json_object_get(preset, "document");
    const json_t *cluster = json_object_get(recipe, "cluster");
    json_int_t batch = json_get_integer(recipe, "batch_per_worker", 1) *
                       json_get_integer(recipe, "accumulate_steps", 1) *
                       json_get_integer(cluster, "nodes", 1) *
                       json_get_integer(cluster, "workers_per_node", 1);
    json_t *document = json_pack(
        "{s:O, s:I, s:s, s:{s:I}, s:{s:s, s:s}}", "preset", json_object_get(preset, "name"),
        "global_batch", batch, "accumulate_steps", "auto", "cluster", "nodes", (json_int_t)t->nodes,
        "data", "train", "/imagenet/train", "eval", "/imagenet/validation");

    json_object_update_recursive(document, (json_t *)t->changes);
    return document;
}

/* Returns the speed at the last image size, from which a plan derives those of smaller ones. */
static struct plan_speed preset_times_speed(const struct preset_times *t, struct job_spec *spec)
{
    double workers = (double)spec->cluster.workers_per_node;
    int64_t size = spec->model.image_size;
    struct plan_speed speed = {.samples = 1, .image_seconds = workers / t->node_speed};

    if (!(t->node_speed > 0)) {
        speed = t->speed(spec, t->context);
        if (speed.image_seconds > 0)
            return speed;
        spec->model.image_size = PRESET_TIMES_SIZE;
        speed = t->speed(spec, t->context);
        spec->model.image_size = size;
    }
    speed.image_seconds /= plan_size_cost(spec, PRESET_TIMES_SIZE);
    return speed;
}

/* Returns the first epoch at which the published run had reached the target; 0: not published. */
static double preset_times_published(const struct preset_times *t, const json_t *preset)
{
    const json_t *point;
    size_t i;

    json_array_foreach (json_object_get(preset, "top1_by_epoch"), i, point)
        if (json_number_value(json_array_get(point, 1)) >= t->target - 1e-9)
            return json_number_value(json_array_get(point, 0));
    return 0;
}

static struct plan *preset_times_plan(const struct preset_times *t, const json_t *preset,
                                      struct job_spec *spec, struct problems *problems)
{
    double end = preset_times_published(t, preset);
    struct plan_inputs inputs = {
        .train_images = SYNTHETIC_TRAIN_IMAGES,
        .eval_images = SYNTHETIC_EVAL_IMAGES,
        .network = t->network,
        .prices = t->prices,
        .speed = preset_times_speed(t, spec),
        .epochs = {end, end, end}
    };

    spec->eval.stop_at_target = spec->optimizer.name == JOB_OPTIMIZER_LARS;
    spec->eval.has_target_top1 = true;
    spec->eval.target_top1 = PREDICT_TARGET;
    return plan_make(spec, &inputs, problems);
}

static json_t *preset_times_entry(const json_t *preset, json_t *problem)
{
    return json_pack("{s:O, s:O, s:O, s:o}", "preset", json_object_get(preset, "name"), "source",
                     json_object_get(preset, "source"), "top1", json_object_get(preset, "top1"),
                     "problem", problem);
}

/* Fills in the plan; without a speed only what does not depend on it. */
static json_t *preset_times_predicted(const json_t *preset, const struct job_spec *spec,
                                      const struct plan *plan)
{
    const struct plan_predicted *p = &plan->predicted;
    double epochs = p->known ? p->epochs.value : plan_epochs_after(plan, plan->train_steps);
    double cost = plan->step_cost * plan_cost_until(plan, spec, plan_steps_until(plan, epochs));
    json_t *entry = preset_times_entry(
        preset, p->known ? json_null()
                         : json_sprintf("no speed of %s was measured at %d pixels",
                                        spec->model.arch, PRESET_TIMES_SIZE));

    json_object_set_new(entry, "global_batch", json_integer(plan->global_batch));
    json_object_set_new(entry, "epochs", json_number(epochs));
    json_object_set_new(
        entry, "epochs_at_224",
        json_number(number_rounded(epochs * cost / plan_size_cost(spec, PRESET_TIMES_SIZE))));
    json_object_set_new(entry, "images_per_sec", plan_band_to_json(p->known, &p->images_per_sec));
    json_object_set_new(entry, "ttt_seconds", plan_band_to_json(p->known, &p->ttt_seconds));
    json_object_set_new(entry, "node_hours", plan_band_to_json(p->known, &p->node_hours));
    json_object_set_new(entry, "kwh", plan_band_to_json(p->known && !isnan(p->kwh.value), &p->kwh));
    return entry;
}

static json_t *preset_times_of(const struct preset_times *t, const json_t *preset)
{
    double top1 = json_get_number(preset, "top1", NAN);
    struct problems problems = {0};
    struct plan *plan = NULL;
    json_t *entry;

    if (top1 < t->target - 1e-9)
        return preset_times_entry(preset,
                                  json_sprintf("its published accuracy is %.4g %%", 100 * top1));
    json_t *document = preset_times_document(t, preset);
    struct job_spec *spec = job_spec_parse(document, preset_lookup, NULL, &problems);
    if (spec)
        plan = preset_times_plan(t, preset, spec, &problems);
    if (plan)
        entry = preset_times_predicted(preset, spec, plan);
    else
        entry = preset_times_entry(preset, json_string(problems.count ? problems.items[0].message
                                                                      : "it cannot be planned"));
    plan_destroy(plan);
    job_spec_destroy(spec);
    json_decref(document);
    problems_clear(&problems);
    return entry;
}

/* Less comes first. Arithmetic, in epochs, is put behind every time in seconds. */
static double preset_times_rank(const json_t *entry)
{
    double seconds = json_get_number(json_object_get(entry, "ttt_seconds"), "value", NAN);

    return isnan(seconds) ? 1e30 * json_get_number(entry, "epochs_at_224", INFINITY) : seconds;
}

json_t *preset_times(const struct preset_times *t)
{
    json_t *presets = preset_list(), *entries = json_array(), *preset;
    size_t i;

    json_array_foreach (presets, i, preset) {
        size_t place = 0;
        if (!json_object_get(preset, "top1"))
            continue;
        json_t *entry = preset_times_of(t, preset);
        while (place < json_array_size(entries) &&
               preset_times_rank(json_array_get(entries, place)) <= preset_times_rank(entry))
            place++;
        json_array_insert_new(entries, place, entry);
    }
    json_decref(presets);
    return entries;
}
