/* The ways to cut a node's cores that a plan chooses from. */
#include "common/plan/workers.h"

#include <stdio.h>

#include "common/plan/plan_build.h"
#include "tests/unit/common/job.h"

struct case_of {
    const char *keys; /* of the document, beside data and workers_per_node */
    struct plan_workers_node node;
    int64_t workers, threads, images;
    const char *reason; /* part of it */
};

/* A node whose threads lose half of their speed in teams of more than four: as measured. */
static bool teams_of_four(const struct job_spec *spec, struct plan_speed *speed, void *context)
{
    int64_t threads = spec->cluster.threads_per_worker;

    (void)context;
    *speed = (struct plan_speed){.image_seconds = (threads > 4 ? 2.0 : 1.0) / (double)threads,
                                 .workers = spec->cluster.workers_per_node,
                                 .batch = spec->batch_per_worker,
                                 .samples = 3};
    return true;
}

static struct job_spec *open_job(const char *keys)
{
    char text[512];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, 'cluster': {'workers_per_node': 0%s",
             keys);
    return job_of(text);
}

static const struct case_of cases[] = {
  /* the documents' node: 96 images, two sockets of 24 cores */
    {"}, 'global_batch': 96}",
     {.cores = 48, .domain_cores = 24},
     2,                                                                                              24,
     48,                                                                                                     "within 24 cores of one NUMA domain"            },
 /* one socket: a worker is enough */
    {"}, 'global_batch': 96}",
     {.cores = 24},
     1,                                                                                              24,
     96,                                                                                                     "batch norm needs at least 16 images per worker"},
 /* each worker's own batch: what it costs is said */
    {"}, 'batch_per_worker': 48}",                                                 {.cores = 24}, 1, 24, 48, "makes the global batch larger"                 },
 /* measured: teams of four are twice as fast */
    {"}, 'global_batch': 192}",
     {.cores = 16, .speed = teams_of_four},
     4,                                                                                              4,
     48,                                                                                                     "speeds are measured"                           },
 /* no way keeps 16 images: as few workers as can be */
    {"}, 'global_batch': 8}",                                                      {.cores = 8},  1, 8,  8,  "but none of 4"                                 },
 /* without batch norm more workers may be */
    {"}, 'global_batch': 8, 'model': {'arch': 'cnn'}}",
     {.cores = 8, .speed = teams_of_four},
     2,                                                                                              4,
     4,                                                                                                      "2 workers of 4 threads"                        },
 /* stated threads: no core is left without work */
    {", 'threads_per_worker': 2}, 'global_batch': 192}",
     {.cores = 9},
     4,                                                                                              2,
     48,                                                                                                     "4 workers of 2 threads for 9 cores"            },
 /* a stated batch leaves one way, and "auto" several */
    {"}, 'global_batch': 96, 'batch_per_worker': 24}",                             {.cores = 8},  4, 2,  24, "the only choice"                               },
    {"}, 'global_batch': 96, 'batch_per_worker': 48, 'accumulate_steps': 'auto'}",
     {.cores = 8},
     1,                                                                                              8,
     48,                                                                                                     "1 worker of 8 threads"                         },
};

Test(workers, are_chosen_by_speed_memory_and_batch_norm)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct case_of *c = &cases[i];
        struct job_spec *spec = open_job(c->keys);
        struct problems problems = {0};
        struct plan_workers chosen;
        char words[1200];

        cr_assert(job_spec_leaves_workers(spec));
        cr_assert(plan_workers_choose(spec, &c->node, &chosen, &problems), "case %zu", i);
        snprintf(words, sizeof words, "case %zu: %s | %s", i, chosen.reason, chosen.ways);
        cr_expect_eq(spec->cluster.workers_per_node, c->workers, "%s", words);
        cr_expect_eq(spec->cluster.threads_per_worker, c->threads, "%s", words);
        cr_expect_eq(spec->batch_per_worker, c->images, "%s", words);
        cr_expect_not_null(strstr(chosen.reason, c->reason), "%s", words);
        job_spec_destroy(spec);
    }
}

