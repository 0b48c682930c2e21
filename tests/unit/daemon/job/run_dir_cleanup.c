#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/system/file.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/run_dir_cleanup.h"
#include "daemon/store/job_row.h"
#include "tests/unit/daemon/job/fixture.h"

static struct error e;

TestSuite(run_dir_cleanup, .init = jobs_open, .fini = jobs_close);

static bool exists(const char *name)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", jobs_dir, name);
    return access(path, F_OK) == 0;
}

/* A job that ran and succeeded, with a run directory. */
static int64_t ended_job(void)
{
    int64_t id = jobs_submit();

    jobs_begin(id);
    jobs_set_state(id, JOB_RUNNING);
    jobs_set_state(id, JOB_SUCCEEDED);
    return id;
}

static void remove_the_rest(void)
{
    for (int i = 0; i < 100; i++)
        cleanup_remove_some(jobs_manager);
}

static bool is_gone(int64_t id)
{
    struct store_job job;
    bool gone = store_job_get(jobs_store, id, &job, &e) == -(int)ERR_NOT_FOUND;

    if (!gone)
        store_job_clear(&job);
    return gone;
}

Test(run_dir_cleanup, an_ended_job_is_removed_with_its_directory)
{
    int64_t id = ended_job();

    cr_assert_eq(id, 1);
    cr_assert_eq(job_remove(jobs_manager, id, "user:a", &e), 0, "%s", e.text);
    cr_assert(is_gone(id));
    cr_assert_not(exists("1"));
    cr_assert(exists(".removed-1"), "its files follow in the loop");
    remove_the_rest();
    cr_assert_not(exists(".removed-1"));
    cr_assert_eq(job_remove(jobs_manager, id, "user:a", &e), -ERR_NOT_FOUND);
}

Test(run_dir_cleanup, a_job_that_has_not_ended_stays)
{
    int64_t id = jobs_submit();

    cr_assert_eq(job_remove(jobs_manager, id, NULL, &e), -ERR_CONFLICT);
    cr_assert(strstr(e.text, "job 1 is queued: cancel it first"), "%s", e.text);
    jobs_begin(id);
    cr_assert_eq(job_remove(jobs_manager, id, NULL, &e), -ERR_CONFLICT);
    cr_assert(exists("1"));
}

Test(run_dir_cleanup, the_directory_of_another_job_stays)
{
    int64_t id = ended_job();

    jobs_write(id, "owner.json", "{\"store\":\"x\",\"job\":7,\"created_at\":1e9}");
    cr_assert_eq(job_remove(jobs_manager, id, NULL, &e), 0, "%s", e.text);
    remove_the_rest();
    cr_assert(is_gone(id));
    cr_assert(exists("1"));
}

Test(run_dir_cleanup, a_removal_that_was_interrupted_is_undone_or_completed)
{
    char from[300], to[300];
    int64_t kept = ended_job(), gone = ended_job();

    snprintf(from, sizeof from, "%s/%lld", jobs_dir, (long long)kept);
    snprintf(to, sizeof to, "%s/.removed-%lld", jobs_dir, (long long)kept);
    cr_assert_eq(rename(from, to), 0);
    cr_assert_eq(job_remove(jobs_manager, gone, NULL, &e), 0);
    cleanup_finish_removals(jobs_manager);
    cr_assert(exists("1"), "its row is there");
    remove_the_rest();
    cr_assert_not(exists(".removed-2"));
    cr_assert_eq(jobs_state(kept), JOB_SUCCEEDED);
}

Test(run_dir_cleanup, the_newest_runs_are_kept)
{
    struct job_limits limits = job_manager_limits(jobs_manager);
    int64_t waits, first = ended_job();

    ended_job();
    ended_job();
    waits = jobs_submit();
    limits.keep_runs = 2;
    job_manager_set_limits(jobs_manager, &limits);
    cleanup_keep_limits(jobs_manager);
    remove_the_rest();
    cr_assert(is_gone(first));
    cr_assert_not(exists("1"));
    cr_assert(exists("2") && exists("3"));
    cr_assert_not(is_gone(waits));
}
