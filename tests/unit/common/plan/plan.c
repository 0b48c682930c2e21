#include "common/job/job_document.h"
#include "common/plan/plan_build.h"

#include <math.h>

#include "tests/unit/common/job.h"

TestSuite(plan, .init = use_source_presets);

static struct plan *plan_document(const char *text, int64_t images, struct problems *problems)
{
    struct job_spec *spec = job_of(text);
    struct plan_inputs inputs = {.train_images = images};
    struct plan *plan = plan_make(spec, &inputs, problems);

    job_spec_destroy(spec);
    return plan;
}

static struct plan *right_plan_of(const char *text, int64_t images)
{
    struct problems problems = {0};
    struct plan *plan = plan_document(text, images, &problems);
    char *words = problems_to_text(&problems);

    cr_assert_not_null(plan, "%s", words);
    free(words);
    return plan;
}

static bool plan_warns(const struct plan *plan, const char *words)
{
    json_t *warning;
    size_t i;

    json_array_foreach (plan->warnings, i, warning)
        if (strstr(json_string_value(warning), words))
            return true;
    return false;
}

#define SURFSARA "{'preset': 'surfsara-24k', 'data': {'train': 'x'}}"

/* The document's own example: 24576, 52, 260, 4680, 0.1, 4.8. */
Test(plan, surfsara_24k_is_the_documents_example)
{
    struct plan *plan = right_plan_of(SURFSARA, 1280000);

    cr_assert_eq(plan->batch_per_node, 96);
    cr_assert_eq(plan->world_size, 512);
    cr_assert_eq(plan->global_batch, 24576);
    cr_assert_eq(plan->steps_per_epoch, 52);
    cr_assert_eq(plan->warmup_steps, 260);
    cr_assert_eq(plan->train_steps, 4680);
    cr_assert_eq(plan->start_lr, 0.1);
    cr_assert_eq(plan->peak_lr, 4.8);
    cr_assert(!plan_warns(plan, "the recipe is for"));
    cr_assert(plan_warns(plan, "above 8192, accuracy usually falls with plain SGD"));
    cr_assert(plan_warns(plan, "this job takes half of the linearly scaled learning rate"));
    cr_assert(plan_warns(plan, "2048 of 1280000 images"));
    plan_destroy(plan);
}

Test(plan, keys_without_effect_are_warned_of)
{
    struct plan *plan = right_plan_of("{'data': {'train': 'synthetic', 'eval_images': 10}, "
                                      "'profile': {'steps': [5, 8]}, 'steps': 3}",
                                      100);

    cr_assert(plan_warns(plan, "data.eval_images has no effect without data.eval"));
    cr_assert(plan_warns(plan, "profile.steps begins with step 5, but the job has 3"));
    plan_destroy(plan);
}

Test(plan, too_few_images_name_what_takes_too_many)
{
    struct problems problems = {0};

    cr_assert_null(plan_document(
        "{'data': {'train': 'synthetic'}, 'batch_per_worker': 1, 'accumulate_steps': 1024}", 1000,
        &problems));
    cr_assert_eq(problems.count, 1);
    cr_assert_str_eq(problems.items[0].pointer, "/accumulate_steps");
    problems_clear(&problems);
}

/* 100 images on two nodes, of which the one with fewer has 44: 5 steps instead of 6. */
Test(plan, node_local_data_are_bound_by_the_node_with_the_fewest)
{
    struct job_spec *spec =
        job_of("{'data': {'train': 'x', 'locality': 'node'}, 'batch_per_worker': 4, 'cluster': "
               "{'nodes': 2, 'workers_per_node': 2}}");
    struct plan_inputs inputs = {
        .train_images = 100, .node_images_least = 44, .node_images_most = 56};
    struct problems problems = {0};
    struct plan *plan = plan_make(spec, &inputs, &problems);

    cr_assert_not_null(plan);
    cr_assert_eq(plan->steps_per_epoch, 5);
    cr_assert_eq(plan->dropped_images_per_epoch, 100 - 5 * 16);
    cr_assert(plan_warns(plan, "only on its own 44 to 56 images (a difference of 27 %)"));
    cr_assert(plan_warns(plan, "the 5 steps of the node with the fewest images, 1 fewer than"));
    const json_t *steps = json_object_get(plan->explain, "steps_per_epoch");
    cr_assert_eq(
        json_integer_value(json_object_get(json_object_get(steps, "inputs"), "node_images")), 44);
    plan_destroy(plan);
    job_spec_destroy(spec);
}

