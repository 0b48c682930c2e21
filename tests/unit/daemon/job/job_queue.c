/* What a look at the queue stores of the jobs that wait. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_queue.h"
#include "daemon/job/job_requests.h"
#include "daemon/job/job_run.h"
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

/* ---- a running job that may grow */

/* Puts the job among those that run, without processes. */
static struct active_job *runs(int64_t id)
{
    struct store_job job = jobs_get(id);
    struct active_job *a = job_run_create(jobs_manager, &job, PHASE_RUNNING);

    job_run_add(jobs_manager, a);
    store_job_clear(&job);
    jobs_begin(id);
    return a;
}

/* The hosts among n1 to n4 with which it would start at once, as text; NULL: it would not. */
static const char *gets(const struct active_job *a, int64_t slots)
{
    static char text[64];
    json_t *hosts = json_pack("[s, s, s, s]", "n1", "n2", "n3:4", "n4"), *host;
    struct store_job job = jobs_get(a->id);
    bool starts = job_queue_would_start(jobs_manager, a, &job, slots, hosts);
    size_t i;

    text[0] = '\0';
    json_array_foreach (hosts, i, host)
        strcat(strcat(text, i ? " " : ""), json_string_value(host));
    store_job_clear(&job);
    json_decref(hosts);
    return starts ? text : NULL;
}

static int64_t submit_on(const char *hosts)
{
    char cluster[128];

    snprintf(cluster, sizeof cluster,
             "\"hosts\":[%s],\"workers_per_node\":2,\"threads_per_worker\":1", hosts);
    jobs_parse(cluster);
    return jobs_submit();
}

Test(job_queue, a_job_would_get_the_hosts_that_no_other_job_uses)
{
    struct active_job *a = runs(submit_on("\"n1\",\"n2\"")), *b;

    cr_assert_str_eq(gets(a, 0), "n1 n2 n3:4 n4");
    b = runs(submit_on("\"n3:4\""));
    cr_assert_str_eq(gets(a, 0), "n1 n2 n3:4 n4", "both have two of four slots of n3");
    runs(submit_on("\"n3:4\""));
    cr_assert_str_eq(gets(a, 0), "n1 n2 n4", "n3 is full");
    runs(submit_on("\"n4\""));
    cr_assert_str_eq(gets(a, 0), "n1 n2");
    cr_assert_str_eq(gets(b, 0), "n3:4");
}

Test(job_queue, a_job_that_waits_before_it_comes_first)
{
    struct error e;
    struct active_job *a = runs(submit_on("\"n1\",\"n2\""));
    int64_t later = submit_on("\"n2\",\"n3\"");

    cr_assert_str_eq(gets(a, 0), "n1 n2 n3:4 n4", "it waits behind it");
    cr_assert_eq(job_set_priority(jobs_manager, later, 1, NULL, &e), 0, "%s", e.text);
    cr_assert_null(gets(a, 0));
    cr_assert_eq(job_hold(jobs_manager, later, NULL, &e), 0, "%s", e.text);
    cr_assert_str_eq(gets(a, 0), "n1 n2 n3:4 n4", "a held job does not wait");
}

Test(job_queue, slots_of_this_machine_and_limits_of_users_count_too)
{
    struct active_job *a = runs(submit_on("\"n1\""));

    jobs_parse("\"workers_per_node\":3,\"threads_per_worker\":1");
    runs(jobs_submit());
    cr_assert_not_null(gets(a, 1));
    cr_assert_null(gets(a, 2), "one of four slots is free");
    jobs_manager->limits.caps.running = 2;
    cr_assert_not_null(gets(a, 1));
    jobs_manager->limits.caps.running = 1;
    cr_assert_null(gets(a, 1), "its user would have reached a limit");
}
