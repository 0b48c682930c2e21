/*
 * A job document. Whatever is taken has a plan whose numbers are finite, in bounds, and those that
 * its explanation gives; and written out, the document is read as the same one.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/job/job_document.h"
#include "common/json.h"
#include "common/plan/lr_schedule.h"
#include "common/plan/plan_build.h"
#include "tests/fuzz/fuzz.h"

/* Stands for the folder of presets. */
static json_t *preset_of_job(const char *name, void *context)
{
    (void)context;
    if (!name)
        return json_pack("[s]", "large");
    if (strcmp(name, "large") != 0)
        return NULL;
    return json_loads("{\"batch_per_worker\": 96, \"epochs\": 90, \"recipe_images\": 1281167, "
                      "\"lr\": {\"base\": 0.1, \"warmup_epochs\": 5, \"decay\": \"cosine\"}}",
                      0, NULL);
}

static void judge_rate(double rate, double most, const char *what)
{
    FUZZ_CHECK(isfinite(rate) && rate >= 0 && rate <= most * (1 + 1e-9), "%s is %g, at most %g",
               what, rate, most);
}

static void judge_rates(const struct plan *plan)
{
    const struct lr_schedule *lr = &plan->lr;
    double most = fmax(fmax(lr->start, lr->peak), lr->end), factor = 1;
    int64_t last = plan->train_steps - 1;

    /* A rate may also grow by the job's own wish. */
    if (lr->gamma > 1 && (lr->decay == JOB_DECAY_STEP || lr->decay == JOB_DECAY_EXPONENTIAL))
        most = INFINITY;
    for (size_t i = 0; i < lr->phase_count; i++)
        factor = fmax(factor, lr->phases[i].factor);
    most *= factor;
    for (int i = 0; i <= 16; i++) {
        int64_t step = (int64_t)((double)last * i / 16);
        judge_rate(lr_at(lr, step < last ? step : last), most, "the rate of a step");
    }
    judge_rate(lr_at(lr, plan->warmup_steps < last ? plan->warmup_steps : last), most, "the peak");
    json_t *curve = lr_curve(lr), *point;
    size_t i;
    json_array_foreach (curve, i, point)
        judge_rate(json_number_value(json_array_get(point, 1)), most, "the curve");
    json_decref(curve);
}

static void judge_prediction(const struct plan_predicted *p)
{
    const struct plan_band *bands[] = {&p->step_seconds, &p->images_per_sec, &p->ttt_seconds};

    for (int i = 0; i < 3 && p->known; i++)
        FUZZ_CHECK(isfinite(bands[i]->value) && bands[i]->value > 0 &&
                       bands[i]->low <= bands[i]->value && bands[i]->value <= bands[i]->high,
                   "prediction %d is %g, from %g to %g", i, bands[i]->value, bands[i]->low,
                   bands[i]->high);
}

/* What stands in both says the same in both. */
static void judge_explanation(const struct plan *plan)
{
    json_t *numbers = plan_to_json(plan), *explain = json_object_get(numbers, "explain"), *entry;
    const char *key;

    json_object_foreach (explain, key, entry) {
        json_t *told = json_object_get(entry, "value"), *number = json_object_get(numbers, key);
        FUZZ_CHECK(told, "%s is explained without a value", key);
        FUZZ_CHECK(json_is_object(number) || json_is_array(number) || !number ||
                       json_equal(told, number),
                   "%s has another value in its explanation", key);
        FUZZ_CHECK(json_object_get(entry, "meaning"), "%s is not told in words", key);
    }
    char *text = json_dumps(numbers, 0);
    FUZZ_CHECK(text, "a plan that JSON cannot hold");
    free(text);
    json_decref(numbers);
}

static void judge_plan(const struct plan *plan, const struct job_spec *spec)
{
    FUZZ_CHECK(plan->memory_bytes_per_worker > 0, "%lld bytes of memory",
               (long long)plan->memory_bytes_per_worker);
    judge_explanation(plan);
    if (plan->mode != JOB_MODE_TRAIN)
        return;
    FUZZ_CHECK(plan->world_size >= 1 && plan->global_batch >= plan->world_size,
               "%lld images for %lld ranks", (long long)plan->global_batch,
               (long long)plan->world_size);
    FUZZ_CHECK(plan->steps_per_epoch >= 1 && plan->train_steps >= 1 && plan->warmup_steps >= 0,
               "%lld steps, %lld an epoch, %lld to warm up", (long long)plan->train_steps,
               (long long)plan->steps_per_epoch, (long long)plan->warmup_steps);
    FUZZ_CHECK(plan->dropped_images_per_epoch >= 0 &&
                   plan->dropped_images_per_epoch < plan->train_images,
               "%lld images dropped", (long long)plan->dropped_images_per_epoch);
    FUZZ_CHECK(plan_evaluations(plan, spec) >= 0, "fewer than no evaluations");
    judge_rates(plan);
    judge_prediction(&plan->predicted);
}

static void judge_written(const struct job_spec *spec)
{
    struct problems problems = {0};
    json_t *document = job_spec_to_json(spec);
    char *text = json_dumps(document, 0);
    struct job_spec *again = job_spec_parse(document, NULL, NULL, &problems);

    FUZZ_CHECK(again, "%s is refused: %s %s", text, problems.count ? problems.items[0].pointer : "",
               problems.count ? problems.items[0].message : "");
    json_t *second = job_spec_to_json(again);
    FUZZ_CHECK(json_equal(document, second), "%s reads as another document", text);
    json_decref(second);
    json_decref(document);
    job_spec_destroy(again);
    problems_clear(&problems);
    free(text);
}

static void plan_fuzzed(const struct job_spec *spec, struct problems *problems)
{
    static const struct plan_speed speed = {
        .image_seconds = 0.02, .update_seconds = 0.01, .samples = 3, .spread = 0.1};
    bool synthetic = !spec->data.has_train_images;
    struct plan_inputs inputs = {
        .train_images = synthetic ? 1281167 : spec->data.train_images,
        .eval_images = spec->data.eval ? 50000 : 0,
        .node_cores = 16,
        .speed = speed,
    };
    struct plan *plan = plan_make(spec, &inputs, problems);

    FUZZ_CHECK(plan || problems->count, "no plan, and no reason");
    if (plan)
        judge_plan(plan, spec);
    plan_destroy(plan);
}

int fuzz_job(const uint8_t *data, size_t bytes)
{
    struct error e;
    struct problems problems = {0};
    json_t *document = json_document_parse((const char *)data, bytes, &e);

    if (!document)
        return 0;
    struct job_spec *spec = job_spec_read(document, preset_of_job, NULL, &problems);
    if (spec && problems.count == 0) {
        judge_written(spec);
        plan_fuzzed(spec, &problems);
    }
    json_decref(problems_to_json(&problems));
    job_spec_destroy(spec);
    problems_clear(&problems);
    json_decref(document);
    return 0;
}