/* SURFsara's printed log: 90 epochs at 8,192 are 14,075 steps. */
Test(plan, exact_epochs_are_not_rounded_to_steps)
{
    struct plan *plan =
        right_plan_of("{'data': {'train': 'x'}, 'global_batch': 8192, 'cluster': {'nodes': 128}, "
                      "'steps_rounding': 'exact', 'lr': {'decay': 'step'}}",
                      1281167);

    cr_assert_eq(plan->steps_per_epoch, 156);
    cr_assert_eq(plan->train_steps, 14075);
    cr_assert_eq(plan->warmup_steps, 782);
    cr_assert_eq(plan->lr.milestone_steps[0], 4692); /* 30 x 156.39 */
    cr_assert_eq(plan->dropped_images_per_epoch, 0);
    cr_assert(!plan_warns(plan, "is dropped"));
    plan_destroy(plan);
}

Test(plan, the_real_number_of_images_is_shown_with_its_rounding)
{
    struct plan *plan = right_plan_of(SURFSARA, 1281167);
    const json_t *steps = json_object_get(plan->explain, "train_steps");

    cr_assert_eq(plan->train_steps, 4680);
    cr_assert(plan_warns(plan, "the recipe is for 1280000 training images, but there are 1281167"));
    cr_assert_not_null(strstr(json_string_value(json_object_get(steps, "note")), "4691.8"));
    plan_destroy(plan);
}

static void preset_gives(const char *name, int64_t batch, int64_t warmup, int64_t steps,
                         double peak)
{
    char text[128];

    snprintf(text, sizeof text, "{'preset': '%s', 'data': {'train': 'x'}}", name);
    struct plan *plan = right_plan_of(text, 1281167);
    cr_assert_eq(plan->global_batch, batch, "%s", name);
    cr_assert_eq(plan->warmup_steps, warmup, "%s: %lld", name, (long long)plan->warmup_steps);
    cr_assert_eq(plan->train_steps, steps, "%s: %lld", name, (long long)plan->train_steps);
    cr_assert_float_eq(plan->peak_lr, peak, 1e-12, "%s: %.15g", name, plan->peak_lr);
    plan_destroy(plan);
}

Test(plan, every_other_preset_has_its_published_numbers)
{
    preset_gives("goyal-8k", 8192, 780, 14040, 3.2);
    preset_gives("mlperf-lars", 8192, 782, 6881, 17);
    preset_gives("ffcv-16", 1024, 2502, 20016, 1.7);
    preset_gives("ffcv-24", 1024, 2502, 30024, 1.7);
    preset_gives("ffcv-40", 1024, 2502, 50040, 1.7);
    preset_gives("intel-mlperf-3264", 3264, 785, 14523, 10.5);
    preset_gives("habana-resnext101", 1024, 10008, 112590, 1.024);
    preset_gives("habana-resnext101-250", 1024, 10008, 312750, 1.024);
    preset_gives("cray-sqrt", 4096, 1560, 28080, 0.01 * sqrt(128));
}

Test(plan, a_preset_of_bf16_sets_the_precision)
{
    struct job_spec *spec = job_of("{'preset': 'habana-resnext101', 'data': {'train': 'x'}}");

    cr_assert_eq(spec->precision, JOB_PRECISION_BF16, "as the document's -dt bf16");
    job_spec_destroy(spec);
}

static int64_t memory_with(const char *optimizer)
{
    char text[256];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'optimizer': {%s}}", optimizer);
    struct plan *plan = right_plan_of(text, 1281167);
    int64_t bytes = plan->memory_bytes_per_worker;
    plan_destroy(plan);
    return bytes;
}

static int64_t memory_of_threads(int threads)
{
    char text[128];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'cluster': {'threads_per_worker': %d}}",
             threads);
    struct plan *plan = right_plan_of(text, 1281167);
    int64_t bytes = plan->memory_bytes_per_worker;
    plan_destroy(plan);
    return bytes;
}

Test(plan, memory_grows_by_less_than_2_mb_a_thread)
{
    int64_t one = memory_of_threads(1);

    cr_assert_eq(memory_of_threads(0), one, "their number is not known");
    cr_assert_eq(memory_of_threads(22) - one, 21 * (memory_of_threads(2) - one));
    cr_assert_gt(memory_of_threads(2), one);
    cr_assert_leq(memory_of_threads(48), one + 47 * 2000000);
}

static struct plan *plan_of_threads(int batch, int threads, int size, const char *arch)
{
    char text[256];

