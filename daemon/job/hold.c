/*
 * What people change about a job that waits. Only the store is written: the queue passes over what
 * is held, and the begin of an attempt is refused by the store where a job was held meanwhile, so
 * that neither needs to be told. doc/job-lifecycle.md.
 */
#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/inside.h"

static int hold_change(struct job_manager *m, int64_t id, struct store_waiting_change *change,
                       struct error *e)
{
    change->now = clock_now();
    int status = store_job_change_waiting(m->store, id, change, e);
    if (!status)
        manager_wake(m); /* those behind it may start */
    return status;
}

int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_HOLD, .by = by};
    int status = hold_change(m, id, &change, e);

    if (!status)
        log_info("job %lld: held by %s", (long long)id, job_by_words(by));
    return status;
}

int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_RELEASE, .by = by};
    int status = hold_change(m, id, &change, e);

    if (!status)
        log_info("job %lld: released by %s", (long long)id, job_by_words(by));
    return status;
}

int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e)
{
    struct store_waiting_change change = {.what = STORE_PRIORITY, .by = by, .priority = priority};
    int status = hold_change(m, id, &change, e);

    if (!status)
        log_info("job %lld: given priority %lld by %s", (long long)id, (long long)priority,
                 job_by_words(by));
    return status;
}
