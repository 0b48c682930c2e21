#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "common/json.h"
#include "common/plan/preset_times.h"
#include "tests/unit/common/job.h"

/* Measured speeds: of ResNet-50 at one size only. */
struct measured {
    int64_t size;
    double node_speed; /* images/s */
    int asked;
};

static struct plan_speed preset_measured_speed(const struct job_spec *spec, void *context)
{
    struct measured *m = context;
    m->asked++;
    if (spec->model.image_size != m->size)
        return (struct plan_speed){0};
    return (struct plan_speed){
        .image_seconds = (double)spec->cluster.workers_per_node / m->node_speed, .samples = 1};
}

static json_t *preset_times_by(double target, double node_speed, struct measured *m)
{
    use_source_presets();
    struct preset_times t = {.target = target,
                             .nodes = 16,
                             .node_speed = node_speed,
                             .speed = preset_measured_speed,
                             .context = m};
    return preset_times(&t);
}

static const json_t *preset_named(const json_t *all, const char *name)
{
    const json_t *one;
    size_t i;
    json_array_foreach (all, i, one)
        if (strcmp(json_get_text(one, "preset", ""), name) == 0)
            return one;
    cr_assert_fail("no preset %s", name);
    return NULL;
}

static double preset_hours(const json_t *all, const char *name)
{
    return json_get_number(json_object_get(preset_named(all, name), "ttt_seconds"), "value", NAN) /
           3600;
}

/* The same speed stated, measured at 224, and measured at the last size of a recipe. */
Test(preset_times, speeds_of_other_sizes_follow_from_that_at_224)
{
    struct measured at_224 = {224, 500, 0}, none = {0};
    json_t *stated = preset_times_by(0.75, 500, &none);
    json_t *borrowed = preset_times_by(0.75, 0, &at_224);
    double hours = preset_hours(stated, "ffcv-24");

    cr_assert_eq(none.asked, 0);
    cr_assert_gt(at_224.asked, 1);
    cr_assert_float_eq(preset_hours(borrowed, "ffcv-24"), hours, 1e-6 * hours);
    cr_assert_float_eq(preset_hours(borrowed, "goyal-8k"), preset_hours(stated, "goyal-8k"), 1e-6);
    struct job_spec spec = {
        .model = {.arch = "resnet50", .width = 1, .classes = 1000, .image_size = 192}
    };
    struct measured at_192 = {192, 500 * plan_size_cost(&spec, 224), 0};
    json_t *own = preset_times_by(0.75, 0, &at_192);
    cr_assert_float_eq(preset_hours(own, "ffcv-24"), hours, 1e-6 * hours);
    cr_assert(isnan(preset_hours(own, "goyal-8k")));
    json_decref(stated);
    json_decref(borrowed);
    json_decref(own);
}

/* Known times come first, then the arithmetic, then what does not reach the target. */
Test(preset_times, order_is_by_time_then_arithmetic_then_reason)
{
    struct measured at_192 = {192, 1, 0}, none = {0};
    json_t *all = preset_times_by(0.755, 0, &at_192);

    cr_assert_str_eq(json_get_text(json_array_get(all, 0), "preset", ""), "ffcv-24");
    cr_assert_str_eq(json_get_text(json_array_get(all, 1), "preset", ""), "ffcv-40");
    json_decref(all);
    all = preset_times_by(0.755, 0, &none);
    double before = 0;
    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *one = json_array_get(all, i);
        double epochs = json_get_number(one, "epochs_at_224", INFINITY);
        cr_assert_geq(epochs, before);
        cr_assert(json_is_string(json_object_get(one, "problem")));
        cr_assert_eq(isinf(epochs), json_get_number(one, "top1", 0) < 0.755);
        before = epochs;
    }
    json_decref(all);
}

/* MLPerf's points are for LARS; SGD takes all of its epochs. */
Test(preset_times, only_lars_stops_at_the_reference_points)
{
    struct measured none = {0};
    json_t *all = preset_times_by(0.759, 500, &none);

    cr_assert_float_eq(json_get_number(preset_named(all, "mlperf-lars"), "epochs", NAN), 42, 1e-9);
    cr_assert_float_eq(json_get_number(preset_named(all, "goyal-8k"), "epochs", NAN), 90, 1e-9);
    cr_assert_eq(json_get_integer(preset_named(all, "goyal-8k"), "global_batch", 0), 8192);
    json_decref(all);
}
