/* What a new daemon makes of jobs that are stored as active. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/system/file.h"
#include "daemon/job/job_recover.h"
#include "daemon/store/attempt.h"
#include "tests/unit/daemon/job/fixture.h"

static struct error e;

TestSuite(job_recover, .init = jobs_open, .fini = jobs_close);

Test(job_recover, a_waiting_job_is_not_touched)
{
    int64_t id = jobs_submit();

    cr_assert_eq(job_recover_all(jobs_manager, &e), 0, "%s", e.text);
    cr_assert_eq(jobs_state(id), JOB_QUEUED);
}

Test(job_recover, a_job_that_was_never_launched_waits_again)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    cr_assert_eq(job_recover_all(jobs_manager, &e), 0, "%s", e.text);
    cr_assert_eq(jobs_state(id), JOB_QUEUED);
}

Test(job_recover, a_job_whose_run_directory_is_another_jobs_fails)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    jobs_write(id, "owner.json", "{\"store\":\"x\",\"job\":7,\"created_at\":1e9}");
    cr_assert_eq(job_recover_all(jobs_manager, &e), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    cr_assert_eq(job.state, JOB_FAILED);
    cr_assert(strstr(job.reason, "belongs to another job 7"), "%s", job.reason);
    store_job_clear(&job);
}

Test(job_recover, a_job_without_launcher_and_run_directory_fails)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    cr_assert_eq(store_job_set_launcher(jobs_store, id, 999999999, 1, &e), 0, "%s", e.text);
    struct store_job job = jobs_get(id);
    file_remove_tree(job.run_dir, NULL);
    store_job_clear(&job);
    cr_assert_eq(job_recover_all(jobs_manager, &e), 0, "%s", e.text);
    job = jobs_get(id);
    cr_assert_eq(job.state, JOB_FAILED);
    cr_assert(strstr(job.reason, "is missing"), "%s", job.reason);
    store_job_clear(&job);
}
