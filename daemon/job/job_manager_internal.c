#include "daemon/job/job_manager_internal.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "daemon/launch/failure_rules.h"

struct store *job_manager_store(const struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    return m->store;
}

int64_t job_manager_total_slots(const struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    return m->slots;
}

const struct slurm_settings *job_manager_slurm(const struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    return &m->slurm_settings;
}

struct job_limits job_manager_limits(struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    pthread_mutex_lock(&m->mutex);
    struct job_limits limits = m->shared_limits;
    pthread_mutex_unlock(&m->mutex);
    return limits;
}

void job_manager_wake(struct job_manager *m)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    int before = errno; /* a signal handler must preserve it */
    uint64_t one = 1;
    ssize_t ignored = write(m->wake_fd, &one, sizeof one);
    (void)ignored; /* if full, the loop is awake already */
    errno = before;
}

void job_manager_slots(struct job_manager *m, struct job_slots *slots)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    pthread_mutex_lock(&m->mutex);
    *slots = m->used;
    pthread_mutex_unlock(&m->mutex);
}

int64_t job_queue_position(struct job_manager *m, int64_t id, int64_t *of)
{
    int64_t position = 0;

    assert_object(m, JOB_MANAGER_MAGIC);
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < m->queue_count && !position; i++)
        if (m->queue_ids[i] == id)
            position = (int64_t)i + 1;
    *of = (int64_t)m->queue_count;
    pthread_mutex_unlock(&m->mutex);
    return position;
}

bool job_queue_end(struct job_manager *m, int64_t id, struct forecast_end *end)
{
    bool found = false;

    assert_object(m, JOB_MANAGER_MAGIC);
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

json_t *job_failure_rules(struct job_manager *m, int64_t *unlabelled)
{
    assert_object(m, JOB_MANAGER_MAGIC);
    pthread_mutex_lock(&m->mutex);
    json_t *list = failure_rules_to_json(m->rules, unlabelled);
    pthread_mutex_unlock(&m->mutex);
    return list;
}

const char *job_requester_name(const char *by)
{
    return by ? by : "a user without a token";
}
