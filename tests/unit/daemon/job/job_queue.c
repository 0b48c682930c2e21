/* What a look at the queue stores of the jobs that wait. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/job/job_queue.h"
#include "daemon/job/job_requests.h"
#include "tests/unit/daemon/job/fixture.h"

TestSuite(job_queue, .init = jobs_open, .fini = jobs_close);

Test(job_queue, a_job_that_does_not_fit_beside_the_others_waits)
{
    jobs_parse("\"workers_per_node\":3,\"threads_per_worker\":1");
    int64_t first = jobs_submit(), second = jobs_submit(), of;
    struct job_slots slots;

    job_queue_start(jobs_manager);
    cr_assert_neq(jobs_state(first), JOB_QUEUED);
    struct store_job job = jobs_get(second);
    cr_assert_eq(job.state, JOB_QUEUED);
    cr_assert(strstr(job.reason, "waiting for 3 of 4 slots (running: job 1)"), "%s", job.reason);
    store_job_clear(&job);
    job_manager_slots(jobs_manager, &slots);
    cr_assert_eq(slots.total, 4);
    cr_assert_eq(slots.queued, 1);
    cr_assert_eq(job_queue_position(jobs_manager, second, &of), 1);
    cr_assert_eq(of, 1);
    cr_assert_eq(job_queue_position(jobs_manager, first, &of), 0, "it does not wait");
}

Test(job_queue, a_held_job_does_not_start)
{
    struct error e;
    int64_t id = jobs_submit();

    cr_assert_eq(job_hold(jobs_manager, id, "user:a", &e), 0, "%s", e.text);
    job_queue_start(jobs_manager);
    cr_assert_eq(jobs_state(id), JOB_QUEUED);
    cr_assert_eq(job_release(jobs_manager, id, "user:a", &e), 0, "%s", e.text);
    job_queue_start(jobs_manager);
    cr_assert_neq(jobs_state(id), JOB_QUEUED);
}

Test(job_queue, the_job_of_higher_priority_starts_first)
{
    struct error e;

    jobs_parse("\"workers_per_node\":4,\"threads_per_worker\":1");
    int64_t first = jobs_submit(), second = jobs_submit();
    cr_assert_eq(job_set_priority(jobs_manager, second, 5, NULL, &e), 0, "%s", e.text);
    job_queue_start(jobs_manager);
    cr_assert_eq(jobs_state(first), JOB_QUEUED);
    cr_assert_neq(jobs_state(second), JOB_QUEUED);
}