    snprintf(text, sizeof text,
             "{'data': {'train': 'x'}, 'batch_per_worker': %d, 'model': {'arch': '%s', "
             "'image_size': %d}, 'cluster': {'workers_per_node': 2, 'threads_per_worker': %d}}",
             batch, arch, size, threads);
    return right_plan_of(text, 1281167);
}

Test(plan, warns_of_a_batch_too_small_for_its_threads)
{
    struct plan *small = plan_of_threads(2, 22, 224, "resnet50");
    struct plan *tiny = plan_of_threads(1, 96, 32, "resnet18");
    char words[64];

    cr_assert(plan_warns(small, "a batch of 2 images is too small for 22 threads"));
    int enough = 0;
    for (int batch = 3; batch < 16 && !enough; batch++) {
        struct plan *plan = plan_of_threads(batch, 22, 224, "resnet50");
        enough = plan_warns(plan, "too small for 22 threads") ? 0 : batch;
        plan_destroy(plan);
    }
    snprintf(words, sizeof words, "batch_per_worker %d would reach 85 %%", enough);
    cr_assert(plan_warns(small, words), "it names the first that is not warned of, %d", enough);
    cr_assert(plan_warns(tiny, "a batch of 1 image is too small for 96 threads"));
    struct plan *fine[] = {plan_of_threads(48, 22, 224, "resnet50"),
                           plan_of_threads(1, 1, 32, "resnet50"),
                           plan_of_threads(48, 22, 28, "cnn")};
    struct plan *cnn = plan_of_threads(2, 22, 28, "cnn");

    cr_assert(plan_warns(cnn, "a batch of 2 images is too small for 22 threads"));
    plan_destroy(cnn);
    for (int i = 0; i < 3; i++) {
        cr_assert_not(plan_warns(fine[i], "is too small for"));
        plan_destroy(fine[i]);
    }
    plan_destroy(small);
    plan_destroy(tiny);
}

Test(plan, memory_counts_what_the_optimiser_remembers)
{
    int64_t one = 4ll * 25557032, sgd = memory_with("'name': 'sgd'");

    cr_assert_eq(memory_with("'name': 'lars'"), sgd);
    cr_assert_eq(memory_with("'name': 'sgdw'"), sgd);
    cr_assert_eq(memory_with("'name': 'adam'"), sgd + one);
    cr_assert_eq(memory_with("'name': 'adagrad'"), sgd);
    cr_assert_eq(memory_with("'name': 'adadelta'"), sgd + one);
    cr_assert_eq(memory_with("'name': 'rmsprop'"), sgd);
    cr_assert_eq(memory_with("'name': 'rmsprop', 'momentum': 0.9, 'centered': true"),
                 sgd + 2 * one);
}

/* The classifier of a ResNet-50 has 2048 x 10 weights and 10 biases. */
Test(plan, frozen_parts_take_less_of_all)
{
    static const char *const forms[] = {
        "{'data': {'train': 'x'}, 'model': {'classes': 10}}",
        "{'data': {'train': 'x'}, 'model': {'classes': 10, 'freeze': ['layer1', 'conv1']}}",
        ("{'data': {'train': 'x'}, 'model': {'classes': 10, 'freeze': 'backbone', 'init': '/w'}, "
         "'lr': {'head_factor': 10}}"),
    };
    struct plan *plan[3];

    for (int i = 0; i < 3; i++)
        plan[i] = right_plan_of(forms[i], 1281167);
    for (int i = 1; i < 3; i++)
        cr_expect_lt(plan[i]->memory_bytes_per_worker, plan[i - 1]->memory_bytes_per_worker);
    int64_t all = 23508032 + 20490, frozen = 23508032;
    cr_expect_leq(plan[2]->memory_bytes_per_worker,
                  plan[0]->memory_bytes_per_worker - 2 * 4 * frozen);
    const json_t *trained = json_object_get(plan[2]->explain, "trained_weights");
    cr_expect_eq(json_integer_value(json_object_get(trained, "value")), all - frozen);
    cr_expect_str_eq(json_string_value(json_object_get(trained, "note")),
                     "gradients are 0.082 MB instead of 94.1 MB, and a step takes 33.3 % of the "
                     "operations that it takes without frozen parts");
    cr_expect_null(json_object_get(plan[0]->explain, "trained_weights"));
    cr_expect_null(json_object_get(plan[1]->explain, "head_lr"));
    const json_t *head = json_object_get(plan[2]->explain, "head_lr");
    cr_expect_float_eq(json_number_value(json_object_get(head, "value")), 10 * plan[2]->peak_lr,
                       1e-9);
    cr_expect(plan_warns(plan[1], "model.freeze without model.init"));
    cr_expect(!plan_warns(plan[2], "model.freeze without model.init"));
    for (int i = 0; i < 3; i++)
        plan_destroy(plan[i]);
}

