#include "common/job/job_check.h"

#include "common/job/job_document.h"
#include "tests/unit/common/job.h"

TestSuite(job_batch, .init = use_source_presets);

static struct job_spec *with(const char *keys)
{
    char text[512];

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, %s}", keys);
    return job_of(text);
}

static void settles(const char *keys, int64_t batch, int64_t accumulate)
{
    struct job_spec *spec = with(keys);

    cr_assert_eq(spec->batch_per_worker, batch, "%s: %lld", keys,
                 (long long)spec->batch_per_worker);
    cr_assert_eq(spec->accumulate_steps, accumulate, "%s: %lld", keys,
                 (long long)spec->accumulate_steps);
    job_spec_destroy(spec);
}

Test(job_batch, is_shared_out_over_the_workers)
{
    settles("'global_batch': 64", 32, 1);
    settles("'global_batch': 24576, 'cluster': {'nodes': 256}", 48, 1);
    settles("'global_batch': 64, 'accumulate_steps': 4", 8, 4);
    settles("'global_batch': 64, 'batch_per_worker': 32", 32, 1);
    settles("'global_batch': null, 'batch_per_worker': 20", 20, 1);
}

Test(job_batch, the_document_overrides_it_and_a_preset_does_not)
{
    settles("'preset': 'surfsara-24k', 'global_batch': 8192", 16, 1);
}

Test(job_batch, auto_takes_the_fewest_batches_that_fit)
{
    settles("'global_batch': 96, 'accumulate_steps': 'auto'", 48, 1);
    settles("'global_batch': 192, 'accumulate_steps': 'auto'", 48, 2);
    settles("'global_batch': 180, 'accumulate_steps': 'auto', 'batch_per_worker': 40", 30, 3);
    settles("'global_batch': 2, 'accumulate_steps': 'auto'", 1, 1);
}

Test(job_batch, is_resolved_only_once)
{
    struct job_spec *spec = with("'global_batch': 192, 'accumulate_steps': 'auto'");
    json_t *document = job_spec_to_json(spec);
    char *text = json_dumps(document, 0);
    struct job_spec *again = job_of(text);

    cr_assert_eq(json_integer_value(json_object_get(document, "accumulate_steps")), 2);
    cr_assert_eq(again->batch_per_worker, 48);
    cr_assert_eq(again->global_batch, 192);
    free(text);
    json_decref(document);
    job_spec_destroy(spec);
    job_spec_destroy(again);
}

static void batch_refuses(const char *keys, const char *pointer, const char *words)
{
    char text[512];
    struct problems problems = {0};

    snprintf(text, sizeof text, "{'data': {'train': 'x'}, %s}", keys);
    cr_assert_null(job_parse(text, &problems), "%s", keys);
    cr_assert_eq(problems.count, 1, "%s: one problem, not %zu", keys, problems.count);
    const struct problem *p = problem_at(&problems, pointer);
    cr_assert_not_null(p, "%s: %s has none", keys, pointer);
    cr_assert_not_null(strstr(p->message, words), "%s", p->message);
    problems_clear(&problems);
}

Test(job_batch, refuses_what_is_uneven_and_names_the_nearest)
{
    batch_refuses("'global_batch': 65", "/global_batch", "the nearest that can are 64 and 66");
    batch_refuses("'global_batch': 66, 'accumulate_steps': 4", "/global_batch",
                  "2 workers with 4 batches each: the nearest that can are 64 and 72");
    batch_refuses("'global_batch': 1", "/global_batch", "it takes at least 2");
    batch_refuses("'global_batch': 194, 'accumulate_steps': 'auto'", "/global_batch",
                  "with accumulate_steps 3 the nearest that have are 192 and 198");
    batch_refuses("'global_batch': 64, 'batch_per_worker': 48", "/batch_per_worker",
                  "that takes 32: leave one of the two out");
    batch_refuses("'accumulate_steps': 'auto'", "/accumulate_steps", "needs global_batch");
    batch_refuses("'global_batch': 'much', 'accumulate_steps': 'auto'", "/global_batch",
                  "must be an integer");
    batch_refuses("'global_batch': 1000000", "/global_batch", "more than the 65536");
}

Test(job_batch, its_suggestion_is_accepted)
{
    settles("'global_batch': 192, 'accumulate_steps': 'auto'", 48, 2);
    settles("'global_batch': 198, 'accumulate_steps': 'auto'", 33, 3);
}
