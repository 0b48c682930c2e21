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

/* The published curve of mosaic-mild reaches 75.5 % after 24 epochs and 75.9 % after 27 of 28.8.
 * Images grow, so that the epochs left out are the most expensive ones. */
Test(preset_times, a_published_curve_says_when_the_target_is_reached)
{
    struct measured none = {0};
    json_t *at_24 = preset_times_by(0.755, 500, &none), *at_27 = preset_times_by(0.759, 500, &none);
    const json_t *early = preset_named(at_24, "mosaic-mild");
    const json_t *late = preset_named(at_27, "mosaic-mild");
    double work[] = {json_get_number(early, "epochs_at_224", NAN),
                     json_get_number(late, "epochs_at_224", NAN)};

    cr_assert_float_eq(json_get_number(early, "epochs", NAN), 24, 1e-9);
    cr_assert_float_eq(json_get_number(late, "epochs", NAN), 27, 1e-9);
    cr_assert_float_eq(work[1], 9.0, 0.1);
    cr_assert_gt(work[1] - work[0], 1.5 * 3 * work[0] / 24);
    cr_assert_float_eq(preset_hours(at_24, "mosaic-mild") / preset_hours(at_27, "mosaic-mild"),
                       work[0] / work[1], 0.02);
    cr_assert_str_eq(json_get_text(json_array_get(at_27, 0), "preset", ""), "mosaic-mild");
    json_decref(at_24);
    json_decref(at_27);
}