Test(plan, says_which_keys_the_optimiser_does_not_use)
{
    struct plan *plan = right_plan_of(
        "{'data': {'train': 'x'}, 'optimizer': {'beta1': 0.8, 'eps': 1e-8, 'lars_eta': 0.01}}",
        1281167);

    cr_assert(plan_warns(plan, "optimizer.beta1 has no effect with optimizer.name sgd"));
    cr_assert(plan_warns(plan, "optimizer.lars_eta has no effect with optimizer.name sgd"));
    cr_assert_not(plan_warns(plan, "optimizer.eps")); /* at its default */
    plan_destroy(plan);
    plan = right_plan_of("{'data': {'train': 'x'}, 'lr': {'base': 0.1}, 'optimizer': {'name': "
                         "'adamw', 'nesterov': true, 'beta1': 0.8}}",
                         1281167);
    cr_assert(plan_warns(plan, "optimizer.nesterov has no effect with optimizer.name adamw"));
    cr_assert(
        plan_warns(plan, "lr.base is 0.1, far above the usual learning rate of adamw, 0.001"));
    cr_assert_not(plan_warns(plan, "optimizer.beta1"));
    plan_destroy(plan);
}

Test(plan, says_which_keys_the_network_does_not_use)
{
    struct plan *plan =
        right_plan_of("{'data': {'train': 'x'}, 'model': {'arch': 'cnn', 'winograd': false, "
                      "'stem': 'small'}, 'optimizer': {'decay_bn': true}}",
                      60000);

    cr_assert(plan_warns(plan, "model.winograd has no effect with model.arch cnn"));
    cr_assert(plan_warns(plan, "model.stem has no effect with model.arch cnn"));
    cr_assert(plan_warns(plan, "optimizer.decay_bn has no effect with model.arch cnn"));
    cr_assert_not(plan_warns(plan, "model.bn_decay"));
    plan_destroy(plan);
    plan = right_plan_of("{'data': {'train': 'x'}, 'model': {'arch': 'cnn'}, 'optimizer': {'name': "
                         "'lars', 'decay_bn': true}}",
                         60000);
    cr_assert_not(plan_warns(plan, "decay_bn"), "LARS spares biases by it");
    plan_destroy(plan);
}

/* 4 bytes of: weights, gradients and momentum; 48 images with their activations. */
Test(plan, knows_the_memory_of_the_small_network)
{
    struct plan *plan = right_plan_of(
        "{'data': {'train': 'x'}, 'model': {'arch': 'cnn'}, 'batch_per_worker': 48}", 60000);
    double parameters = 4.0 * 3274634, y = 28 * 28 * 32 + 14 * 14 * 64;

    cr_assert_gt((double)plan->memory_bytes_per_worker, 3 * parameters + 48 * 4 * 1.8 * y);
    cr_assert_lt((double)plan->memory_bytes_per_worker,
                 3 * parameters + 48 * 4 * 2.6 * y + (60 << 20));
    plan_destroy(plan);
}

/* 1281167 images in batches of 96: 13345 steps an epoch. */
Test(plan, follows_the_sizes_of_images)
{
    const char *text = "{'data': {'train': 'x'}, 'epochs': 4, 'lr': {'warmup_epochs': 1}, 'model': "
                       "{'image_size': [[0, 112], [1, 160], [3, 224], [9, 256]]}}";
    struct plan *plan = right_plan_of(text, 1281167);
    struct job_spec *spec = job_of(text);
    int64_t step = plan->steps_per_epoch;

    cr_assert_eq(plan->size_count, 4);
    cr_assert(plan->sizes[1].step == step && plan->sizes[2].step == 3 * step);
    cr_assert(plan->sizes[0].size == 112 && plan->sizes[1].size == 160 &&
              plan->sizes[2].size == 224);
    cr_assert(plan_warns(plan, "before images reach 256 pixels"));
    double pixels = (112 * 112 + 2 * 160 * 160 + 224 * 224) / 4.0 / (256 * 256);
    cr_assert_float_eq(plan->size_cost, pixels, 0.02 * pixels);
    cr_assert_float_eq(plan_steps_cost(plan, spec, 2 * step, 4 * step),
                       (double)step * (160 * 160 + 224 * 224) / (256 * 256), 0.02 * (double)step);
    cr_assert_not_null(json_object_get(plan->explain, "image_sizes"));
    job_spec_destroy(spec);
    plan_destroy(plan);
    plan = right_plan_of("{'data': {'train': 'x'}}", 1281167);
    cr_assert(plan->size_cost == 1 && plan->size_count == 1);
    cr_assert_null(json_object_get(plan->explain, "image_sizes"));
    plan_destroy(plan);
}

