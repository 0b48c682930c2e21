/*
 * Launchers start the workers of a job: `local` runs mpirun as a process of this machine, for ranks
 * here or on the hosts that the job names; `slurm` (daemon/launch/slurm.h) submits a job to Slurm.
 *
 * A launch has two steps so that a daemon killed in between starts nothing twice: start() creates a
 * process that waits at a gate, the caller stores its identity, launch_release() opens the gate. If
 * the daemon dies first, the gate closes and the process exits without having run anything.
 *
 * Only the manager's thread calls these functions, except where noted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/system/placement.h"

struct slurm;
struct slurm_job;
struct slurm_settings;

/* What is to run. */
struct launch_request {
    int64_t job_id, attempt;
    const char *run_dir; /* absolute; holds job.json */
    const struct job_spec *spec;
    int64_t threads;    /* per worker, resolved */
    enum job_bind bind; /* the document's; local: none instead of auto if another job could be
                           bound to the same cores */
    struct placement_machine machine; /* of the ranks; zero: not known */
    int64_t stall_seconds;            /* of train-worker */
    bool measure_peak;                /* for trainctl bench */
    const char *mpirun;               /* as found by launch_find_program */
    const char *worker;
    const char *data_roots; /* of train-worker; NULL: any folder */
    const char *agent;      /* what starts a program on another host: ssh and its options */
    bool resumes;           /* from the newest checkpoint */
    /* Of the launcher slurm. */
    const struct slurm_settings *slurm;
    struct slurm *cluster;
    const char *threads_source; /* of the number of threads, for a comment; NULL: the document */
    double created_at;          /* of the job: makes its name in Slurm unique */
    double time_limit_seconds;  /* NAN: none */
    double lead_seconds;        /* before its end, at which the ranks are asked to stop */
    bool by_hand;               /* a script for a user, without a run directory */
    const char *document;       /* the job document that such a script contains */
};

/* A process: a reused pid has another start. */
struct process_id {
    int64_t pid, start;
};
struct process_set {
    struct process_id *items;
    size_t count, room;
};

/* A started launcher: a process or a job of Slurm. */
struct launch_process {
    struct slurm_job *slurm; /* NULL: a process; else the other fields are not used (pidfd is -1) */
    pid_t pid;
    int64_t start;              /* field 22 of /proc/PID/stat, clock ticks since boot */
    int pidfd;                  /* readable once it has ended; -1: not open */
    int gate;                   /* -1: released */
    pid_t session;              /* its own; 0: not known, as it had ended before it was read */
    struct process_set members; /* of the attempt, as last seen */
};

#define LAUNCH_AGENT "ssh -o BatchMode=yes -o ConnectTimeout=10" /* the default */
#define HOSTS_LAUNCH                                                                               \
    "--launch-hosts" /* traind's first argument when it is hosts_launch (hosts.h) */

enum launch_stop {
    LAUNCH_STOP_AFTER_STEP, /* SIGUSR1, which mpirun forwards to all ranks: they stop after their
                               step. Not SIGTERM: mpirun kills the ranks a second after it. */
    LAUNCH_STOP_NOW,        /* SIGTERM: mpirun ends its ranks and cleans up */
    LAUNCH_STOP_KILL,       /* SIGKILL to every process of the attempt and their descendants */
};

struct launcher {
    const char *name; /* of cluster.launcher */
    /* Writes attempt-N/hostfile and attempt-N/command and starts the gated process, whose output
     * goes to attempt-N/stdout.log. */
    int (*start)(const struct launch_request *request, struct launch_process *process,
                 struct error *e);
    void (*stop)(struct launch_process *process, const char *attempt_dir, enum launch_stop how);
    /* The number of processes of the attempt, whatever their parent. If there are none, their
     * shared memory is removed. */
    int (*survivors)(struct launch_process *process, const char *attempt_dir);
};

extern const struct launcher launcher_local;

/* Opens the gate; false: the process is gone. */
bool launch_release(struct launch_process *process);
/* Finds a process of an earlier daemon again; false: it has ended. */
bool launch_adopt(int64_t pid, int64_t start, struct launch_process *process);
/* Reaps an ended process. *code or *signal is set where known (own child), else both stay -1. */
void launch_reap(struct launch_process *process, int64_t *code, int64_t *signal_number);
/* Closes an unopened gate and waits for the process behind it, which ends at once. */
void launch_abandon(struct launch_process *process);
/* Seconds since it was started (CLOCK_BOOTTIME). */
double launch_elapsed_seconds(const struct launch_process *process);
void launch_process_close(struct launch_process *process);

/* The absolute path of a program given by path or, through PATH, by name. The caller frees *path.
 * ERR_NOT_FOUND or ERR_NOT_ALLOWED, without a remedy: the caller knows it. */
int launch_find_program(const char *name, char **path, struct error *e);

/* Open MPI's major version, from mpirun --version; 0: not known. Cached. From any thread. */
int launch_mpi_version(const char *mpirun);

/* Cores, or with smt hardware threads, that this process may use; at least 1. */
int64_t launch_node_slots(bool smt);

/* ---- processes of an attempt */

/* Its start, field 22 of /proc/PID/stat; -1: no such process, or a zombie. */
int64_t process_start(int64_t pid);

/* Updates a set: removes the dead and adds every living process that was started with
 * ATTEMPT_MARK=attempt_dir in its environment, is in the session (0: any), or descends from a
 * member. A process seen once stays a member even if it clears its environment, leaves the session
 * or loses its parent. The environment of processes older than since, the start of the launcher (0:
 * not known), is not read. Returns the number of members. */
size_t process_set_update(struct process_set *set, const char *attempt_dir, int64_t session,
                          int64_t since);

struct process_stopped {
    int64_t pid, rank; /* rank -1: not a rank */
    char name[64];
};

/* Finds a member that is stopped by a signal: first if it is, else the lowest rank. False: none. */
bool process_set_find_stopped(const struct process_set *set, int64_t first,
                              struct process_stopped *found);

void process_set_signal(const struct process_set *set, int signal_number);
