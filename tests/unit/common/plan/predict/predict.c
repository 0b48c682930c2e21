#include "common/job/job_document.h"
#include "common/plan/predict/predict.h"

#include <math.h>

#include "common/plan/plan.h"
#include "common/plan/predict/threads.h"
#include "tests/unit/common/job.h"

TestSuite(predict, .init = use_source_presets);

/* Images per second of a node, of the SURFsara recipe on nodes that do 79 alone. */
static double a_node_of(int64_t nodes)
{
    struct job_spec *spec = job_of("{\"preset\": \"surfsara-24k\", \"data\": {\"train\": \"x\"}}");
    struct plan_speed speed = {.image_seconds = 2 / 79.0, .samples = 1};
    struct plan_band step;

    spec->cluster.nodes = nodes;
    cr_assert(predict_step(spec, &speed, &plan_network_default, &step));
    cr_assert(step.low < step.value && step.value < step.high);
    double rate = (double)(spec->cluster.workers_per_node * spec->batch_per_worker) / step.value;
    job_spec_destroy(spec);
    return rate;
}

static void compare_published(const char *what, double predicted, double published,
                              double tolerance)
{
    double error = predicted / published - 1;

    printf("# %s: predicted %.3g, published %.3g, error %+.1f %%\n", what, predicted, published,
           100 * error);
    cr_assert(fabs(error) <= tolerance, "%s: %.4g instead of %.4g", what, predicted, published);
}

/* SURFsara and Intel, 2018: 16,400 images/s on 256 nodes are 64 a node, 81 % of 79. The model is
 * fitted to this one. */
Test(predict, surfsara_at_256_nodes)
{
    compare_published("SURFsara, a node alone", a_node_of(1), 79, 0.001);
    compare_published("SURFsara, a node of 256", a_node_of(256), 64, 0.01);
    compare_published("SURFsara, scaling to 256", a_node_of(256) / a_node_of(1), 0.81, 0.01);
}

Test(predict, gradients_in_bf16_take_half_as_long_between_nodes)
{
    struct plan_speed speed = {.image_seconds = 2 / 79.0, .samples = 1};
    struct plan_network network = plan_network_default;
    struct plan_band step[3];
    static const char *const dtypes[] = {"fp32", "bf16", "fp32"};

    for (int i = 0; i < 3; i++) {
        char text[192];
        snprintf(
            text, sizeof text,
            "{\"preset\": \"surfsara-24k\", \"data\": {\"train\": \"x\"}, \"comm\": {\"overlap\": "
            "false, \"dtype\": \"%s\"}}",
            dtypes[i]);
        struct job_spec *spec = job_of(text);
        network.bytes_per_second = i == 2 ? INFINITY : plan_network_default.bytes_per_second;
        cr_assert(predict_step(spec, &speed, &network, &step[i]));
        job_spec_destroy(spec);
    }
    cr_assert_float_eq(step[1].value - step[2].value, (step[0].value - step[2].value) / 2,
                       1e-9 * step[0].value);
}

/* Not fitted to. Intel Caffe's own speed alone is not published: SURFsara's nodes stand for it. */
Test(predict, intel_caffe_at_64_and_128_nodes)
{
    compare_published("Intel Caffe, a node of 128", a_node_of(128), 69, 0.03);
    compare_published("Intel Caffe, 64 to 128 nodes", a_node_of(128) / a_node_of(64), 0.935, 0.04);
}

/* E max of n normals: 0.5642, 1.5388, 2.5076 for 2, 10, 100 (order statistics' tables). */
Test(predict, slowest_of_n_nodes)
{
    cr_assert_eq(predict_slowest(1), 0);
    cr_assert_float_eq(predict_slowest(2), 0.5642, 0.05);
    cr_assert_float_eq(predict_slowest(10), 1.5388, 0.05);
    cr_assert_float_eq(predict_slowest(100), 2.5076, 0.03);
    cr_assert_float_eq(predict_slowest(4096), 3.6, 0.1);
    cr_assert_eq(predict_slowest(1000), predict_slowest(1000), "seeded");
}

Test(predict, more_nodes_are_never_slower_in_all_nor_faster_each)
{
    double before = a_node_of(1);

    for (int64_t n = 2; n <= 4096; n *= 2) {
        double now = a_node_of(n);
        cr_assert(now <= before, "%lld nodes", (long long)n);
        cr_assert(n > 512 || now * (double)n > before * (double)n / 2, "%lld nodes", (long long)n);
        before = now;
    }
}