static double seconds_of_sizes(const char *sizes)
{
    char text[256];
    snprintf(text, sizeof text,
             "{'data': {'train': 'x'}, 'epochs': 4, 'model': {'image_size': %s}}", sizes);
    struct job_spec *spec = job_of(text);
    struct plan_inputs inputs = {.train_images = 1281167, .speed = {.image_seconds = 0.01}};
    struct problems problems = {0};
    struct plan *plan = plan_make(spec, &inputs, &problems);
    double seconds = plan->predicted.ttt_seconds.value;
    plan_destroy(plan);
    job_spec_destroy(spec);
    return seconds;
}

Test(plan, small_images_take_less_time)
{
    double all = seconds_of_sizes("224"), half = seconds_of_sizes("[[0, 112], [2, 224]]");
    cr_assert_float_eq(half / all, (1 + 0.25) / 2, 0.01);
}

Test(plan, fractional_epochs_are_rounded_to_steps)
{
    struct plan *plan = right_plan_of("{'data': {'train': 'x'}, 'batch_per_worker': 5, 'epochs': "
                                      "1.25, 'lr': {'warmup_epochs': 0.25}}",
                                      105);

    cr_assert_eq(plan->steps_per_epoch, 10);
    cr_assert_eq(plan->dropped_images_per_epoch, 5);
    cr_assert_eq(plan->train_steps, 13); /* 12.5 */
    cr_assert_eq(plan->warmup_steps, 3); /* 2.5 */
    plan_destroy(plan);
}

Test(plan, steps_override_epochs)
{
    struct plan *plan = right_plan_of(
        "{'data': {'train': 'x'}, 'batch_per_worker': 5, 'steps': 17, 'lr': {'start': 0}}", 100);

    cr_assert_eq(plan->train_steps, 17);
    cr_assert_eq(plan->lr.train_steps, 17);
    cr_assert_eq(plan->lr.milestone_steps[0], 300);
    cr_assert(plan_warns(plan, "warm-up (50 steps) is longer than the run (17 steps)"));
    plan_destroy(plan);
}

/* As lr.base is reached with a larger batch, the rate begins at its peak. */
Test(plan, a_warm_up_without_effect_is_warned_of)
{
    static const char document[] = "{'data': {'train': 'x'}, 'batch_per_worker': 5, 'steps': 17%s}";
    static const struct {
        const char *lr;
        bool flat, never;
    } cases[] = {
        {"",                             true,  false},
        {", 'lr': {'warmup_epochs': 0}", false, false},
        {", 'lr': {'start': 0}",         false, true },
        {", 'lr': {'start': 1}",         false, true },
    };
    char text[160];

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(text, sizeof text, document, cases[i].lr);
        struct plan *plan = right_plan_of(text, 100);
        cr_expect_eq(plan_warns(plan, "warm-up has no effect: it begins at the peak"),
                     cases[i].flat, "%s", text);
        cr_expect_eq(plan_warns(plan, "never reaches its peak"), cases[i].never, "%s", text);
        plan_destroy(plan);
    }
}

Test(plan, fewer_images_than_the_global_batch_are_refused)
{
    struct problems p = {0};

    cr_assert_null(plan_document("{'data': {'train': 'x'}}", 95, &p));
    cr_assert_eq(p.count, 1);
    cr_assert_str_eq(p.items[0].pointer, "/batch_per_worker");
    cr_assert_not_null(strstr(p.items[0].message, "at most 47 images per worker"));
    problems_clear(&p);
    cr_assert_null(plan_document("{'data': {'train': 'x'}}", 1, &p));
    cr_assert_str_eq(p.items[0].pointer, "/cluster/workers_per_node");
    problems_clear(&p);
    cr_assert_null(plan_document("{'data': {'train': 'x'}}", 0, &p));
    cr_assert_str_eq(p.items[0].pointer, "/data/train_images");
    problems_clear(&p);
    cr_assert_null(plan_document("{'data': {'train': 'x'}, 'epochs': 0.01}", 960, &p));
    cr_assert_str_eq(p.items[0].pointer, "/epochs");
    problems_clear(&p);
}

