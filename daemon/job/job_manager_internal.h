/* Inside the manager: the structs that its files share. Others use job.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/ingest/apply.h"
#include "daemon/job/job.h"
#include "daemon/job/job_state_machine.h"
#include "daemon/job/job_hosts.h"
#include "daemon/launch/stalled.h"
#include "launch/launch.h"

/* A job that the loop has to do with. Owned by the loop's thread. */
struct active_job {
    struct active_job *next;
    int64_t id, attempt, slots;
    struct job_machine machine;
    struct job_spec *spec; /* NULL: the stored document cannot be read any more */
    char *run_dir, *attempt_dir;
    const struct launcher *launcher;
    struct launch_process process;
    struct ingest *ingest;  /* NULL: not followed yet */
    struct job_hosts hosts; /* that it takes; none: this machine alone */
    int watch;              /* of inotify, on attempt_dir; -1: none (polling alone) */
    int64_t exit_code, exit_signal;
    double stall_next_at;   /* monotonic: when it is looked at for a stall */
    struct stalled stall;   /* once it was found */
    double stopped_since;   /* of struct stall_look */
    double complained_at;   /* monotonic: of the last log line about an error that repeats */
    struct start *start;    /* of an attempt that is being made (start.h); NULL: none */
    struct error no_start;  /* why its attempt could not be made, or found again */
    struct verdict verdict; /* on the attempt, once it was judged */
    bool judged;
    /* Of launcher slurm. */
    double exit_seen_at;       /* monotonic: when its script was seen to have ended; 0: not yet */
    bool without_slurm;        /* its end does not wait for Slurm's word any more */
    struct slurm_status slurm; /* as last read */
    char *slurm_stored;        /* JSON text, as last stored */
};

struct queue_ends {
    int64_t id;
    struct forecast_end ends;
};

struct job_manager {
    job_manager_round *each_round; /* NULL: none */
    void *round_context;
    double round_next_at; /* monotonic: when it wants to be called again */
    struct store *store;
    char *jobs_dir, *mpirun, *worker, *agent;
    char *drain_command;      /* the loop's; NULL: none */
    struct job_limits limits; /* the loop's; other threads: job_manager_limits */
    int64_t slots;
    struct slurm_settings slurm_settings;
    struct slurm *slurm;
    double clock_offset; /* of Unix time against the monotonic clock, when last seen; 0: not yet */
    double clock_steady_at; /* monotonic: a step of the clock before it is forgotten then */
    int wake_fd;            /* eventfd */
    int inotify_fd;         /* -1: not available, polling alone */
    atomic_bool stop;
    struct active_job *active; /* the loop's, in the order of their start */
    bool look_at_queue;        /* the loop's: something changed that may let a job start */
    bool queue_is_passed;      /* the loop's: most at its head cannot start, whatever ends here */
    double queue_looked_at;    /* the loop's, monotonic */
    double sweeps_next_at;     /* when losers of sweeps are looked for again */
    int sweeps_room;           /* the loop's: jobs that may still be submitted in this look */
    bool sweeps_slurm_away;    /* the loop's: Slurm did not answer in this look */
    double queue_next_at;      /* the loop's: when the queue is looked at in any case, monotonic */
    struct trim_later *trim_later; /* the loop's: of ended runs, what is to be removed (trim.h) */
    double trim_next_at;           /* monotonic: when that is tried again */
    double measure_next_at; /* the loop's, monotonic: when older jobs are measured (trim.h) */
    int64_t measured_id;    /* the loop's: the last of them */
    atomic_bool removing;   /* something may be left of removed jobs (remove.h) */
    bool beyond;            /* the loop's: there may be more runs than keep_runs, to be removed */
    double remove_next_at;  /* the loop's, monotonic: not before */

    pthread_mutex_t files; /* taken while a run directory is made, changed or removed: a job may be
                              launched in the same moment */
    pthread_mutex_t mutex; /* guards what follows */
    int64_t *cancel_ids;   /* requests for the loop */
    size_t cancel_count, cancel_room;
    struct job_slots used; /* as of the loop's last round */
    int64_t *queue_ids;    /* of this machine's queue, in order, as of the last look */
    size_t queue_count;
    struct queue_ends *queue_ends; /* of running jobs, as of the last look; none: no job waits */
    size_t queue_ends_count;
    double queue_ends_at;            /* monotonic: of that look */
    struct job_limits shared_limits; /* a copy of limits */
    struct failure_rules *rules; /* changed by the loop alone, which reads it without the mutex */
};

void manager_count_failure(struct job_manager *m, const char *label); /* "": none */

/* At most one line in ten seconds about a job's error that repeats. */
void manager_complain(struct active_job *a, const char *what, const struct error *e);
