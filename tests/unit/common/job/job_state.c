#include <criterion/criterion.h>

#include "common/job/job_state.h"

Test(job_state, names_go_both_ways)
{
    for (int s = 0; s < JOB_STATE_COUNT; s++)
        cr_assert_eq((int)job_state_of(job_state_name((enum job_state)s)), s);
    cr_assert_eq(job_state_of("done"), JOB_STATE_COUNT);
    cr_assert_eq(job_state_of(NULL), JOB_STATE_COUNT);
    cr_assert_str_eq(job_state_name(JOB_STATE_COUNT), "unknown");
}

Test(job_state, an_end_leads_only_back_to_the_queue)
{
    int final = 0;
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        if (!job_state_is_final((enum job_state)from))
            continue;
        final++;
        cr_assert_not(job_state_is_active((enum job_state)from));
        for (int to = 0; to < JOB_STATE_COUNT; to++)
            cr_assert_eq(job_state_leads_to((enum job_state)from, (enum job_state)to),
                         to == JOB_QUEUED && from != JOB_SUCCEEDED);
    }
    cr_assert_eq(final, 3);
}

Test(job_state, every_other_state_can_fail_and_be_cancelled)
{
    for (int from = 0; from < JOB_STATE_COUNT; from++) {
        enum job_state state = (enum job_state)from;
        if (job_state_is_final(state))
            continue;
        cr_assert(job_state_leads_to(state, JOB_FAILED), "%s", job_state_name(state));
        cr_assert(job_state_leads_to(state, JOB_CANCELLED), "%s", job_state_name(state));
        cr_assert_not(job_state_leads_to(state, state));
    }
}

Test(job_state, success_needs_a_run)
{
    cr_assert_not(job_state_leads_to(JOB_QUEUED, JOB_SUCCEEDED));
    cr_assert_not(job_state_leads_to(JOB_STARTING, JOB_SUCCEEDED));
    cr_assert(job_state_leads_to(JOB_RUNNING, JOB_SUCCEEDED));
    cr_assert(job_state_leads_to(JOB_EVALUATING, JOB_SUCCEEDED));
    cr_assert(job_state_leads_to(JOB_RUNNING, JOB_QUEUED), "an automatic restart");
    cr_assert_not(job_state_leads_to(JOB_QUEUED, JOB_RUNNING));
}

Test(job_state, holds_slots_only_with_a_launcher)
{
    cr_assert_not(job_state_is_active(JOB_QUEUED));
    cr_assert(job_state_is_active(JOB_STARTING));
    cr_assert(job_state_is_active(JOB_RUNNING));
    cr_assert(job_state_is_active(JOB_EVALUATING));
    cr_assert_not(job_state_leads_to((enum job_state)99, JOB_FAILED));
}
