/* Inside the manager: what its files share. Not for other parts; they use job.h. */
#ifndef TRAIND_DAEMON_JOB_MANAGER_H
#define TRAIND_DAEMON_JOB_MANAGER_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/ingest/apply.h"
#include "daemon/job/job.h"
#include "daemon/launch/launch.h"

enum cancel_stage { CANCEL_NONE, CANCEL_ASKED, CANCEL_TERMINATED, CANCEL_KILLED };

/* A job that has, or had until just now, a launcher. Owned by the loop's thread. */
struct active_job {
    struct active_job *next;
    int64_t id, attempt, slots;
    char *run_dir, *attempt_dir;
    const struct launcher *launcher;
    struct launch_process process;
    struct ingest *ingest;
    int watch;  /* of inotify, on attempt_dir; -1: none (polling alone) */
    bool ended; /* the launcher has ended */
    int64_t exit_code, exit_signal;
    double ended_at;
    enum cancel_stage cancel;
    double cancel_next_at; /* monotonic: when the next stage is due */
    double complained_at;  /* monotonic: of the last log line about an error that repeats */
};

struct job_manager {
    struct store *store;
    char *jobs_dir, *mpirun, *worker;
    double cancel_grace_seconds;
    int64_t slots;
    int wake_fd;    /* eventfd */
    int inotify_fd; /* -1: not to be had, polling alone */
    atomic_bool stop;
    struct active_job *active; /* the loop's */
    bool look_at_queue;        /* the loop's: something changed that may let a job start */

    pthread_mutex_t
        files; /* taken while a run directory is made: a job may be launched in the same moment */
    pthread_mutex_t mutex; /* guards what follows */
    int64_t *cancel_ids;   /* requests for the loop */
    size_t cancel_count, cancel_room;
    struct job_slots used; /* as of the loop's last round */
};

void manager_wake(struct job_manager *m); /* async-signal-safe */

/* submit.c: the run directory with job.json and plan.json, made again if it is not there. */
int job_prepare_run_dir(struct job_manager *m, const char *run_dir, const char *spec,
                        const char *plan, struct error *e);

int64_t job_threads(const struct job_spec *spec, int64_t total); /* per worker, resolved */

/* queue.c: starts what fits, first come first served, and says of the others what they wait for. */
void queue_start_jobs(struct job_manager *m);
int64_t queue_slots_used(const struct job_manager *m);

/* start.c: launches one queued job; where that is not possible the job fails with the reason. */
void job_start(struct job_manager *m, const struct store_job *job);
/* Adds a job with a launcher to the active ones; takes over process. */
struct active_job *job_follow(struct job_manager *m, const struct store_job *job, int64_t attempt,
                              const struct launch_process *process, struct error *e);
void job_forget(struct job_manager *m, struct active_job *a);

/* recover.c: takes up what an earlier daemon left. */
int job_recover_all(struct job_manager *m, struct error *e);

/* cancel.c */
bool cancel_is_requested(const char *run_dir);
void cancel_take_requests(struct job_manager *m);
void cancel_go_on(struct job_manager *m, struct active_job *a, double now);

/* end.c: true when the job's end is in the store and the job is forgotten. */
bool job_try_to_end(struct job_manager *m, struct active_job *a, double now);

#endif