Test(plan, exactly_one_batch_is_enough)
{
    struct plan *plan = right_plan_of("{'data': {'train': 'x'}}", 96);

    cr_assert_eq(plan->steps_per_epoch, 1);
    cr_assert_eq(plan->dropped_images_per_epoch, 0);
    cr_assert(!plan_warns(plan, "dropped"));
    plan_destroy(plan);
}

Test(plan, of_an_evaluation_has_no_training_numbers)
{
    struct plan *plan =
        right_plan_of("{'mode': 'eval', 'model': {'init': 'w'}, 'data': {'eval': 'e'}}", 0);
    json_t *out = plan_to_json(plan);

    cr_assert(json_is_null(json_object_get(out, "train_steps")));
    cr_assert(json_is_null(json_object_get(out, "peak_lr")));
    cr_assert_eq(json_integer_value(json_object_get(out, "world_size")), 2);
    json_decref(out);
    plan_destroy(plan);
}

static double planned_memory(int batch, const char *eval)
{
    char text[128];

    snprintf(text, sizeof text, "{'data': {'train': 'x', 'eval': %s}, 'batch_per_worker': %d}",
             eval, batch);
    struct plan *plan = right_plan_of(text, 1000);
    double bytes = (double)plan->memory_bytes_per_worker;
    plan_destroy(plan);
    return bytes;
}

/* Against the engine's largest resident size: 439.3 MB with 2 images a worker, 1153.4 MB with 16.
 */
Test(plan, memory_of_resnet50)
{
    double two = planned_memory(2, "null"), sixteen = planned_memory(16, "null");

    cr_assert(two > 439.3e6 && two < 1.1 * 439.3e6, "%.0f", two);
    cr_assert(sixteen > 1153.4e6 && sixteen < 1.05 * 1153.4e6, "%.0f", sixteen);
    /* Measured with synthetic images, of which two batches are in memory instead of four. */
    cr_assert_float_eq((sixteen - two) / 14, 51.1e6 + 2 * 224 * 224 * 3 * 4, 1e6);
    cr_assert_float_eq(planned_memory(2, "\"e\"") - two, 3 * 200 * 224.0 * 224 * 3 * 4, 1);
}

Test(plan, memory_counts_the_batches_made_ahead)
{
    struct plan *three = right_plan_of("{'data': {'train': 'x'}}", 1000);
    struct plan *nine = right_plan_of("{'data': {'train': 'x', 'prefetch_batches': 9}}", 1000);

    cr_assert_eq(nine->memory_bytes_per_worker - three->memory_bytes_per_worker,
                 6ll * 48 * 224 * 224 * 3 * 4);
    plan_destroy(three);
    plan_destroy(nine);
}

Test(plan, prediction_needs_a_measurement)
{
    struct job_spec *spec = job_of("{'data': {'train': 'x', 'eval': 'e'}, 'epochs': 2}");
    struct plan_inputs inputs = {.train_images = 9600, .eval_images = 300};
    struct problems p = {0};
    struct plan *plan = plan_make(spec, &inputs, &p);
    json_t *out = plan_to_json(plan);

    cr_assert(!plan->predicted.known);
    cr_assert(json_is_null(json_object_get(
        json_object_get(json_object_get(out, "predicted"), "ttt_seconds"), "value")));
    json_decref(out);
    plan_destroy(plan);

    inputs.speed = (struct plan_speed){.image_seconds = 0.1, .workers = 2, .samples = 1};
    plan = plan_make(spec, &inputs, &p);
    cr_assert(plan->predicted.known);
    cr_assert_float_eq(plan->predicted.images_per_sec.value, 20, 1e-9);
    cr_assert_float_eq(plan->predicted.ttt_seconds.value, (19200 + 100) / 20.0, 1e-9);
    cr_assert_lt(plan->predicted.ttt_seconds.low, plan->predicted.ttt_seconds.value);
    cr_assert_gt(plan->predicted.ttt_seconds.high, plan->predicted.ttt_seconds.value);
    plan_destroy(plan);

    inputs.speed.slowest_times = 1.25;
    strcpy(inputs.speed.slowest, "n3");
    plan = plan_make(spec, &inputs, &p);
    cr_assert_float_eq(plan->predicted.images_per_sec.value, 16, 1e-9,
                       "all wait for the slowest node");
    cr_assert(strstr(json_string_value(json_array_get(plan->warnings, 0)),
                     "node n3 is 20 % slower than others of its kind"));
    plan_destroy(plan);
    job_spec_destroy(spec);
}

