#include "daemon/job/inside.h"

#include <errno.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define COMPLAIN_SECONDS 10

struct job_limits manager_limits(struct job_manager *m)
{
    pthread_mutex_lock(&m->mutex);
    struct job_limits limits = m->shared_limits;
    pthread_mutex_unlock(&m->mutex);
    return limits;
}

void manager_wake(struct job_manager *m)
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