Test(predict, epochs_to_the_target_are_the_tables)
{
    struct plan_band e;

    cr_assert(predict_epochs_to_target(4096, &e));
    cr_assert(e.low == 39 && e.high == 42 && e.value == 40);
    cr_assert(predict_epochs_to_target(65536, &e));
    cr_assert(e.low == 83 && e.high == 86);
    cr_assert(predict_epochs_to_target(256, &e));
    cr_assert(e.low == 33 && e.high == 37);
    cr_assert(predict_epochs_to_target(24576, &e));
    cr_assert(e.low > 44 && e.high < 57);
    cr_assert(predict_epochs_to_target(67840, &e));
    cr_assert_not(predict_epochs_to_target(67841, &e));
    cr_assert_null(predict_epochs_doubt(3264));
    cr_assert_null(predict_epochs_doubt(67840));
    cr_assert_not_null(strstr(predict_epochs_doubt(256), "the smallest published"));
    cr_assert_not_null(strstr(predict_epochs_doubt(20000), "no published batch is near"));
}

/* Speeds that were measured with 48 images for each 22 threads. */
static double step_of(int batch, int measured_batch)
{
    struct job_spec *spec = job_of("{\"data\": {\"train\": \"x\"}, \"cluster\": "
                                   "{\"workers_per_node\": 1, \"threads_per_worker\": 22}}");
    struct plan_speed speed = {.image_seconds = 1, .samples = 1, .batch = measured_batch};
    struct plan_band step;

    spec->batch_per_worker = batch;
    cr_assert(predict_step(spec, &speed, &plan_network_default, &step));
    job_spec_destroy(spec);
    return step.value / batch;
}

Test(predict, fewer_images_keep_threads_less_busy)
{
    struct job_spec *spec = job_of("{\"data\": {\"train\": \"x\"}}");
    double ratio = plan_threads_keep(spec, 22, 48) / plan_threads_keep(spec, 22, 4);

    cr_assert_gt(ratio, 1.1);
    cr_assert_float_eq(step_of(48, 48), 1, 1e-9);
    cr_assert_float_eq(step_of(4, 48), ratio, 1e-9);
    cr_assert_float_eq(step_of(4, 0), 1, 1e-9, "no batch is known");
    job_spec_destroy(spec);
}

Test(predict, samples_of_as_many_workers_are_preferred)
{
    struct plan_sample samples[] = {
        {0.5, 0.1, 0,   1, 16},
        {0.2, 0.1, 0.3, 2, 8 },
        {0.4, 0.1, 0.3, 2, 16},
        {0.3, 0.1, 0.3, 2, 16},
    };
    struct plan_speed s = plan_speed_of(samples, 4, 2, 16);

    cr_assert_eq(s.samples, 2);
    cr_assert_eq(s.workers, 2);
    cr_assert_float_eq(s.image_seconds, 0.35, 1e-12);
    cr_assert_float_eq(s.spread, 0.05 / 0.35, 1e-12);
    s = plan_speed_of(samples, 4, 4, 99);
    cr_assert(s.workers == 1 && s.samples == 1, "else the newest, of its own kind");
    cr_assert_eq(plan_speed_of(samples, 0, 1, 1).image_seconds, 0);
}

Test(predict, speeds_that_scatter_tell_nothing)
{
    struct plan_sample samples[] = {
        {0.2,  0.1, 0, 1, 8},
        {0.25, 0.1, 0, 1, 8},
        {0.4,  0.1, 0, 1, 8},
    };
    struct job_spec *spec = job_of("{\"data\": {\"train\": \"x\"}}");
    struct problems p = {0};
    struct plan_inputs inputs = {.train_images = 10000, .speed = plan_speed_of(samples, 3, 1, 8)};
    struct plan *plan = plan_make(spec, &inputs, &p);

    cr_assert(plan->predicted.known, "0.8 of the median apart");
    plan_destroy(plan);
    samples[2].image_seconds = 2;
    inputs.speed = plan_speed_of(samples, 3, 1, 8);
    plan = plan_make(spec, &inputs, &p);
    cr_assert_not(plan->predicted.known);
    json_t *why = json_object_get(json_object_get(plan->explain, "predicted"), "note");
    cr_assert(strstr(json_string_value(why), "while nothing else runs: what 3 runs measured of an "
                                             "image differs by 720 % of their median"),
              "%s", json_string_value(why));
    plan_destroy(plan);
    job_spec_destroy(spec);
}

