/*
 * What people change about a job that waits. Only the store is written: the queue passes over what
 * is held, and the begin of an attempt is refused by the store where a job was held meanwhile, so
 * that neither needs to be told. doc/job-lifecycle.md.
 */
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/store/job_change.h"

/* told: what the log says of it. */
static int hold_change(struct job_manager *m, int64_t id, struct store_waiting_change *change,
                       const char *told, struct error *e)
{
    change->now = clock_now();
    int status = store_job_change_waiting(m->store, id, change, e);
    if (status)
        return status;
    job_manager_wake(m); /* those behind it may start */
    log_info("job %lld: %s by %s", (long long)id, told, job_by_words(change->by));
    return 0;
}

int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_HOLD, .by = by};

    return hold_change(m, id, &change, "held", e);
}

int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e)
{
    struct store_waiting_change change = {.what = STORE_RELEASE, .by = by};

    return hold_change(m, id, &change, "released", e);
}

int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e)
{
    struct store_waiting_change change = {.what = STORE_PRIORITY, .by = by, .priority = priority};
    char told[64];

    snprintf(told, sizeof told, "given priority %lld", (long long)priority);
    return hold_change(m, id, &change, told, e);
}
