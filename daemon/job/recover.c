/*
 * After a restart: every job that the store calls active is looked for by its launcher's pid and
 * start time, or by its name in Slurm. One that is there is followed on; one that is gone is judged
 * by its run directory. A job that was never let through the gate goes back to the queue.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/job/manager.h"
#include "daemon/job/run_dir.h"

static int back_to_queue(struct job_manager *m, const struct store_job *job, struct error *e)
{
    struct store_state_change queued = {
        JOB_QUEUED, "the daemon ended before it had launched the job", clock_now(), NULL};
    log_info("job %lld: back to the queue, its launch had not been completed", (long long)job->id);
    return store_job_set_state(m->store, job->id, &queued, e);
}

/* Nothing is left to be judged by, or what is there is another job's. */
static int fail(struct job_manager *m, const struct store_job *job, const char *reason,
                struct error *e)
{
    struct store_state_change failed = {JOB_FAILED, reason, clock_now(), NULL};

    log_warning("job %lld failed: %s", (long long)job->id, reason);
    return store_job_set_state(m->store, job->id, &failed, e);
}

/* The state folder may be a copy: the launcher then belongs to the job that it is a copy of, and
 * works in another folder. */
static bool is_ours(const struct store_job *job, const struct launch_process *process)
{
    char own[PATH_MAX], *its = launch_attempt_of(process->pid);
    struct stat a, b;

    snprintf(own, sizeof own, "%s/attempt-%lld", job->run_dir, (long long)job->attempt);
    bool other = its && strcmp(its, own) != 0 && stat(its, &a) == 0 &&
                 (stat(own, &b) || a.st_dev != b.st_dev || a.st_ino != b.st_ino);
    free(its);
    return !other;
}

static int recover(struct job_manager *m, const struct store_job *job, struct error *e)
{
    struct launch_process process;
    struct error why;
    enum run_dir run_dir = run_dir_look(m->store, job, &why);

    if (run_dir == RUN_DIR_FOREIGN)
        return fail(m, job, why.text, e);
    if (job->slurm)
        return run_dir == RUN_DIR_MISSING && run_dir_claim(m->store, job, e)
                   ? -(int)e->code
                   : job_recover_slurm(m, job, e);
    if (job->launcher_pid <= 0)
        return back_to_queue(m, job, e);
    bool alive = launch_adopt(job->launcher_pid, job->launcher_start, &process);
    if (alive && !is_ours(job, &process)) {
        launch_process_close(&process);
        alive = false;
    }
    if (!alive && run_dir == RUN_DIR_MISSING)
        return fail(m, job, why.text, e);
    if (run_dir == RUN_DIR_MISSING && run_dir_claim(m->store, job, e)) {
        launch_process_close(&process);
        return -(int)e->code;
    }
    struct active_job *a = job_follow(m, job, job->attempt, &process, e);
    if (!a) {
        launch_process_close(&process);
        return -(int)e->code;
    }
    a->ended = !alive;
    if (!alive)
        a->process.session = 0; /* another may have this number by now */
    a->ended_at = clock_monotonic();
    log_info("job %lld: %s", (long long)job->id,
             alive ? "still runs, followed again" : "ended while traind was away");
    return 0;
}

static int recover_those(struct job_manager *m, unsigned states, enum store_launcher launcher,
                         struct error *e)
{
    struct store_job_filter filter = {
        .states = states, .order = STORE_QUEUE_ORDER, .launcher = launcher};
    struct store_jobs jobs = {0};
    int status = store_job_list(m->store, &filter, &jobs, e);

    for (size_t i = 0; !status && i < jobs.count; i++)
        status = recover(m, &jobs.items[i], e);
    store_jobs_clear(&jobs);
    return status;
}

int job_recover_all(struct job_manager *m, struct error *e)
{
    unsigned active = 1u << JOB_STARTING | 1u << JOB_RUNNING | 1u << JOB_EVALUATING;
    int status = recover_those(m, active, STORE_ANY_LAUNCHER, e);

    return status ? status : recover_those(m, 1u << JOB_QUEUED, STORE_IN_SLURM, e);
}
