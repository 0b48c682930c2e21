/* Inside the manager: what its files share. Not for other parts; they use job.h. */
#ifndef TRAIND_DAEMON_JOB_MANAGER_H
#define TRAIND_DAEMON_JOB_MANAGER_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/ingest/apply.h"
#include "daemon/job/hosts.h"
#include "daemon/job/job.h"
#include "daemon/launch/failure.h"
#include "daemon/launch/launch.h"

#define RESTART_DELAY_MAX_SECONDS 600.0

enum stop_stage { STOP_NONE, STOP_ASKED, STOP_TERMINATED, STOP_KILLED };

/* A job that has, or had until just now, a launcher. Owned by the loop's thread. */
struct active_job {
    struct active_job *next;
    int64_t id, attempt, slots;
    char *run_dir, *attempt_dir;
    const struct launcher *launcher;
    struct launch_process process;
    struct ingest *ingest;
    struct job_hosts hosts; /* that it takes; none: this machine alone */
    int watch;              /* of inotify, on attempt_dir; -1: none (polling alone) */
    bool ended;             /* the launcher has ended */
    int64_t exit_code, exit_signal;
    double ended_at;
    enum stop_stage stop;
    enum failure_stop stop_why;
    double stop_next_at;  /* monotonic: when the next stage is due */
    double stall_next_at; /* monotonic: when it is looked at for a stall */
    double stopped_since; /* of struct stall_look */
    double limit_at;      /* monotonic: when its time limit is over; INFINITY: none */
    /* Of launcher slurm. */
    double time_limit_seconds; /* of the attempt; NAN: none */
    bool waits;                /* in Slurm's queue; its job is "queued" */
    bool over;                 /* its end is stored; Slurm's job only has to go */
    double exit_seen_at;       /* monotonic: when its script was seen to have ended; 0: not yet */
    bool without_slurm;        /* its end does not wait for Slurm's word any more */
    struct slurm_status slurm; /* as last read */
    char *slurm_stored;        /* JSON text, as last stored */
    double complained_at;      /* monotonic: of the last log line about an error that repeats */
};

/* A start that failed, of which the store could not be told yet. */
struct failed_start {
    struct failed_start *next;
    int64_t id, attempt;
    struct error why;
};

struct job_manager {
    job_manager_round *each_round; /* NULL: none */
    void *round_context;
    double round_next_at; /* monotonic: when it wants to be called again */
    struct store *store;
    char *jobs_dir, *mpirun, *worker, *agent;
    struct job_limits limits; /* the loop's; other threads: manager_limits */
    int64_t slots;
    struct slurm_settings slurm_settings;
    struct slurm *slurm;
    int wake_fd;    /* eventfd */
    int inotify_fd; /* -1: not to be had, polling alone */
    atomic_bool stop;
    struct active_job *active;          /* the loop's */
    bool look_at_queue;                 /* the loop's: something changed that may let a job start */
    struct failed_start *failed_starts; /* the loop's */
    double queue_looked_at;             /* the loop's, monotonic */
    double sweeps_next_at;              /* when losers of sweeps are looked for again */
    double queue_next_at; /* the loop's: when the queue is looked at in any case, monotonic */

    pthread_mutex_t files; /* taken while a run directory is made, changed or removed: a job may be
                              launched in the same moment */
    pthread_mutex_t mutex; /* guards what follows */
    int64_t *cancel_ids;   /* requests for the loop */
    size_t cancel_count, cancel_room;
    struct job_slots used;           /* as of the loop's last round */
    struct job_limits shared_limits; /* a copy of limits */
};

struct job_limits manager_limits(struct job_manager *m); /* thread-safe */

void manager_wake(struct job_manager *m); /* async-signal-safe */

/* submit.c: the job's own run directory, with job.json and plan.json as they are in its row. */
int job_prepare_run_dir(struct job_manager *m, const struct store_job *job, struct error *e);
/* What the queue must know of a plan. */
struct store_job_size job_size(const struct job_manager *m, const struct job_spec *spec,
                               const struct plan *plan);
