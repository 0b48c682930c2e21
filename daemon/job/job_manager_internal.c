#include "daemon/job/job_manager_internal.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/launch/failure_rules.h"

#define COMPLAIN_SECONDS 10

struct job_limits job_manager_limits(struct job_manager *m)
{
    pthread_mutex_lock(&m->mutex);
    struct job_limits limits = m->shared_limits;
    pthread_mutex_unlock(&m->mutex);
    return limits;
}

void job_manager_wake(struct job_manager *m)
{
    int before = errno; /* a signal handler must not change it */
    uint64_t one = 1;
    ssize_t ignored = write(m->wake_fd, &one, sizeof one);
    (void)ignored; /* full: it is awake already */
    errno = before;
}

void manager_complain(struct active_job *a, const char *what, const struct error *e)
{
    double now = clock_monotonic();

    if (a->complained_at && now - a->complained_at < COMPLAIN_SECONDS)
        return;
    a->complained_at = now;
    log_error("job %lld: %s: %s", (long long)a->id, what, e->text);
}

void manager_count_failure(struct job_manager *m, const char *label)
{
    pthread_mutex_lock(&m->mutex);
    failure_rules_count(m->rules, label);
    pthread_mutex_unlock(&m->mutex);
}

bool job_queue_end(struct job_manager *m, int64_t id, struct forecast_end *end)
{
    bool found = false;

    pthread_mutex_lock(&m->mutex);
    double since = clock_monotonic() - m->queue_ends_at;
    for (size_t i = 0; i < m->queue_ends_count && !found; i++) {
        const struct forecast_end *then = &m->queue_ends[i].ends;
        found = m->queue_ends[i].id == id;
        *end = (struct forecast_end){fmax(0, then->soonest - since), fmax(0, then->likely - since),
                                     fmax(0, then->latest - since)};
    }
    pthread_mutex_unlock(&m->mutex);
    return found;
}
