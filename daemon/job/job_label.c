/* What people write on a job. Only the store is written: neither the queue nor a run goes by it. */
#include "daemon/store/job_label.h"

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/job_manager_internal.h"

int job_label(struct job_manager *m, int64_t id, const json_t *change, const char *by,
              struct error *e)
{
    int status = store_job_label(m->store, id, change, by, clock_now(), e);

    if (!status)
        log_info("job %lld: labelled by %s", (long long)id, job_by_words(by));
    return status;
}