Test(plan, keys_of_the_all_reduce_without_effect_are_warned_of)
{
    static const struct {
        const char *cluster, *words;
    } cases[] = {
        {"{'workers_per_node': 2}",           "on one machine" },
        {"{'workers_per_node': 1}",           "with one worker"},
        {"{'nodes': 2, 'hosts': ['a', 'b']}", NULL             },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256], fusion[64], overlap[64], core[64];
        snprintf(text, sizeof text,
                 "{'data': {'train': 'x'}, 'cluster': %s, 'comm': {'fusion_bytes': 1048576, "
                 "'overlap': false, 'core': 3, 'dtype': 'bf16'}}",
                 cases[i].cluster);
        snprintf(fusion, sizeof fusion, "comm.fusion_bytes has no effect %s",
                 cases[i].words ? cases[i].words : "");
        snprintf(overlap, sizeof overlap, "comm.overlap has no effect %s",
                 cases[i].words ? cases[i].words : "");
        snprintf(core, sizeof core, "comm.core has no effect %s",
                 cases[i].words ? cases[i].words : "without comm.overlap");
        struct plan *plan = right_plan_of(text, 50000);
        cr_assert(plan_warns(plan, core), "%s", text);
        cr_assert_eq(plan_warns(plan, fusion), cases[i].words != NULL, "%s", text);
        cr_assert_eq(plan_warns(plan, overlap), cases[i].words != NULL, "%s", text);
        cr_assert_eq(plan_warns(plan, "comm.dtype has no effect with one worker"), i == 1, "%s",
                     text);
        plan_destroy(plan);
    }
    struct plan *plan = right_plan_of("{'data': {'train': 'x'}, 'comm': {'core': 'none'}, "
                                      "'cluster': {'nodes': 2, 'hosts': ['a', 'b']}}",
                                      50000);
    cr_assert_not(plan_warns(plan, "comm."), "several machines");
    plan_destroy(plan);
    plan = right_plan_of("{'data': {'train': 'x'}}", 50000);
    cr_assert_not(plan_warns(plan, "comm."), "the defaults");
    plan_destroy(plan);
}

Test(plan, every_number_is_explained_by_what_it_says)
{
    struct plan *plan = right_plan_of(SURFSARA, 1281167);
    json_t *out = plan_to_json(plan), *value;
    const char *key;

    json_object_foreach (out, key, value) {
        if (strcmp(key, "warnings") == 0 || strcmp(key, "explain") == 0)
            continue;
        const json_t *entry = json_object_get(plan->explain, key);
        cr_assert_not_null(entry, "%s is not explained", key);
        cr_assert(json_is_string(json_object_get(entry, "formula")), "%s", key);
        cr_assert(json_is_object(json_object_get(entry, "inputs")), "%s", key);
        cr_assert(json_is_string(json_object_get(entry, "source")), "%s", key);
        if (json_is_number(value))
            cr_assert(json_equal(json_object_get(entry, "value"), value), "%s", key);
    }
    json_decref(out);
    plan_destroy(plan);
}

Test(plan, averaged_weights_are_explained)
{
    struct plan *plan =
        right_plan_of("{'data': {'train': 'x'}, 'ema': {'half_life': 2, 'every': 4}}", 96000);
    const json_t *row = json_object_get(plan->explain, "ema");

    cr_assert_str_eq(json_string_value(json_object_get(row, "formula")), "0.5^(every / half_life)");
    cr_assert_eq(json_number_value(json_object_get(row, "value")), 0.25);
    plan_destroy(plan);
    plan = right_plan_of("{'data': {'train': 'x', 'augment': false, 'flip': 'alternating'}, "
                         "'ema': {'every': 4}}",
                         96000);
    cr_assert(plan_warns(plan, "data.flip has no effect without data.augment"));
    cr_assert_null(json_object_get(plan->explain, "ema"));
    cr_assert(plan_warns(plan, "ema.every has no effect without ema.decay or ema.half_life"));
    plan_destroy(plan);
}

Test(plan, rates_above_the_peak_are_warned_of)
{
    struct plan *plan =
        right_plan_of("{'data': {'train': 'x'}, 'lr': {'start': 5, 'end': 6}}", 96000);

    cr_assert(plan_warns(plan, "lr.start (5) is above the peak"));
    cr_assert(plan_warns(plan, "lr.end (6) is above the peak"));
    plan_destroy(plan);
}

static struct plan *plan_on(const char *text, const struct plan_data *data,
                            struct problems *problems)
{
    struct job_spec *spec = job_of(text);
    struct plan_inputs inputs = {.train_images = 60000, .eval_images = 10000, .data = *data};
    struct plan *plan = plan_make(spec, &inputs, problems);

