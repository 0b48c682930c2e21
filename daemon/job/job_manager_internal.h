/* Structs shared by the files of daemon/job only; job_manager_internal.c defines the functions of
 * job.h. Other folders use job.h and job_manager.h. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "common/system/spawn.h"
#include "daemon/ingest/apply.h"
#include "daemon/job/job.h"
#include "daemon/job/job_resources.h"
#include "daemon/job/job_state_machine.h"
#include "daemon/launch/slurm.h"
#include "daemon/launch/stalled.h"
#include "launch/launch.h"

#define ACTIVE_JOB_MAGIC  0xac71f10bu
#define JOB_MANAGER_MAGIC 0x10b3a6e5u

/* Of a job with restart.grow that has fewer nodes than it wants: see job_grow.h. */
struct job_growth {
    json_t *wanted, *hosts; /* NULL: it has its nodes. From the store; hosts is borrowed from it */
    double ask_at;          /* monotonic */
    struct spawn asking;
    bool asked;         /* there is, or will be, an answer */
    json_t *changes;    /* decided, for ATTEMPT_FLAG_GROW */
    json_int_t refused; /* number of nodes that it cannot be planned for, as the log says */
};

/* A job that the loop is responsible for. Owned by the loop's thread. */
struct active_job {
    unsigned magic;
    struct active_job *next;
    int64_t id, attempt, slots;
    struct job_machine machine;
    struct job_spec *spec; /* NULL: the stored document cannot be parsed */
    char *run_dir, *attempt_dir;
    const struct launcher *launcher;
    struct launch_process process;
    struct ingest *ingest;  /* NULL: not reading its events yet */
    struct job_hosts hosts; /* empty: this machine only */
    int watch;              /* inotify watch on attempt_dir; -1: none, polling only */
    int64_t exit_code, exit_signal;
    double stall_next_at;    /* monotonic time of the next stall check */
    struct stalled stall;    /* details of the stall, if any */
    double stopped_since;    /* see struct stall_look */
    double complained_at;    /* monotonic time of the last log line about a recurring error */
    struct job_start *start; /* attempt being created; NULL: none */
    struct error no_start;   /* why the attempt could not be created or found */
    struct verdict verdict;  /* valid if judged */
    bool judged;
    struct job_growth grow;
    /* Launcher slurm only. */
    double exit_seen_at; /* monotonic time at which its script was seen to have ended; 0: not yet */
    bool without_slurm;  /* end the job without waiting for Slurm's answer */
    struct slurm_status slurm; /* as last read */
    char *slurm_stored;        /* JSON text as last stored */
};

struct queue_ends {
    int64_t id;
    struct forecast_end ends;
};

/* Periodic tasks of the loop, in their order within a round. */
enum job_task {
    TASK_STOP_LOSERS, /* in sweeps */
    TASK_QUEUE,
    TASK_RETRY, /* unfinished checkpoints: run_dir_cleanup.h */
    TASK_MEASURE,
    TASK_REMOVE,
    TASK_EACH_ROUND,
    TASK_COUNT
};

/* Events within this time share a commit; submissions within it share a scheduling pass. */
#define GATHER_SECONDS 0.05

/* Fields before `files` belong to the loop's thread unless they are constant or atomic. */
struct job_manager {
    unsigned magic;
    double task_at[TASK_COUNT]; /* monotonic; INFINITY: not scheduled. See job_manager_want */
    double (*each_round)(void *context); /* NULL: none */
    void *round_context;
    struct store *store;
    char *jobs_dir, *mpirun, *worker, *agent;
    char *drain_command;      /* NULL: none */
    struct job_limits limits; /* other threads use job_manager_limits */
    int64_t slots;
    struct slurm_settings slurm_settings;
    struct slurm *slurm;
    double clock_offset;    /* Unix time minus monotonic time, as last seen; 0: not yet */
    double clock_steady_at; /* monotonic time after which an earlier clock step no longer matters */
    int wake_fd;            /* eventfd */
    int inotify_fd;         /* -1: unavailable, polling only */
    atomic_bool stop;
    struct active_job *active; /* in the order they were started */
    bool queue_is_passed; /* most jobs at the head of the queue cannot start, whatever ends here */
    double queue_looked_at;              /* monotonic */
    struct cleanup_later *cleanup_later; /* ended runs with files still to be removed */
    int64_t measured_id;                 /* last run measured by cleanup_measure_next */
    atomic_bool removing;                /* removed jobs may still have data to delete */
    bool beyond;                         /* more runs than keep_runs may exist */
    double remove_not_before;            /* monotonic */

    pthread_mutex_t files; /* held while a run directory is created, changed or removed, because its
                              job may be launched at the same time */
    pthread_mutex_t mutex; /* guards the fields below */
    int64_t *cancel_ids;   /* cancellation requests for the loop */
    size_t cancel_count, cancel_room;
    struct job_slots used; /* as of the loop's last round */
    int64_t *queue_ids;    /* this machine's queue in order, as of the last scheduling pass */
    size_t queue_count;
    struct queue_ends
        *queue_ends; /* ends of running jobs, as of the last pass; NULL: no job waits */
    size_t queue_ends_count;
    double queue_ends_at;            /* monotonic time of that pass */
    struct job_limits shared_limits; /* copy of limits */
    struct failure_rules *rules; /* written by the loop only, which reads it without the mutex */
};

/* Schedules a task for this time, unless it is already due earlier. */
static inline void job_manager_want(struct job_manager *m, enum job_task task, double at)
{
    if (at < m->task_at[task])
        m->task_at[task] = at;
}

/* Call this when a job might be able to start. */
static inline void job_manager_want_queue(struct job_manager *m)
{
    job_manager_want(m, TASK_QUEUE, m->queue_looked_at + GATHER_SECONDS);
}
