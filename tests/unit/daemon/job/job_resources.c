#include <criterion/criterion.h>
#include <string.h>

#include "daemon/job/job_resources.h"
#include "tests/unit/daemon/job/fixture.h"

TestSuite(job_resources, .init = jobs_open, .fini = jobs_close);

Test(job_resources, slots_are_workers_times_threads)
{
    static const struct {
        const char *cluster;
        int64_t total, threads, slots;
    } rows[] = {
        {"\"workers_per_node\":2,\"threads_per_worker\":3",                           64, 3,  6 },
        {"\"workers_per_node\":2,\"threads_per_worker\":0",                           64, 32, 64},
        {"\"workers_per_node\":3,\"threads_per_worker\":0",                           64, 21, 63},
        {"\"workers_per_node\":4,\"threads_per_worker\":0",                           2,  1,  4 }, /* at least one each */
        {"\"workers_per_node\":2,\"threads_per_worker\":0,\"hosts\":[\"far:8\"]",     64, 4,  0 },
        {"\"workers_per_node\":2,\"threads_per_worker\":0,\"hosts\":[\"localhost\"]", 16, 8,  16},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        jobs_parse(rows[i].cluster);
        cr_expect_eq(job_threads(jobs_spec, rows[i].total), rows[i].threads, "%s", rows[i].cluster);
        cr_expect_eq(job_slots_needed(jobs_spec, rows[i].total), rows[i].slots, "%s",
                     rows[i].cluster);
    }
}

Test(job_resources, hosts_are_found_by_name_with_the_slots_of_each)
{
    struct job_hosts hosts;

    jobs_parse("\"nodes\":2,\"workers_per_node\":1,\"threads_per_worker\":4,"
               "\"hosts\":[\"n1:16\",\"n2:8\"]");
    cr_assert_eq(job_hosts_slots(jobs_spec, 64), 8, "the smallest");
    cr_assert_float_eq(job_node_share(jobs_spec, 64), 0.5, 1e-9);
    job_hosts_of(jobs_spec, 4, &hosts);
    cr_assert_eq(hosts.count, 2);
    cr_assert_eq(hosts.slots, 4);
    cr_assert_eq(job_hosts_find(&hosts, "n2")->slots, 8);
    cr_assert_null(job_hosts_find(&hosts, "n3"));
    job_hosts_clear(&hosts);

    jobs_parse("\"workers_per_node\":1,\"threads_per_worker\":4");
    job_hosts_of(jobs_spec, 4, &hosts);
    cr_assert_eq(hosts.count, 0);
}

Test(job_resources, a_host_without_slots_is_the_jobs_alone)
{
    jobs_parse("\"workers_per_node\":1,\"threads_per_worker\":1,\"hosts\":[\"n1\"]");
    cr_assert_eq(job_node_share(jobs_spec, 64), 1);
    cr_assert_eq(job_hosts_slots(jobs_spec, 64), 64);
}

/* The first problem; "" for none. */
static const char *unfit(const char *cluster)
{
    static struct problems problems;
    struct error e;

    problems_clear(&problems);
    jobs_parse(cluster);
    cr_assert_eq(job_check_fits(jobs_manager, jobs_spec, &problems, &e), 0, "%s", e.text);
    return problems.count ? problems.items[0].message : "";
}

Test(job_resources, a_job_too_large_for_the_node_is_refused_with_the_numbers)
{
    cr_assert_str_eq(unfit("\"workers_per_node\":2,\"threads_per_worker\":2"), "");
    cr_assert_str_eq(unfit("\"workers_per_node\":9,\"threads_per_worker\":9,\"hosts\":[\"n1\"]"),
                     "");
    cr_assert(strstr(unfit("\"workers_per_node\":5,\"threads_per_worker\":1"),
                     "the job takes 5 x 1 = 5 slots"));
    cr_assert(strstr(unfit("\"nodes\":2,\"workers_per_node\":1,\"threads_per_worker\":1"),
                     "which 2 machines"));
}

Test(job_resources, a_job_may_not_take_more_than_a_user)
{
    struct job_limits limits = job_manager_limits(jobs_manager);
    struct problems problems = {0};

    job_check_caps(jobs_manager, jobs_spec, &problems);
    cr_assert_eq(problems.count, 0, "no limit is set");
    limits.caps.slots = 1;
    job_manager_set_limits(jobs_manager, &limits);
    job_check_caps(jobs_manager, jobs_spec, &problems);
    cr_assert_eq(problems.count, 1);
    cr_assert(strstr(problems.items[0].message, "takes 2 slots, and one user may take 1"));
    problems_clear(&problems);
}