/* A job that stops at 75.9 % is predicted by the table, another one by its own epochs. */
Test(predict, a_target_ends_the_job_as_the_table_says)
{
    struct job_spec *spec =
        job_of("{\"data\": {\"train\": \"x\", \"eval\": \"e\"}, "
               "\"batch_per_worker\": 2048, \"eval\": {\"target_top1\": 0.759}}");
    struct plan_inputs in = {
        .train_images = 1281167,
        .eval_images = 50000,
        .speed = {.image_seconds = 0.1, .samples = 1}
    };
    struct problems p = {0};
    struct plan *plan = plan_make(spec, &in, &p);

    cr_assert_eq(plan->predicted.epochs.value, 90);
    plan_destroy(plan);
    spec->eval.stop_at_target = true;
    plan = plan_make(spec, &in, &p);
    cr_assert_eq(plan->predicted.epochs.value, 40);
    cr_assert_eq(plan->predicted.epochs.high, 42);
    plan_destroy(plan);
    job_spec_destroy(spec);
}

/* Intel's MLPerf Training 3.0 run: 32 sockets at 268 images/s each, a batch of 3264, an evaluation
 * each 4 epochs: 88.2 minutes. The rate is that of the run, so the network costs nothing more. */
Test(predict, intel_mlperf_3_0)
{
    const struct plan_network none = {.bytes_per_second = 1e15, .node_bytes_per_second = 1e15};
    struct job_spec *spec =
        job_of("{\"preset\": \"intel-mlperf-3264\", \"data\": {\"train\": \"x\", \"eval\": \"e\"}, "
               "\"eval\": {\"stop_at_target\": true}}");
    struct plan_inputs in = {
        .train_images = 1281167,
        .eval_images = 50000,
        .speed = {.image_seconds = 1.0 / 268, .samples = 1},
        .network = &none
    };
    struct problems p = {0};
    struct plan *plan = plan_make(spec, &in, &p);

    cr_assert_not_null(plan);
    compare_published("Intel, MLPerf 3.0, minutes", plan->predicted.ttt_seconds.value / 60, 88.2,
                      0.1);
    cr_assert(plan->predicted.ttt_seconds.low < 88.2 * 60 &&
              plan->predicted.ttt_seconds.high > 88.2 * 60);
    plan_destroy(plan);
    job_spec_destroy(spec);
}

Test(predict, fewer_epochs_than_others_needed_are_warned_of)
{
    for (int epochs = 30; epochs <= 37; epochs += 7) {
        char text[200];
        snprintf(text, sizeof text,
                 "{\"preset\": \"intel-mlperf-3264\", \"data\": {\"train\": \"x\", \"eval\": "
                 "\"e\"}, \"epochs\": %d}",
                 epochs);
        struct job_spec *spec = job_of(text);
        struct plan_inputs in = {.train_images = 1281167, .eval_images = 50000};
        struct plan *plan = plan_make(spec, &in, &(struct problems){0});
        char *warnings = json_dumps(plan->warnings, 0);
        cr_assert_eq(strstr(warnings, "takes 34 to 37 with a global batch of 3264") != NULL,
                     epochs == 30, "%s", warnings);
        free(warnings);
        plan_destroy(plan);
        job_spec_destroy(spec);
    }
}

/* What is not published for this batch is said to be of another one. */
Test(predict, epochs_of_other_batches_are_told_as_such)
{
    static const struct {
        int64_t batch;
        const char *warning;
    } cases[] = {
        {256,   "by MLPerf's reference runs (LARS); epochs of batch 1632, the smallest published"},
        {20000, "by MLPerf's reference runs (LARS); no published batch is near"                  },
        {70000, "no run with a global batch of 70000 is known to have reached 75.9 %: the largest "
                "published batch is 67840"                                        },
    };
    struct plan_inputs in = {.train_images = 1281167, .eval_images = 50000};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct job_spec *spec =
            job_of("{\"data\": {\"train\": \"x\", \"eval\": \"e\"}, \"epochs\": 10, "
                   "\"cluster\": {\"workers_per_node\": 1}, \"eval\": {\"target_top1\": 0.759}}");
        struct problems p = {0};
        spec->batch_per_worker = cases[i].batch;
        struct plan *plan = plan_make(spec, &in, &p);
        char *warnings = json_dumps(plan->warnings, 0);
        cr_expect_not_null(strstr(warnings, cases[i].warning), "%s", warnings);
        free(warnings);
        plan_destroy(plan);
        job_spec_destroy(spec);
    }
}
