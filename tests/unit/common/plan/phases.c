/* Batches by epoch: batch_schedule "fill". */
#include "common/plan/lr_schedule.h"
#include "common/plan/plan_build.h"
#include "common/plan/replan.h"

#include <math.h>

#include "tests/unit/common/job.h"

#define NETWORK "'arch': 'resnet18', 'stem': 'small', 'classes': 10, "
#define THREE                                                                                      \
    "{'data': {'train': 'x'}, 'model': {" NETWORK                                                  \
    "'image_size': [[0, 32], [2, 48], [5, 64]]}, 'batch_per_worker': 16, "                         \
    "'batch_schedule': 'fill', 'epochs': 6, 'lr': {'warmup_epochs': 1, 'base': 0.1, "              \
    "'base_batch': 32, 'scaling': '%s'}, 'steps_rounding': '%s'}"

static struct plan *plan_with(const char *text, struct plan_speed speed, int64_t images,
                              struct problems *problems)
{
    struct job_spec *spec = job_of(text);
    struct plan_inputs inputs = {.train_images = images, .speed = speed};
    struct plan *plan = plan_make(spec, &inputs, problems);

    job_spec_destroy(spec);
    return plan;
}

static struct plan *right_plan(const char *text, int64_t images)
{
    struct problems problems = {0};
    struct plan *plan = plan_with(text, (struct plan_speed){0}, images, &problems);
    char *words = problems_to_text(&problems);

    cr_assert_not_null(plan, "%s", words);
    free(words);
    return plan;
}

static struct plan *plan_of_three(const char *scaling, const char *rounding, int64_t images)
{
    char text[512];

    snprintf(text, sizeof text, THREE, scaling, rounding);
    return right_plan(text, images);
}

Test(phases, each_size_has_the_batch_that_fills_the_memory_of_the_last)
{
    struct plan *plan = plan_of_three("linear", "floor", 1000);
    static const int64_t batches[] = {64, 24, 16}; /* 16 x (64/32)^2; 28.4 in eights */
    struct plan *last = right_plan("{'data': {'train': 'x'}, 'model': {" NETWORK
                                   "'image_size': 64}, 'batch_per_worker': 16}",
                                   1000);

    cr_assert_eq(plan->phase_count, 3);
    for (int i = 0; i < 3; i++) {
        const struct plan_phase *p = &plan->phases[i];
        cr_assert_eq(p->batch_per_worker, batches[i], "%lld", (long long)p->batch_per_worker);
        cr_assert_eq(p->global_batch, 2 * batches[i]);
        cr_assert_eq(p->steps_per_epoch, 1000 / (2 * batches[i]));
        cr_assert_eq(plan->sizes[i].step, p->step);
        cr_assert_eq(plan->sizes[i].size, p->size);
    }
    cr_assert_eq(plan->global_batch, 32, "what the document says is of the last size");
    cr_assert_eq(plan->memory_bytes_per_worker, last->memory_bytes_per_worker);
    plan_destroy(plan);
    plan_destroy(last);
}

Test(phases, steps_follow_the_batches)
{
    struct plan *plan = plan_of_three("linear", "floor", 1000);

    cr_assert_eq(plan->phases[1].step, 2 * 7);
    cr_assert_eq(plan->phases[2].step, 2 * 7 + 3 * 20);
    cr_assert_eq(plan->train_steps, 2 * 7 + 3 * 20 + 31);
    cr_assert_eq(plan->warmup_steps, 7);
    cr_assert_eq(plan_images_of_steps(plan, 13, 16), 128 + 2 * 48);
    cr_assert_eq(plan_images_of_steps(plan, 0, plan->train_steps),
                 2 * 7 * 128 + 3 * 20 * 48 + 31 * 32);
    cr_assert_eq(plan_epochs_after(plan, 14), 2.0);
    cr_assert_eq(plan_epochs_after(plan, 24), 2.5);
    cr_assert_eq(plan_steps_until(plan, 2.5), 24.0);
    cr_assert_eq(plan_epochs_after(plan, plan->train_steps), 6.0);
    plan_destroy(plan);
}

Test(phases, what_is_due_each_epoch_is_due_once_in_each)
{
    static const char *const roundings[] = {"floor", "exact"};

    for (int i = 0; i < 2; i++) {
        struct plan *plan = plan_of_three("linear", roundings[i], 1000);
        int times = 0, halves = 0;
        for (int64_t s = 1; s <= plan->train_steps; s++) {
            times += plan_is_due(plan, 1, s);
            halves += plan_is_due(plan, 0.5, s);
            cr_assert(!plan_is_due(plan, 0, s));
        }
        cr_assert_eq(times, 6, "%d", times);
        cr_assert_eq(halves, 12, "%d", halves);
        cr_assert(plan_is_due(plan, 1, 14) == (i == 0));
        plan_destroy(plan);
    }
}

