#include "daemon/job/job_life_end.h"

#include <string.h>
#include <math.h>
#include <stdio.h>

/* A job that failed before its first step would do so again, and so would one whose document is
 * wrong or that diverged; a failure rule may know better. */
static bool life_is_worth_a_restart(const struct verdict *v, const struct life_history *h)
{
    bool has_begun = v->step > 0 || v->outside || (v->hosts_missing && h->resumes);
    bool usual = has_begun && !v->own_fault;
    bool again = v->again == FAILURE_AGAIN_USUAL ? usual : v->again == FAILURE_AGAIN;

    return v->state == JOB_FAILED && again && h->restarts < h->restarts_max;
}

double life_restart_delay(double restart_delay_seconds, int64_t restarts)
{
    return fmin(RESTART_DELAY_MAX_SECONDS, restart_delay_seconds * pow(2, (double)restarts));
}

#define FROM_BYTES 64

static const char *life_from(const struct life_history *h, char from[FROM_BYTES])
{
    if (h->checkpoint > 0)
        snprintf(from, FROM_BYTES, "its checkpoint of step %lld", (long long)h->checkpoint);
    else
        snprintf(from, FROM_BYTES, "the beginning, as it has no checkpoint");
    return from;
}

/* Nothing went wrong: the allocation was over, and the next one follows at once. */
static void life_say_next_link(const struct verdict *v, const struct life_history *h, char *reason)
{
    char from[FROM_BYTES];

    snprintf(reason, LIFE_REASON_BYTES, "%s; %s in another allocation, from %s", v->reason,
             h->checkpoint > 0 ? "continues" : "starts", life_from(h, from));
}

/* The failure as a whole is kept in the events. */
static void life_say_restart(const struct verdict *v, const struct life_history *h,
                             double pause_seconds, char *reason)
{
    char from[FROM_BYTES];
    int used = snprintf(reason, LIFE_REASON_BYTES, "%.*s; restart %lld of %lld",
                        (int)failure_cause_length(v->reason), v->reason, (long long)h->restarts + 1,
                        (long long)h->restarts_max);

    if (!h->keeps_slurm)
        snprintf(reason + used, LIFE_REASON_BYTES - (size_t)used, " follows in %.0f s, from %s",
                 pause_seconds, life_from(h, from));
}

/* The first cause comes first. Of the log's words only those of the failure that ended it. */
static void life_say_end(const struct verdict *v, const struct life_history *h, char *reason)
{
    const char *times = h->restarts == 1 ? "restart" : "restarts";
    const char *first = h->first_failure ? h->first_failure : "";
    size_t length = failure_cause_length(first);
    bool same = length == failure_cause_length(v->reason) && !strncmp(first, v->reason, length);

    snprintf(reason, LIFE_REASON_BYTES, "%s", v->reason);
    if (h->restarts == 0)
        return;
    if (v->state == JOB_SUCCEEDED)
        snprintf(reason, LIFE_REASON_BYTES, "complete after %lld %s; the first failure: %.*s",
                 (long long)h->restarts, times, (int)length, first);
    else if (v->state == JOB_FAILED && same)
        snprintf(reason, LIFE_REASON_BYTES, "%.*s; failed in the same way after %lld %s%s",
                 (int)length, first, (long long)h->restarts, times, v->reason + length);
    else if (v->state == JOB_FAILED)
        snprintf(reason, LIFE_REASON_BYTES, "%.*s; failed again after %lld %s, the last time: %s",
                 (int)length, first, (long long)h->restarts, times, v->reason);
}

void life_end_of(const struct verdict *v, const struct life_history *h, struct life_end *end)
{
    *end = (struct life_end){
        .to = v->state,
        .goes_on = v->goes_on,
        .restarts = !v->goes_on && life_is_worth_a_restart(v, h),
        .failed = v->state == JOB_FAILED && !v->goes_on,
        .resumes = h->trains && (h->ran || h->resumes),
    };
    if (end->restarts || end->goes_on)
        end->to = JOB_QUEUED;
    if (end->restarts && !h->keeps_slurm)
        end->pause_seconds = life_restart_delay(h->restart_delay_seconds, h->restarts);
    if (end->goes_on)
        life_say_next_link(v, h, end->reason);
    else if (end->restarts)
        life_say_restart(v, h, end->pause_seconds, end->reason);
    else
        life_say_end(v, h, end->reason);
}
