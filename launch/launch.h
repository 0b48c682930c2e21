/*
 * Launchers: what starts the workers of a job, behind one table of functions: `local` (mpirun, a
 * process of this machine, for ranks here or on the hosts that the job names) and `slurm` (slurm.h:
 * a job of Slurm's, which is no process here).
 *
 * A launch has two halves so that a daemon killed in between starts nothing twice: start() makes a
 * process that waits at a gate, the caller stores its identity, launch_release() opens the gate.
 * A daemon that dies before closes the gate with it and the process ends without having run
 * anything.
 *
 * All functions are called from the manager's thread only.
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
    enum job_bind bind; /* the document's; of launcher local none where it is auto and another job
                           could be bound beside it */
    struct placement_machine machine; /* that the ranks run on; zero: not known */
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
    const char *threads_source; /* what said how many threads, for a comment; NULL: the document */
    double created_at;          /* of the job: makes its name in Slurm unique */
    double time_limit_seconds;  /* NAN: none */
    double lead_seconds;        /* so long before its end the ranks are asked to stop */
    bool by_hand;               /* a script for a person, who has no run directory yet */
    const char *document;       /* the job document that such a script brings with it */
};

/* Processes by pid and start: a pid's second life has another start. */
struct process_id {
    int64_t pid, start;
};
struct process_set {
    struct process_id *items;
    size_t count, room;
};

/* A started launcher: a process, whose identity is pid and start (a pid's second life has another
 * start), or a job of Slurm's. */
struct launch_process {
    struct slurm_job *slurm; /* NULL: a process; else the other fields are not used (pidfd is -1) */
    pid_t pid;
    int64_t start; /* field 22 of /proc/PID/stat, clock ticks since boot */
    int pidfd;     /* readable once it has ended; -1: not open */
    int gate;      /* -1: released */
    pid_t session; /* its own; 0: not known to be its, as it had ended before it was looked for */
    struct process_set members; /* of the attempt, as last seen */
};

#define LAUNCH_AGENT "ssh -o BatchMode=yes -o ConnectTimeout=10" /* where nothing else is said */
#define HOSTS_LAUNCH                                                                               \
    "--launch-hosts" /* traind's first argument when it is hosts_launch (hosts.h) */

/* How hard to ask for the end. */
enum launch_stop {
    LAUNCH_STOP_AFTER_STEP, /* SIGUSR1, which mpirun hands to all ranks: they stop after their step.
                               (SIGTERM does not do: mpirun kills the ranks one second later.) */
    LAUNCH_STOP_NOW,        /* SIGTERM: mpirun ends its ranks and cleans up behind itself */
    LAUNCH_STOP_KILL,       /* SIGKILL to every process of the attempt and their descendants */
};

struct launcher {
    const char *name; /* of cluster.launcher */
    /* Writes attempt-N/hostfile and attempt-N/command and starts the gated process, whose output
     * goes to attempt-N/stdout.log. */
    int (*start)(const struct launch_request *request, struct launch_process *process,
                 struct error *e);
    void (*stop)(struct launch_process *process, const char *attempt_dir, enum launch_stop how);
    /* Processes of the attempt that are still there, whoever their parent is. Where there are none,
     * the memory that they shared is given back. */
    int (*survivors)(struct launch_process *process, const char *attempt_dir);
};

extern const struct launcher launcher_local;

/* Opens the gate; false: the process is gone already. */
bool launch_release(struct launch_process *process);
/* Finds a process of an earlier daemon again; false: it has ended. */
bool launch_adopt(int64_t pid, int64_t start, struct launch_process *process);
/* Reaps an ended process. *code or *signal is set where known (own child), else both stay -1. */
void launch_reap(struct launch_process *process, int64_t *code, int64_t *signal_number);
/* Closes an unopened gate and waits for the process behind it, which ends at once. */
void launch_abandon(struct launch_process *process);
/* Seconds since it was started, by a clock that nobody sets. */
double launch_elapsed_seconds(const struct launch_process *process);
void launch_process_close(struct launch_process *process);

/* The absolute path of a program given by path or, through PATH, by name. The caller frees *path.
 * ERR_NOT_FOUND or ERR_NOT_ALLOWED, without a remedy: the caller knows it. */
int launch_find_program(const char *name, char **path, struct error *e);

/* Open MPI's major version, by that mpirun's own word; 0: not known. It is asked once. From any
 * thread. */
int launch_mpi_version(const char *mpirun);

/* Cores, or with smt hardware threads, that this process may use; at least 1. */
int64_t launch_node_slots(bool smt);