/* 0.1 x 12 steps is a little more than 1.2 in binary. */
Test(phases, what_is_due_each_tenth_of_an_epoch_is_due_at_its_end)
{
    struct plan plan = {.phase_count = 1, .steps_in_epoch = 12};

    for (int epoch = 1; epoch <= 1000; epoch++)
        cr_assert(plan_is_due(&plan, 0.1, 12 * epoch), "epoch %d", epoch);
    cr_assert(!plan_is_due(&plan, 0.1, 1) && plan_is_due(&plan, 0.1, 2));
}

/* Whatever epoch it is, the rate is that of the last batch, times what its own batch makes of it.
 */
Test(phases, the_rate_follows_the_batch_at_the_same_epoch)
{
    static const struct {
        const char *scaling;
        double factors[3];
    } rules[] = {
        {"linear", {4, 1.5, 1}        },
        {"sqrt",   {2, 1.224744871, 1}},
        {"none",   {1, 1, 1}          }
    };

    for (int k = 0; k < 3; k++) {
        struct plan *plan = plan_of_three(rules[k].scaling, "floor", 1000);
        struct lr_schedule alone = plan->lr;
        alone.phase_count = 0;
        for (int64_t s = 0; s < plan->train_steps; s++) {
            const struct plan_phase *p = plan_phase_at(plan, s);
            double factor = rules[k].factors[p - plan->phases];
            double at = plan_epochs_after(plan, s) * 31, low = floor(at), share = at - low;
            double rate = (1 - share) * lr_at(&alone, (int64_t)low) +
                          share * lr_at(&alone, (int64_t)low + 1); /* both parts are lines */
            cr_assert_float_eq(lr_at(&plan->lr, s), factor * rate, 1e-9, "step %d", (int)s);
        }
        cr_assert_eq(lr_step_at(&plan->lr, plan->lr.warmup_steps), plan->warmup_steps);
        json_t *curve = lr_curve(&plan->lr),
               *point = json_array_get(curve, json_array_size(curve) - 1);
        cr_assert_eq(json_integer_value(json_array_get(point, 0)), plan->train_steps - 1);
        json_decref(curve);
        plan_destroy(plan);
    }
}

Test(phases, exact_epochs_lose_no_image_between_two_batches)
{
    struct plan *plan = plan_of_three("linear", "exact", 1000);

    for (size_t i = 1; i < plan->phase_count; i++) {
        const struct plan_phase *before = &plan->phases[i - 1], *p = &plan->phases[i];
        double wanted = i == 1 ? 2000 : 5000;
        cr_assert_eq(p->first_image,
                     before->first_image + (p->step - before->step) * before->global_batch);
        cr_assert_leq(fabs((double)p->first_image - wanted), (double)before->global_batch / 2);
    }
    cr_assert_eq(plan->dropped_images_per_epoch, 0);
    plan_destroy(plan);
}

/* Half a step of the first batch is rounded to one, which ends behind what is to follow it. */
Test(phases, a_phase_shorter_than_a_step_gives_way_to_the_next)
{
    static const char *const sizes[] = {"[[0, 32], [0.13, 96], [0.14, 128]]",
                                        "[[0, 32], [1, 64], [1.001, 96], [1.002, 128]]",
                                        "[[0, 32], [0.001, 96], [0.002, 128]]"};
    static const size_t counts[] = {2, 2, 1};
    char text[512];

    for (int k = 0; k < 3; k++) {
        snprintf(text, sizeof text,
                 "{'data': {'train': 'x'}, 'model': {" NETWORK
                 "'image_size': %s}, 'cluster': {'workers_per_node': 1}, 'batch_per_worker': 16, "
                 "'batch_schedule': 'fill', 'epochs': 2, 'steps_rounding': 'exact'}",
                 sizes[k]);
        struct plan *plan = right_plan(text, 1000);
        const struct plan_phase *p = plan->phases;
        cr_assert_eq(plan->phase_count, counts[k], "%s: %zu", sizes[k], plan->phase_count);
        cr_assert(p[0].step == 0 && p[0].first_image == 0 && p[0].epoch == 0, "%s", sizes[k]);
        cr_assert_eq(p[counts[k] - 1].size, 128, "%s", sizes[k]);
        for (size_t i = 1; i < plan->phase_count; i++) {
            cr_assert_gt(p[i].step, p[i - 1].step, "%s", sizes[k]);
            cr_assert_eq(p[i].first_image, (p[i].step - p[i - 1].step) * p[i - 1].global_batch);
        }
        cr_assert_geq(plan_images_of_steps(plan, 0, plan->train_steps), 2000 - 16, "%s", sizes[k]);
        plan_destroy(plan);
    }
}

/* A checkpoint behind any step is found again, and with it the step. */
static void phases_are_places(const char *rounding)
{
    struct plan *plan = plan_of_three("linear", rounding, 1000);

    for (int64_t s = 1; s <= plan->train_steps; s++) {
        int64_t epoch, images, step, shift;
        replan_position(plan, s, 0, 0, &epoch, &images);
        replan_place(epoch, images, plan, &step, &shift);
        cr_assert_eq(step, s, "%s: step %lld is found at %lld", rounding, (long long)s,
                     (long long)step);
        cr_assert_eq(shift, 0);
    }
    plan_destroy(plan);
}

