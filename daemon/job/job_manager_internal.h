/* The structs that the files of daemon/job share; job_manager_internal.c defines the functions of
 * job.h. Others use job.h and job_manager.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/ingest/apply.h"
#include "daemon/job/job.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/job_state_machine.h"
#include "daemon/launch/slurm.h"
#include "daemon/launch/stalled.h"
#include "launch/launch.h"

#define ACTIVE_JOB_MAGIC  0xac71f10bu
#define JOB_MANAGER_MAGIC 0x10b3a6e5u

/* A job that the loop is responsible for. Owned by the loop's thread. */
struct active_job {
    unsigned magic;
    struct active_job *next;
    int64_t id, attempt, slots;
    struct job_machine machine;
    struct job_spec *spec; /* NULL: the stored document cannot be read any more */
    char *run_dir, *attempt_dir;
    const struct launcher *launcher;
    struct launch_process process;
    struct ingest *ingest;  /* NULL: not followed yet */
    struct job_hosts hosts; /* none: this machine alone */
    int watch;              /* of inotify, on attempt_dir; -1: none (polling alone) */
    int64_t exit_code, exit_signal;
    double stall_next_at;    /* monotonic: when it is checked for a stall */
    struct stalled stall;    /* once it was found */
    double stopped_since;    /* of struct stall_look */
    double complained_at;    /* monotonic: of the last log line about an error that repeats */
    struct job_start *start; /* of an attempt that is being made; NULL: none */
    struct error no_start;   /* why its attempt could not be made, or found again */
    struct verdict verdict;  /* on the attempt, once it was judged */
    bool judged;
    /* Of launcher slurm. */
    double exit_seen_at;       /* monotonic: when its script was seen to have ended; 0: not yet */
    bool without_slurm;        /* its end no longer waits for Slurm's answer */
    struct slurm_status slurm; /* as last read */
    char *slurm_stored;        /* JSON text, as last stored */
};

struct queue_ends {
    int64_t id;
    struct forecast_end ends;
};

/* What the loop does from time to time, in this order within a round. */
enum job_task {
    TASK_STOP_LOSERS, /* of sweeps */
    TASK_QUEUE,
    TASK_RETRY, /* unfinished checkpoints: run_dir_cleanup.h */
    TASK_MEASURE,
    TASK_REMOVE,
    TASK_EACH_ROUND,
    TASK_COUNT
};

/* Events, and submissions, within this time share a commit, or a look at the queue. */
#define GATHER_SECONDS 0.05

/* The fields up to files are the loop's, unless they are constant or atomic. */
struct job_manager {
    unsigned magic;
    double task_at[TASK_COUNT];          /* monotonic; INFINITY: not wanted. See job_manager_want */
    double (*each_round)(void *context); /* NULL: none */
    void *round_context;
    struct store *store;
    char *jobs_dir, *mpirun, *worker, *agent;
    char *drain_command;      /* NULL: none */
    struct job_limits limits; /* other threads: job_manager_limits */
    int64_t slots;
    struct slurm_settings slurm_settings;
    struct slurm *slurm;
    double clock_offset; /* of Unix time against the monotonic clock, when last seen; 0: not yet */
    double clock_steady_at; /* monotonic: a step of the clock before it is forgotten then */
    int wake_fd;            /* eventfd */
    int inotify_fd;         /* -1: not available, polling alone */
    atomic_bool stop;
    struct active_job *active;           /* in the order of their start */
    bool queue_is_passed;                /* most at its head cannot start, whatever ends here */
    double queue_looked_at;              /* monotonic */
    struct cleanup_later *cleanup_later; /* of ended runs, what is to be removed */
    int64_t measured_id;                 /* the last run that cleanup_measure_next measured */
    atomic_bool removing;                /* something may be left of removed jobs */
    bool beyond;                         /* there may be more runs than keep_runs, to be removed */
    double remove_not_before;            /* monotonic */

    pthread_mutex_t files; /* held while a run directory is made, changed or removed: its job may
                              be launched at the same time */
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
    struct failure_rules *rules; /* only the loop changes them, and reads them without the mutex */
};

/* Has the task done at this time, unless it is wanted earlier. */
static inline void job_manager_want(struct job_manager *m, enum job_task task, double at)
{
    if (at < m->task_at[task])
        m->task_at[task] = at;
}

/* Something changed that may let a job start. */
static inline void job_manager_want_queue(struct job_manager *m)
{
    job_manager_want(m, TASK_QUEUE, m->queue_looked_at + GATHER_SECONDS);
}