/* ERR_INVALID or ERR_UNSUPPORTED: it can never run on this node. */
int job_check_fits(const struct job_manager *m, const struct job_spec *spec, struct error *e);
char *job_json_text(json_t *value); /* steals the reference; the caller frees the text */

/* total cores as slots of the job's kind: with cluster.smt their hardware threads. */
int64_t job_machine_slots(const struct job_spec *spec, int64_t total);
int64_t job_threads(const struct job_spec *spec, int64_t total); /* per worker, resolved */

/* slurm.c: brings what Slurm says of an active job into the store; a job that has ended there gets
 * a->ended, one that Slurm has put back into its queue its next attempt. */
void job_look_at_slurm(struct job_manager *m, struct active_job *a);
/* Why an attempt in Slurm ended, where Slurm knows better than the run directory. */
void job_judge_by_slurm(const struct active_job *a, enum failure_stop why, struct verdict *v);
char *job_slurm_json(const char *name, const struct slurm_status *status); /* the caller frees it */
/* Takes up a job that a former daemon handed to Slurm. */
int job_recover_slurm(struct job_manager *m, const struct store_job *job, struct error *e);

/* The attempt's folder and its events; again for the next attempt of a job that Slurm starts again.
 */
int job_open_attempt(struct job_manager *m, struct active_job *a, int64_t attempt, struct error *e);

/* queue.c: starts what fits, first come first served, and says of the others what they wait for. */
void queue_start_jobs(struct job_manager *m);
int64_t queue_slots_used(const struct job_manager *m);

/* start.c: launches one queued job. Where that is not possible the job fails with the reason; for
 * a passing one, as a full disk, it stays queued, and that counts as a restart. */
void job_start(struct job_manager *m, const struct store_job *job);
void job_store_failed_starts(struct job_manager *m); /* that could not be stored at once */
/* Adds a job with a launcher to the active ones; takes over process. */
struct active_job *job_follow(struct job_manager *m, const struct store_job *job, int64_t attempt,
                              const struct launch_process *process, struct error *e);
void job_forget(struct job_manager *m, struct active_job *a);

/* recover.c: takes up what an earlier daemon left. */
int job_recover_all(struct job_manager *m, struct error *e);

/* resume.c: a queued job that has become too large for this node goes on with fewer workers. */
int job_shrink(struct job_manager *m, int64_t id, struct error *e);
/* A queued job whose last attempt missed hosts goes on without them, if it has a checkpoint and
 * some are left; otherwise it stays as it is, as they may come back. */
void job_leave_hosts(struct job_manager *m, int64_t id, const char *attempt_dir);
/* The stored document: it was valid when it was taken, so a problem comes from another version. */
struct job_spec *job_stored_spec(const struct store_job *job, struct error *e);

/* cancel.c */
bool cancel_is_requested(const char *attempt_dir);
void cancel_take_requests(struct job_manager *m);

/* stop.c: takes an active job's stages towards its end, for whatever reason. */
void stop_begin(struct job_manager *m, struct active_job *a, enum failure_stop why);
void stop_go_on(struct job_manager *m, struct active_job *a, double now);
double stop_next_at(const struct active_job *a); /* monotonic: when there is something to do */
/* Why this attempt was asked to stop, also by a daemon before this one. */
enum failure_stop stop_why(const struct active_job *a);

/* end.c: true when the job's end is in the store and the job is forgotten. */
bool job_try_to_end(struct job_manager *m, struct active_job *a, double now);

/* stop.c: what workers may need to end their step and write a checkpoint, in seconds. */
double stop_grace(const struct job_limits *limits, const struct store_job *job);

/* end.c: the end of an attempt in the store; keeps_slurm: Slurm starts the job again by itself. */
int job_store_end(struct job_manager *m, struct active_job *a, const struct verdict *v,
                  bool keeps_slurm, struct error *e);

/* end.c: the pause before a restart, after so many others. */
double job_restart_delay(const struct job_manager *m, int64_t restarts);

/* remove.c */
void job_finish_removals(struct job_manager *m); /* that a killed daemon left half done */
void job_keep_limits(struct job_manager *m);     /* keep_runs */
void job_trim_run(const struct job_manager *m, const struct active_job *a); /* an ended one */

#endif