Test(workers, candidates_that_exceed_the_memory_are_left_out)
{
    struct job_spec *spec = open_job("}, 'batch_per_worker': 48}");
    struct plan_workers_node node = {.cores = 8, .memory_bytes = 4ll << 30, .speed = teams_of_four};
    struct problems problems = {0};
    struct plan_workers chosen;

    cr_assert(plan_workers_choose(spec, &node, &chosen, &problems));
    cr_expect_eq(chosen.workers, 1, "%s", chosen.reason); /* two would take 5.4 GB */
    cr_expect_not_null(strstr(chosen.reason, "more than the node's 4.29 GB"), "%s", chosen.reason);
    spec->cluster.workers_per_node = spec->cluster.threads_per_worker = 0;
    node.memory_bytes = 1 << 30;
    cr_assert(plan_workers_choose(spec, &node, &chosen, &problems));
    cr_expect_not_null(strstr(chosen.reason, "no combination"), "%s", chosen.reason);
    job_spec_destroy(spec);
}

Test(workers, no_batch_that_fits_is_a_problem)
{
    struct job_spec *spec = open_job("}, 'global_batch': 97, 'batch_per_worker': 24}");
    struct plan_workers_node node = {.cores = 8};
    struct problems problems = {0};
    struct plan_workers chosen;

    cr_assert_not(plan_workers_choose(spec, &node, &chosen, &problems));
    cr_assert_eq(problems.count, 1);
    cr_expect_str_eq(problems.items[0].pointer, "/batch_per_worker");
    problems_clear(&problems);
    struct plan_inputs inputs = {.train_images = 1000};
    cr_assert_null(plan_make(spec, &inputs, &problems), "a plan without workers");
    cr_expect_str_eq(problems.items[0].pointer, "/cluster/workers_per_node");
    problems_clear(&problems);
    job_spec_destroy(spec);
}

/* Speeds of other numbers of threads follow from the nearest that was measured. */
static bool one_thread_only(const struct job_spec *spec, struct plan_speed *speed, void *context)
{
    (void)context;
    *speed = (struct plan_speed){.image_seconds = 0.2, .workers = 8, .batch = 48, .samples = 1};
    return spec->cluster.threads_per_worker == 1;
}

Test(workers, the_plan_explains_the_choice)
{
    struct job_spec *spec = open_job("}, 'global_batch': 96}");
    struct plan_workers_node node = {.cores = 8, .speed = one_thread_only};
    struct plan_inputs inputs = {.train_images = 9600, .node_cores = 8, .cores_source = "here"};
    struct problems problems = {0};
    struct plan_workers chosen;

    cr_assert(plan_workers_choose(spec, &node, &chosen, &problems));
    cr_assert_eq(chosen.workers, 1, "%s", chosen.reason);
    cr_expect(chosen.speed.image_seconds > 0.2 / 8 && chosen.speed.image_seconds < 0.22 / 8, "%f",
              chosen.speed.image_seconds);
    inputs.workers = &chosen;
    inputs.speed = chosen.speed;
    struct plan *plan = plan_make(spec, &inputs, &problems);
    cr_assert_not_null(plan);
    json_t *row = json_object_get(plan->explain, "workers_per_node");
    cr_expect_str_eq(json_string_value(json_object_get(row, "note")), chosen.reason);
    cr_expect_eq(json_integer_value(json_object_get(row, "value")), 1);
    cr_expect_eq(json_integer_value(json_object_get(
                     json_object_get(plan->explain, "threads_per_worker"), "value")),
                 8);
    cr_expect(plan->predicted.images_per_sec.value > 30, "%f",
              plan->predicted.images_per_sec.value);
    plan_destroy(plan);
    job_spec_destroy(spec);
}
