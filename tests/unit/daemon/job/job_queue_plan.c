/* Limits of one user in the queue, and how use counts in its order. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "daemon/job/job_queue_plan.h"

static const struct forecast_end unknown = {0, INFINITY, INFINITY};

static struct queue_decision decide(struct queue_plan *p, int64_t id, int64_t slots,
                                    const char *user)
{
    struct queue_waiting job = {.id = id, .slots = slots, .user = user, .length = unknown};
    struct queue_decision d;

    queue_plan_decide(p, &job, &d);
    if (d.choice == QUEUE_STARTS)
        queue_plan_started(p, &job, NULL);
    return d;
}

Test(job_queue_plan, passes_over_users_at_their_limit_of_jobs)
{
    const struct queue_running running[] = {
        {.id = 1, .slots = 1, .user = "token:eve", .ends = unknown}
    };
    const struct queue_caps caps = {.running = 2};
    struct queue_plan *p = queue_plan_create(8, &caps, running, 1);

    cr_assert_eq(decide(p, 2, 1, "token:eve").choice, QUEUE_STARTS);
    struct queue_decision d = decide(p, 3, 1, "token:eve");
    cr_assert_eq(d.choice, QUEUE_WAITS);
    cr_assert(d.capped);
    cr_assert_str_eq(d.reason,
                     "waiting until a job of token:eve ends: 2 of 2 run (max_running_per_user)");
    d = decide(p, 4, 1, "user:eve"); /* another one, who is not held back by that */
    cr_assert_eq(d.choice, QUEUE_STARTS);
    cr_assert_eq(d.overtakes, 0);
    queue_plan_destroy(p);
}

Test(job_queue_plan, passes_over_users_at_their_limit_of_slots)
{
    const struct queue_running running[] = {
        {.id = 1,     .slots = 3,  .user = "a",   .ends = unknown},
        { .id = 2, .slots = 9, .user = "a", .slurm = true, .ends = unknown}
    };
    const struct queue_caps caps = {.slots = 4};
    struct queue_plan *p = queue_plan_create(16, &caps, running, 1);

    struct queue_decision d = decide(p, 3, 2, "a");
    cr_assert(d.capped);
    cr_assert(isinf(d.start));
    cr_assert_str_eq(d.reason, "waiting for 2 slots of a, who uses 3 of 4 (max_slots_per_user)");
    cr_assert_eq(decide(p, 4, 1, "a").choice, QUEUE_STARTS, "as much as is left");
    cr_assert(decide(p, 5, 1, "a").capped);
    cr_assert_eq(decide(p, 6, 4, "").choice, QUEUE_STARTS);
    cr_assert_not_null(strstr(decide(p, 7, 1, "").reason, "users without a token"));
    queue_plan_destroy(p);
}

Test(job_queue_plan, has_no_limits_without_caps)
{
    const struct queue_caps none = {0};
    struct queue_plan *p = queue_plan_create(4, &none, NULL, 0);

    for (int64_t id = 1; id <= 4; id++)
        cr_assert_eq(decide(p, id, 1, "a").choice, QUEUE_STARTS);
    cr_assert_not(decide(p, 5, 1, "a").capped);
    queue_plan_destroy(p);
    p = queue_plan_create(1, NULL, NULL, 0);
    cr_assert_eq(decide(p, 1, 1, NULL).choice, QUEUE_STARTS);
    queue_plan_destroy(p);
}

Test(job_queue_plan, counts_use_as_points_of_priority)
{
    const struct queue_fair_share fair = {.weight = 10}, off = {0};

    cr_assert_eq(queue_place(1000, 2, 60, &off, 1), 880);
    cr_assert_eq(queue_place(1000, 2, 60, &fair, 0), 880);
    cr_assert_eq(queue_place(1000, 2, 60, &fair, 0.5), 880 + 300);
    /* Whoever waits comes first: what use costs has an end. */
    cr_assert_lt(queue_place(1000, 0, 60, &fair, 1), queue_place(1000 + 601, 0, 60, &fair, 0));
}

Test(job_queue_plan, aborts_if_a_job_starts_that_does_not_fit, .signal = SIGABRT)
{
    struct queue_plan *p = queue_plan_create(8, NULL, NULL, 0);
    struct queue_waiting job = {.id = 1, .slots = 9, .length = unknown};

    queue_plan_started(p, &job, NULL);
}

static struct queue_waiting small(int64_t id, int64_t slots, double seconds)
{
    return (struct queue_waiting){
        .id = id, .slots = slots, .length = {seconds, seconds, seconds}
    };
}

/* Of 8 slots 6 are free in 100 s, when job 2 starts, which needs all. */
Test(job_queue_plan, lets_a_job_overtake_that_ends_before_the_one_ahead_can_start)
{
    const struct queue_running running[] = {
        {.id = 1, .slots = 6, .ends = {100, 100, 100}}
    };
    static const struct {
        int64_t slots;
        double seconds;
        enum queue_choice choice;
        int64_t overtakes;
    } rows[] = {
        {2, 99,  QUEUE_STARTS, 2},
        {2, 101, QUEUE_WAITS,  0},
        {3, 10,  QUEUE_WAITS,  0},
        {2, 0,   QUEUE_STARTS, 2},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct queue_plan *p = queue_plan_create(8, NULL, running, 1);
        struct queue_waiting large = small(2, 8, 50),
                             next = small(3, rows[i].slots, rows[i].seconds);
        struct queue_decision d;

        queue_plan_decide(p, &large, &d);
        cr_expect_eq(d.choice, QUEUE_WAITS);
        cr_expect_eq(d.start, 100);
        cr_expect(strstr(d.reason, "8 slots"), "%s", d.reason);
        queue_plan_decide(p, &next, &d);
        cr_expect_eq(d.choice, rows[i].choice, "row %zu: %s", i, d.reason);
        cr_expect_eq(d.overtakes, rows[i].overtakes, "row %zu", i);
        queue_plan_destroy(p);
    }
}

Test(job_queue_plan, tells_a_job_that_never_fits_from_one_that_pauses)
{
    struct queue_plan *p = queue_plan_create(8, NULL, NULL, 0);
    struct queue_waiting large = small(1, 9, 10), later = small(2, 1, 10);
    struct queue_decision d;

    queue_plan_decide(p, &large, &d);
    cr_assert_eq(d.choice, QUEUE_NEVER_FITS);
    later.not_before = 5;
    queue_plan_decide(p, &later, &d);
    cr_assert_eq(d.choice, QUEUE_PAUSES);
    queue_plan_destroy(p);
}
