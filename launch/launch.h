/*
 * Launchers start the workers of a job. `local` runs mpirun as a process of this machine, for ranks
 * here or on the hosts named by the job. `slurm` (daemon/launch/slurm.h) submits a job to Slurm.
 *
 * A launch has two steps, so that a daemon killed in between does not start anything twice: start()
 * creates a process that waits at a gate, the caller stores the process's identity, and
 * launch_release() opens the gate. If the daemon dies first, the gate is closed and the process
 * exits without executing anything.
 *
 * Only the manager's thread may call these functions, except where noted.
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

struct launch_request {
    int64_t job_id, attempt;
    const char *run_dir; /* absolute; contains job.json */
    const struct job_spec *spec;
    int64_t threads;    /* per worker, never 0 */
    enum job_bind bind; /* as in the document; local: "none" instead of "auto" if another job could
                           be bound to the same cores */
    struct placement_machine machine; /* of the ranks; zeroed: unknown */
    int64_t stall_seconds;            /* option of train-worker */
    bool measure_peak;                /* option of train-worker, for trainctl bench */
    const char *mpirun;               /* result of launch_find_program */
    const char *worker;
    const char *data_roots; /* option of train-worker; NULL: any folder is allowed */
    const char *agent;      /* command that runs a program on another host: ssh with its options */
    bool resumes;           /* start from the newest checkpoint */
    /* Only for the launcher slurm */
    const struct slurm_settings *slurm;
    struct slurm *cluster;
    const char *threads_source; /* origin of the number of threads, for a comment in the script;
                                   NULL: the document */
    double created_at;          /* of the job; makes its name in Slurm unique */
    double time_limit_seconds;  /* NAN: no limit */
    double lead_seconds;        /* time before the limit at which the ranks are asked to stop */
    bool by_hand;               /* make a script for a user, without a run directory */
    const char *document;       /* the job document that such a script contains */
};

/* Identifies a process: if the pid is reused, start differs. */
struct process_id {
    int64_t pid, start;
};
struct process_set {
    struct process_id *items;
    size_t count, capacity;
};

struct launch_process {
    struct slurm_job
        *slurm; /* NULL: a process; otherwise the other members are not used (pidfd is -1) */
    pid_t pid;
    int64_t start; /* field 22 of /proc/PID/stat, clock ticks since boot */
    int pidfd;     /* readable once the process has ended; -1: not open */
    int gate;      /* write end of a pipe; -1: released */
    pid_t session; /* session id of the process; 0: unknown, because the process ended before it was
                      read */
    struct process_set members; /* processes of the attempt at the last scan */
};

#define LAUNCH_AGENT "ssh -o BatchMode=yes -o ConnectTimeout=10" /* default agent */
#define HOSTS_LAUNCH "--launch-hosts" /* traind's first argument to run hosts_launch (hosts.h) */

enum launch_stop {
    LAUNCH_STOP_AFTER_STEP, /* SIGUSR1, which mpirun forwards to all ranks; they stop after the
                               current step. SIGTERM cannot be used: after it mpirun kills the ranks
                               within a second. */
    LAUNCH_STOP_NOW,        /* SIGTERM: mpirun ends its ranks and cleans up */
    LAUNCH_STOP_KILL,       /* SIGKILL to all processes of the attempt and their descendants */
};

struct launcher {
    const char *name; /* value of cluster.launcher */
    /* Writes attempt-N/hostfile and attempt-N/command and starts the gated process, whose output
     * goes to attempt-N/stdout.log. */
    int (*start)(const struct launch_request *request, struct launch_process *process,
                 struct error *e);
    void (*stop)(struct launch_process *process, const char *attempt_dir, enum launch_stop how);
    /* Returns the number of processes of the attempt, whatever their parent. If there are none,
     * removes their shared memory. */
    int (*survivors)(struct launch_process *process, const char *attempt_dir);
};

extern const struct launcher launcher_local;

/* Opens the gate. Returns false if the process has exited. */
bool launch_release(struct launch_process *process);
/* Finds a process that an earlier daemon started. Returns false if it has ended. */
bool launch_adopt(int64_t pid, int64_t start, struct launch_process *process);
/* Reaps an ended process. *code or *signal_number is set if it was a child, else both stay -1. */
void launch_reap(struct launch_process *process, int64_t *code, int64_t *signal_number);
/* Closes the unopened gate and waits for the process, which then exits. */
void launch_abandon(struct launch_process *process);
/* Seconds since the process was started (CLOCK_BOOTTIME). */
double launch_elapsed_seconds(const struct launch_process *process);
void launch_process_close(struct launch_process *process);

/* Finds the absolute path of a program given by path or, through PATH, by name. The caller frees
 * *path. ERR_NOT_FOUND or ERR_NOT_ALLOWED; the caller adds the remedy. */
int launch_find_program(const char *name, char **path, struct error *e);

/* Returns the major version of Open MPI from mpirun --version; 0: unknown. Cached. Thread-safe. */
int launch_mpi_version(const char *mpirun);

/* Number of cores, or with smt of hardware threads, that this process may use; at least 1. */
int64_t launch_node_slots(bool smt);

/* ---- processes of an attempt */

/* The start time, field 22 of /proc/PID/stat; -1: there is no such process, or it is a zombie. */
int64_t process_start(int64_t pid);

/* Updates a set: removes dead processes, and adds each living one that was started with
 * ATTEMPT_MARK=attempt_dir in its environment, is in the session (0: any), or is a descendant of a
 * member. A process stays a member even if it clears its environment, leaves the session or loses
 * its parent. The environment of processes older than `since`, the start of the launcher (0:
 * unknown), is not read. Returns the number of members. */
size_t process_set_update(struct process_set *set, const char *attempt_dir, int64_t session,
                          int64_t since);

struct process_stopped {
    int64_t pid, rank; /* rank -1: not a rank */
    char name[64];
};

/* Finds a member that is stopped by a signal: process `first` if it is stopped, else the lowest
 * rank. Returns false if none is stopped. */
bool process_set_find_stopped(const struct process_set *set, int64_t first,
                              struct process_stopped *found);

void process_set_signal(const struct process_set *set, int signal_number);
