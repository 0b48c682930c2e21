/* What trainctl bench reads out of a run's events. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/measure/bench.h"
#include "common/job/job_document.h"

static struct job_spec *bench_spec(const char *text)
{
    struct problems problems = {0};
    json_t *document = json_loads(text, 0, NULL);
    struct job_spec *spec = job_spec_parse(document, NULL, NULL, &problems);

    cr_assert_not_null(spec);
    json_decref(document);
    return spec;
}

static int read_events(const char *events, const struct job_spec *spec, struct bench *b,
                       struct error *e)
{
    char path[] = "/tmp/bench-events-XXXXXX";
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    FILE *file = fdopen(fd, "w");
    fputs(events, file);
    fclose(file);
    int status = bench_read(path, spec, b, e);
    unlink(path);
    return status;
}

#define STEP(n, ms, forward)                                                                       \
    "{\"seq\": 1, \"t\": 1, \"type\": \"step\", \"step\": " #n ", \"step_ms\": " #ms               \
    ", \"data_ms\": 1, \"forward_ms\": " #forward                                                  \
    ", \"backward_ms\": 9, \"comm_ms\": 2, \"optim_ms\": 3}\n"

Test(bench, training_is_the_median_without_the_first_step)
{
    struct job_spec *spec =
        bench_spec("{\"data\": {\"train\": \"synthetic\"}, \"batch_per_worker\": 16}");
    struct bench b;
    struct error e;

    cr_assert_eq(
        read_events(STEP(1, 9000, 900) STEP(2, 200, 30) STEP(3, 400, 50)
                        STEP(4, 250, 40) "{\"type\": \"run_stop\", \"memory_peak_bytes\": 1000000, "
                                         "\"sgemm_gflops\": 6000, \"stream_gb_per_sec\": 80, "
                                         "\"bytes_per_image\": 500000000}\n",
                    spec, &b, &e),
        0);
    cr_expect_eq(b.steps, 3);
    cr_expect_eq(b.step_ms, 250);
    cr_expect_eq(b.phase_ms[BENCH_FORWARD], 40);
    cr_expect_eq(b.phase_ms[BENCH_OPTIM], 3);
    cr_expect_float_eq(b.images_per_sec, 128, 1e-9);   /* 2 workers x 16 in 0.25 s */
    cr_expect_float_eq(b.gflop_per_image, 24.5, 0.05); /* ResNet-50 at 224: 3 x forward */
    cr_expect_float_eq(b.gflops, 128 * b.gflop_per_image, 1e-6);
    cr_expect_eq(b.memory_bytes, 1000000);
    cr_expect_eq(b.peak_gflops, 6000);
    cr_expect_float_eq(b.gb_per_image, 0.5, 1e-9);
    cr_expect_float_eq(b.gb_per_sec, 64, 1e-9);
    cr_expect_eq(b.stream_gb_per_sec, 80);
    job_spec_destroy(spec);
}

Test(bench, evaluation_is_the_time_between_lines_of_progress)
{
    struct job_spec *spec = bench_spec("{\"mode\": \"eval\", \"data\": {\"eval\": \"synthetic\"}, "
                                       "\"eval\": {\"batch\": 10}}");
    struct bench b;
    struct error e;

    cr_assert_eq(read_events("{\"t\": 100, \"type\": \"eval_progress\", \"batch\": 2}\n"
                             "{\"t\": 100.5, \"type\": \"eval_progress\", \"batch\": 4}\n"
                             "{\"t\": 101.5, \"type\": \"eval_progress\", \"batch\": 8}\n",
                             spec, &b, &e),
                 0);
    cr_expect_eq(b.steps, 2);
    cr_expect_float_eq(b.step_ms, 500, 1e-6);
    cr_expect_float_eq(b.images_per_sec, 40, 1e-6);
    cr_expect_float_eq(b.gflop_per_image, 2 * 4.089, 0.01);
    job_spec_destroy(spec);
}

Test(bench, a_run_without_a_second_step_is_an_error)
{
    struct job_spec *spec = bench_spec("{\"data\": {\"train\": \"synthetic\"}}");
    struct bench b;
    struct error e;

    cr_expect_eq(read_events(STEP(1, 9000, 900) "half a li", spec, &b, &e), -ERR_CORRUPT);
    job_spec_destroy(spec);
}