    job_spec_destroy(spec);
    return plan;
}

/* A document that is right by itself may be wrong for its data. */
Test(plan, warns_if_the_data_contradict_the_document)
{
    static const char document[] = "{'data': {'train': 'x', 'eval': 'y'}}";
    struct plan_data fashion = {.classes = 10,
                                .width = 28,
                                .height = 28,
                                .evaluates_training = true},
                     imagenet = {.classes = 1000, .width = 500, .height = 375}, unknown = {0};
    struct problems none = {0};
    struct plan *plan = plan_on(document, &fashion, &none);

    cr_assert(plan_warns(plan, "model.classes is 1000, but the training data have 10 classes"));
    cr_assert(plan_warns(plan, "28 x 28 pixels: enlarging takes about 64 times"));
    cr_assert(plan_warns(plan, "data.eval is the training data"));
    plan_destroy(plan);
    for (int i = 0; i < 2; i++) {
        plan = plan_on(document, i ? &imagenet : &unknown, &none);
        cr_assert(!plan_warns(plan, "classes") && !plan_warns(plan, "pixels") &&
                  !plan_warns(plan, "data.eval"));
        plan_destroy(plan);
    }
}

Test(plan, refuses_fewer_classes_than_the_data_have)
{
    struct plan_data data = {.classes = 1000};
    struct problems problems = {0};

    cr_assert_null(plan_on("{'model': {'classes': 10}, 'data': {'train': 'x'}}", &data, &problems));
    cr_assert_eq(problems.count, 1);
    cr_assert_str_eq(problems.items[0].pointer, "/model/classes");
    problems_clear(&problems);
}

Test(plan, refuses_evaluation_data_of_other_classes)
{
    struct plan_data data = {.other_classes = "has no folder of class b"};
    struct problems problems = {0};

    cr_assert_null(plan_on("{'data': {'train': 'x', 'eval': 'y'}}", &data, &problems));
    cr_assert_eq(problems.count, 1);
    cr_assert_str_eq(problems.items[0].pointer, "/data/eval");
    problems_clear(&problems);
}

Test(plan, warns_of_batch_norm_over_one_image)
{
#define JOB_OF(model, batch)                                                                       \
    "{'data': {'train': 'x'}, 'batch_per_worker': " batch ", 'model': {" model "}}"
    static const struct {
        const char *document;
        bool alone, constant;
    } cases[] = {
        {JOB_OF("'image_size': 224",                 "1"), true,  false},
        {JOB_OF("'image_size': 224",                 "2"), false, false},
        {JOB_OF("'image_size': 32",                  "1"), false, true },
        {JOB_OF("'image_size': 33",                  "1"), true,  false}, /* 17, 9, 5, 3, 2 pixels wide */
        {JOB_OF("'image_size': 32",                  "2"), false, false},
        {JOB_OF("'image_size': 32, 'stem': 'small'", "1"), true,  false},
        {JOB_OF("'arch': 'cnn'",                     "1"), false, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan *plan = right_plan_of(cases[i].document, 60000);
        cr_expect_eq(plan_warns(plan, "batch norm normalises each image by itself"), cases[i].alone,
                     "%s", cases[i].document);
        cr_expect_eq(plan_warns(plan, "the network cannot learn"), cases[i].constant, "%s",
                     cases[i].document);
        plan_destroy(plan);
    }
}

Test(plan, warns_of_a_rate_far_above_the_usual)
{
    static const struct {
        const char *document;
        bool warned;
    } cases[] = {
        {"{'data': {'train': 'x'}, 'lr': {'base': 4000}}",                                          true },
        {"{'data': {'train': 'x'}, 'lr': {'base': 0.4}}",                                           false},
        {"{'data': {'train': 'x'}, 'batch_per_worker': 4096, 'lr': {'base': 0.2}}",                 false},
        {"{'data': {'train': 'x'}, 'batch_per_worker': 2, 'lr': {'base': 0.1, 'scaling': 'none'}}",
         false                                                                                           },
        {"{'data': {'train': 'x'}, 'batch_per_worker': 8192, 'optimizer': {'name': 'lars'}, 'lr': "
         "{'base': 0.45}}",                                                                false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan *plan = right_plan_of(cases[i].document, 1281167);
        cr_assert_eq(plan_warns(plan, "the learning rate rises to"), cases[i].warned, "case %zu",
                     i);
        plan_destroy(plan);
    }
}
