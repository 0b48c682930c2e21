#include <limits.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/manager.h"
#include "daemon/launch/failure.h"

#define RANKS_SECONDS                                                                              \
    2 /* ranks that outlive mpirun end by themselves within this, or are killed                    \
       */

static void complain(struct active_job *a, double now, const struct error *e)
{
    if (a->complained_at && now - a->complained_at < 10)
        return;
    a->complained_at = now;
    log_error("job %lld: its end cannot be stored yet: %s", (long long)a->id, e->text);
}

static int set_state(struct job_manager *m, const struct active_job *a, enum job_state to,
                     const char *reason, struct error *e)
{
    struct store_state_change change = {to, reason && *reason ? reason : NULL, clock_now()};
    return store_job_set_state(m->store, a->id, &change, e);
}

/* A run so short that no event told of its running has run nevertheless. */
static int pass_through_running(struct job_manager *m, const struct active_job *a,
                                const struct verdict *v, struct error *e)
{
    struct store_job job;
    int status = store_job_get(m->store, a->id, &job, e);
    if (status)
        return status;
    if (v->state == JOB_SUCCEEDED && job.state == JOB_STARTING)
        status = set_state(m, a, JOB_RUNNING, NULL, e);
    store_job_clear(&job);
    return status;
}

static int store_end(struct job_manager *m, struct active_job *a, const struct verdict *v,
                     struct error *e)
{
    int status = store_job_set_exit(m->store, a->id, a->exit_code, a->exit_signal, e);
    if (!status)
        status = pass_through_running(m, a, v, e);
    if (!status)
        status = set_state(m, a, v->state, v->reason, e);
    return status;
}

/* True when no process of the attempt is left. */
static bool clear_up(struct active_job *a, double now)
{
    if (a->launcher->survivors(a->attempt_dir) == 0)
        return true;
    if (now - a->ended_at >= RANKS_SECONDS || a->exit_signal > 0)
        a->launcher->stop(&a->process, a->attempt_dir, LAUNCH_STOP_KILL);
    return false;
}

bool job_try_to_end(struct job_manager *m, struct active_job *a, double now)
{
    struct launch_exit how = {a->exit_code, a->exit_signal};
    struct verdict verdict;
    struct error e;

    if (!clear_up(a, now))
        return false;
    int status = ingest_catch_up(a->ingest, &e);
    if (!status) {
        failure_judge(a->attempt_dir, &how,
                      a->cancel != CANCEL_NONE || cancel_is_requested(a->run_dir), &verdict);
        status = store_end(m, a, &verdict, &e);
    }
    if (status) {
        complain(a, now, &e);
        return false;
    }
    log_info("job %lld: %s%s%s", (long long)a->id, job_state_name(verdict.state),
             verdict.reason[0] ? ": " : "", verdict.reason);
    m->look_at_queue = true;
    job_forget(m, a);
    return true;
}