Test(phases, every_step_has_a_place_that_it_is_found_by)
{
    phases_are_places("floor");
    phases_are_places("exact");
}

Test(phases, other_workers_continue_at_the_same_image)
{
    static const char *const roundings[] = {"floor", "exact"};

    for (int i = 0; i < 2; i++) {
        struct plan *plan = plan_of_three("linear", roundings[i], 1000);
        for (int64_t images = 0; images < 1000; images += 7)
            for (int64_t epoch = 0; epoch < 6; epoch++) {
                int64_t step, shift, at_epoch, at_images;
                replan_place(epoch, images, plan, &step, &shift);
                replan_position(plan, step, step, shift, &at_epoch, &at_images);
                bool dropped = at_epoch == epoch + 1 && at_images == 0; /* too few for a step */
                cr_assert((at_epoch == epoch && at_images == images) || (i == 0 && dropped));
            }
        plan_destroy(plan);
    }
}

Test(phases, time_and_work_follow_the_batches)
{
    struct plan_speed speed = {.image_seconds = 0.01, .update_seconds = 0.1};
    struct problems problems = {0};
    char text[512];

    snprintf(text, sizeof text, THREE, "linear", "floor");
    struct job_spec *spec = job_of(text);
    struct plan *plan = plan_with(text, speed, 1000, &problems);
    double seconds = 0, cost = 0, images = 0;
    for (int i = 0; i < 3; i++) {
        const struct plan_phase *p = &plan->phases[i];
        double steps = (double)((i < 2 ? plan->phases[i + 1].step : plan->train_steps) - p->step);
        double size = plan_size_cost(spec, p->size), own = (double)p->batch_per_worker;
        cost += steps * (double)p->global_batch * size;
        images += steps * (double)p->global_batch;
        seconds += steps * (own * size * speed.image_seconds + speed.update_seconds);
    }
    cr_assert_float_eq(plan->size_cost, cost / images, 1e-9);
    /* the exchange in memory, and what its threads make of a batch, are beside */
    cr_assert_float_eq(plan->predicted.ttt_seconds.value / seconds, 1, 0.05);
    cr_assert_float_eq(plan->predicted.images_per_sec.value * plan->predicted.ttt_seconds.value,
                       images, 1e-6 * images);
    plan_destroy(plan);
    job_spec_destroy(spec);
}

Test(phases, the_plan_lists_the_phases)
{
    struct plan *plan = plan_of_three("linear", "floor", 1000);
    json_t *json = plan_to_json(plan), *phases = json_object_get(json, "phases");
    json_t *second = json_array_get(phases, 1);

    cr_assert_eq(json_array_size(phases), 3);
    cr_assert_eq(json_integer_value(json_object_get(second, "step")), 14);
    cr_assert_eq(json_integer_value(json_object_get(second, "steps")), 60);
    cr_assert_eq(json_number_value(json_object_get(second, "end_epoch")), 5.0);
    cr_assert_eq(json_number_value(json_object_get(second, "lr_factor")), 1.5);
    cr_assert_not_null(json_object_get(plan->explain, "phases"));
    json_decref(json);
    plan_destroy(plan);
}

Test(phases, a_constant_batch_has_one_phase_and_lists_none)
{
    struct plan *plan = right_plan("{'data': {'train': 'x'}, 'model': {" NETWORK
                                   "'image_size': [[0, 32], [2, 64]]}, 'batch_per_worker': 16}",
                                   1000);
    json_t *json = plan_to_json(plan);

    cr_assert_eq(plan->phase_count, 1);
    cr_assert_null(json_object_get(json, "phases"));
    cr_assert_null(json_object_get(plan->explain, "phases"));
    json_decref(json);
    plan_destroy(plan);
}

Test(phases, a_run_that_ends_early_lists_the_phases_it_reaches)
{
    char text[512];
    snprintf(text, sizeof text,
             "{'data': {'train': 'x'}, 'model': {" NETWORK
             "'image_size': [[0, 32], [2, 64]]}, 'batch_per_worker': 16, 'steps': 9, "
             "'batch_schedule': 'fill'}");
    struct plan *plan = right_plan(text, 1000);
    json_t *json = plan_to_json(plan);

    cr_assert_eq(plan->train_steps, 9);
    cr_assert_eq(json_array_size(json_object_get(json, "phases")), 1);
    json_decref(json);
    plan_destroy(plan);
}

Test(phases, too_few_images_for_the_largest_batch_are_refused)
{
    struct problems problems = {0};
    char text[512];

    snprintf(text, sizeof text, THREE, "linear", "floor");
    cr_assert_null(plan_with(text, (struct plan_speed){0}, 127, &problems));
    cr_assert_eq(problems.count, 1);
    cr_assert_str_eq(problems.items[0].pointer, "/batch_schedule");
    cr_assert_not_null(strstr(problems.items[0].message, "128 at 32 pixels (64 images a worker)"));
    problems_clear(&problems);
}
