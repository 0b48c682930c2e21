/* Submission and cancelling of what has not started; the running side is tests/api's. */
#include <criterion/criterion.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/job/job_document.h"
#include "common/json.h"
#include "common/system/file.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/run_dir.h"
#include "tests/unit/daemon/job/fixture.h"

static struct error e;

TestSuite(job_requests, .init = jobs_open, .fini = jobs_close);

static int submit_key(const char *key, const char *digest, int64_t *id, bool *existed)
{
    struct job_submission s = {jobs_spec, jobs_plan, key, digest, "somebody"};
    struct problems problems = {0};
    int status = job_submit(jobs_manager, &s, &problems, id, existed, &e);

    problems_clear(&problems);
    return status;
}

Test(job_requests, a_submitted_job_is_queued)
{
    int64_t id;
    bool existed;
    struct store_job job;

    cr_assert_eq(submit_key(NULL, NULL, &id, &existed), 0, "%s", e.text);
    cr_assert_not(existed);
    cr_assert_eq(store_job_get(jobs_store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert_str_eq(job.submitted_by, "somebody");
    cr_assert_eq(job.slots, 2);
    cr_assert_eq(job.train_steps, 4);
    store_job_clear(&job);
}

Test(job_requests, the_run_directory_has_the_documents_of_the_row)
{
    int64_t id;
    char path[PATH_MAX];
    struct store_job job;

    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0, "%s", e.text);
    cr_assert_eq(store_job_get(jobs_store, id, &job, &e), 0);
    cr_assert_eq(run_dir_prepare(jobs_store, &job, &e), 0, "%s", e.text);
    snprintf(path, sizeof path, "%s/%lld/job.json", jobs_dir, (long long)id);
    json_t *written = json_document_load(path, &e), *wanted = job_spec_to_json(jobs_spec);
    cr_assert_not_null(written, "%s", e.text);
    cr_assert(json_equal(written, wanted));
    json_decref(written);
    json_decref(wanted);
    snprintf(path, sizeof path, "%s/%lld/plan.json", jobs_dir, (long long)id);
    cr_assert_eq(access(path, F_OK), 0);
    store_job_clear(&job);
}

Test(job_requests, a_job_that_never_fits_is_refused_with_the_numbers)
{
    int64_t id;
    jobs_parse("\"workers_per_node\":3,\"threads_per_worker\":2");
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), -ERR_INVALID);
    cr_assert_not_null(strstr(e.text, "3 x 2 = 6 slots"), "%s", e.text);
    cr_assert_not_null(strstr(e.text, "this node has 4"), "%s", e.text);
}

Test(job_requests, the_same_key_gives_the_same_job)
{
    int64_t first, second;
    bool existed;
    cr_assert_eq(submit_key("key", "d1", &first, &existed), 0, "%s", e.text);
    cr_assert_eq(submit_key("key", "d1", &second, &existed), 0, "%s", e.text);
    cr_assert(existed);
    cr_assert_eq(first, second);
    cr_assert_eq(submit_key("key", "d2", &second, &existed), -ERR_CONFLICT);
}

Test(job_requests, a_run_directory_that_cannot_be_made_fails_the_job_at_its_start)
{
    int64_t id;
    struct store_job job;
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0, "%s", e.text);
    file_remove_tree(jobs_dir, NULL);
    cr_assert_eq(file_write_atomic(jobs_dir, "x", 1, &e), 0, "a file in its place");
    job_queue_start(jobs_manager);
    cr_assert_eq(store_job_get(jobs_store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_FAILED);
    cr_assert_not_null(strstr(job.reason, jobs_dir), "%s", job.reason);
    store_job_clear(&job);
}

Test(job_requests, a_queued_job_is_cancelled_once)
{
    int64_t id;
    struct store_job job;
    cr_assert_eq(submit_key(NULL, NULL, &id, NULL), 0);
    cr_assert_eq(job_cancel(jobs_manager, id, "user:a", &e), 0, "%s", e.text);
    cr_assert_eq(store_job_get(jobs_store, id, &job, &e), 0);
    cr_assert_eq(job.state, JOB_CANCELLED);
    store_job_clear(&job);
    cr_assert_eq(job_cancel(jobs_manager, id, "user:a", &e), -ERR_CONFLICT);
    cr_assert_not_null(strstr(e.text, "been cancelled"), "%s", e.text);
    cr_assert_eq(job_cancel(jobs_manager, 999, NULL, &e), -ERR_NOT_FOUND);
}

Test(job_requests, only_a_job_that_waits_is_held_released_or_given_a_priority)
{
    int64_t waits = jobs_submit(), runs = jobs_submit();

    jobs_begin(runs);
    const struct {
        int (*request)(struct job_manager *m, int64_t id, const char *by, struct error *e);
        int64_t id;
        int status;
        const char *words;
    } rows[] = {
        {job_release, waits, -ERR_CONFLICT,  "job 1 is not held"                                       },
        {job_hold,    waits, 0,              NULL                                                      },
        {job_hold,    waits, -ERR_CONFLICT,  "job 1 is already held"                                   },
        {job_release, waits, 0,              NULL                                                      },
        {job_hold,    runs,  -ERR_CONFLICT,  "job 2 is in state starting: only queued jobs can be held"},
        {job_release, 99,    -ERR_NOT_FOUND, NULL                                                      },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cr_expect_eq(rows[i].request(jobs_manager, rows[i].id, "user:a", &e), rows[i].status,
                     "row %zu", i);
        cr_expect(!rows[i].words || strstr(e.text, rows[i].words), "%s", e.text);
    }
    cr_assert_eq(job_set_priority(jobs_manager, waits, 9, NULL, &e), 0, "%s", e.text);
    struct store_job job = jobs_get(waits);
    cr_assert_eq(job.priority, 9);
    store_job_clear(&job);
    cr_assert_eq(job_set_priority(jobs_manager, runs, 9, NULL, &e), -ERR_CONFLICT);
}

Test(job_requests, a_running_job_is_asked_to_end_and_keeps_its_state)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    cr_assert_eq(job_cancel(jobs_manager, id, "user:a", &e), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_STARTING);
    store_job_clear(&job);
}
