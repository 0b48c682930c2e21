#include "daemon/job/job_recover.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/run/attempt.h"
#include "common/system/process.h"
#include "daemon/job/job_manager_internal.h"
#include "daemon/job/job_run.h"
#include "daemon/job/run_dir.h"

/* Looks for the launcher process on this machine. If the state folder is a copy, the stored
 * launcher belongs to the original job and works in another folder. */
static bool recover_process(const struct store_job *job, struct active_job *a)
{
    bool alive = launch_adopt(job->launcher_pid, job->launcher_start, &a->process);
    char *its = alive ? process_variable(a->process.pid, ATTEMPT_MARK) : NULL;
    struct stat there, own;

    if (its && strcmp(its, a->attempt_dir) != 0 && stat(its, &there) == 0 &&
        (stat(a->attempt_dir, &own) || there.st_dev != own.st_dev || there.st_ino != own.st_ino)) {
        launch_process_close(&a->process);
        alive = false;
    }
    free(its);
    if (!alive)
        a->process.session = 0; /* the number may have been reused */
    return alive;
}

static int recover_in_slurm(struct job_manager *m, const struct store_job *job,
                            struct active_job *a, struct error *e)
{
    json_t *slurm = json_loads(job->slurm, 0, NULL);
    const char *name = json_string_value(json_object_get(slurm, "name"));
    int64_t id = json_integer_value(json_object_get(slurm, "job_id"));
    int status = name ? slurm_adopt(m->slurm, name, id, job->run_dir, &a->process, e)
                      : error_set(e, ERR_CORRUPT, "job %lldhas no stored Slurm job name",
                                  (long long)job->id);

    if (!status)
        log_info("job %lld: searching for it in Slurm as %s", (long long)job->id, name);
    json_decref(slurm);
    return status;
}

static int recover_look(struct job_manager *m, const struct store_job *job, struct active_job *a,
                        enum job_observed *event, struct error *e)
{
    enum run_dir run_dir = run_dir_look(m->store, job, &a->no_start);
    struct job_found found = {.foreign = run_dir == RUN_DIR_FOREIGN,
                              .missing = run_dir == RUN_DIR_MISSING,
                              .slurm = job->slurm != NULL,
                              .launched = job->launcher_pid > 0};
    int status = 0;
    struct error why;

    if (!found.foreign && !found.slurm && found.launched)
        found.alive = recover_process(job, a);
    if (run_dir == RUN_DIR_UNKNOWN && (found.alive || found.slurm)) {
        log_warning("job %lld: %s; it is running, following it again", (long long)job->id,
                    a->no_start.text);
        if (found.alive && run_dir_mark(m->store, job, &why))
            log_warning("job %lld: %s", (long long)job->id, why.text);
    } else if (run_dir == RUN_DIR_UNKNOWN) {
        found.foreign = true;
    }
    *event = job_state_found_event(&found);
    if (found.missing && (*event == ON_FOUND_ALIVE || *event == ON_FOUND_IN_SLURM))
        status = run_dir_claim(m->store, job, e);
    if (!status && *event == ON_FOUND_IN_SLURM)
        status = recover_in_slurm(m, job, a, e);
    return status;
}

static int recover_job(struct job_manager *m, const struct store_job *job, struct error *e)
{
    struct active_job *a = job_run_create(m, job, PHASE_LOST);
    struct job_observation seen = {.now = clock_monotonic()};

    job_run_add(m, a);
    int status = recover_look(m, job, a, &seen.event, e);
    if (!status) {
        if (seen.event == ON_FOUND_UNLAUNCHED) {
            log_info("job %lld: its launch was not completed", (long long)job->id);
            if (a->launcher == &launcher_local) /* folder created for its ranks */
                launcher_local.survivors(&a->process, a->attempt_dir);
        } else if (seen.event == ON_FOUND_ALIVE) {
            log_info("job %lld: still running, following it again", (long long)job->id);
            seen.ran_seconds = launch_elapsed_seconds(&a->process);
        } else if (seen.event == ON_FOUND_DEAD) {
            log_info("job %lld: ended while traind was not running", (long long)job->id);
        }
        status = job_run_dispatch(m, a, &seen, e);
    }
    return status < 0 ? status : 0;
}

int job_recover_all(struct job_manager *m, struct error *e)
{
    struct store_job_filter filters[] = {
        {.states = 1u << JOB_STARTING | 1u << JOB_RUNNING | 1u << JOB_EVALUATING},
        { .states = 1u << JOB_QUEUED,                                             .launcher = STORE_IN_SLURM},
    };
    int status = 0;

    assert_object(m, JOB_MANAGER_MAGIC);
    for (size_t k = 0; !status && k < sizeof filters / sizeof filters[0]; k++) {
        struct store_jobs jobs = {0};
        filters[k].order = STORE_QUEUE_ORDER;
        filters[k].documents = true;
        status = store_job_list(m->store, &filters[k], &jobs, e);
        for (size_t i = 0; !status && i < jobs.count; i++)
            status = recover_job(m, &jobs.items[i], e);
        store_jobs_clear(&jobs);
    }
    return status;
}
