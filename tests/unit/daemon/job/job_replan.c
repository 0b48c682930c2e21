/* Resuming, with other workers or on fewer hosts. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/job/job_replan.h"
#include "daemon/job/job_requests.h"
#include "tests/unit/daemon/job/fixture.h"

static struct error e;
static struct problems problems;

static void tear_down(void)
{
    problems_clear(&problems);
    jobs_close();
}

TestSuite(job_replan, .init = jobs_open, .fini = tear_down);

static int resume(int64_t id, const char *changes)
{
    json_t *json = changes ? json_loads(changes, 0, NULL) : NULL, *answer;
    int status = job_resume(jobs_manager, id, json, "user:a", &problems, &answer, &e);

    json_decref(json);
    json_decref(answer);
    return status;
}

static int64_t failed_job(int64_t checkpoint)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    jobs_set_state(id, JOB_RUNNING);
    jobs_set_state(id, JOB_FAILED);
    if (checkpoint)
        jobs_write_checkpoint(id, checkpoint);
    return id;
}

Test(job_replan, a_failed_job_waits_again_to_continue_from_its_checkpoint)
{
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_str_eq(job.reason, "resumed on request, from its checkpoint of step 2");
    cr_assert_eq(job.slots, 2);
    store_job_clear(&job);
    cr_assert_eq(resume(id, NULL), -ERR_CONFLICT);
}

Test(job_replan, what_cannot_be_resumed_says_why)
{
    int64_t queued = jobs_submit(), bare = failed_job(0), done = jobs_submit();

    jobs_begin(done);
    jobs_set_state(done, JOB_RUNNING);
    jobs_set_state(done, JOB_SUCCEEDED);
    const struct {
        int64_t id;
        enum error_code code;
        const char *words;
    } rows[] = {
        {queued, ERR_CONFLICT,  "only one that has failed or was cancelled"},
        {bare,   ERR_CONFLICT,  "has no checkpoint to resume from"         },
        {done,   ERR_CONFLICT,  "has succeeded: there is nothing to resume"},
        {99,     ERR_NOT_FOUND, "99"                                       },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(resume(rows[i].id, NULL), -(int)rows[i].code, "row %zu", i);
        cr_expect(strstr(e.text, rows[i].words), "%s", e.text);
    }
}

Test(job_replan, changes_are_checked_before_anything_is_stored)
{
    static const char *const wrong[] = {
        "{\"steps\":9}",
        "{\"cluster\":{\"workers_per_node\":0}}",
        "{\"cluster\":{\"workers_per_node\":64}}",
        "{\"cluster\":{\"wrong\":1}}",
    };
    int64_t id = failed_job(2);

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_expect_eq(resume(id, wrong[i]), -ERR_INVALID, "%s: %s", wrong[i], e.text);
        cr_expect_gt(problems.count, 0, "%s", wrong[i]);
        problems_clear(&problems);
    }
    cr_assert_eq(jobs_state(id), JOB_FAILED);
}

Test(job_replan, other_workers_make_another_plan)
{
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, "{\"cluster\":{\"workers_per_node\":1},\"priority\":7}"), 0, "%s",
                 problems.count ? problems.items[0].message : e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.slots, 1);
    cr_assert_eq(job.priority, 7);
    cr_assert_eq(json_integer_value(json_object_get(store_job_plan(&job), "world_size")), 1);
    store_job_clear(&job);
}

Test(job_replan, a_job_too_large_for_the_node_continues_with_fewer_workers)
{
    jobs_parse("\"workers_per_node\":4,\"threads_per_worker\":1");
    int64_t id = failed_job(2);

    cr_assert_eq(resume(id, NULL), 0, "%s", e.text);
    jobs_manager->slots = 2; /* traind.conf has become smaller */
    cr_assert_eq(job_replan_for_slots(jobs_manager, id, &e), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_leq(job.slots, 2);
    store_job_clear(&job);
}
