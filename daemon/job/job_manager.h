/*
 * The job manager of a daemon. Only its loop, on one thread, starts and ends launchers and reads
 * run directories. Requests of other threads (job_requests.h) are written to the store and wake it;
 * what a job is doing is always read from the store.
 */
#pragma once

#include "daemon/job/job.h"
#include "daemon/launch/slurm.h"

struct failure_rules;

/* Strings are copied, except those of slurm, which must outlive the manager. */
struct job_manager_config {
    const char *jobs_dir; /* STATE/jobs, absolute; made if missing */
    const char *mpirun;   /* a path, or a name to be found in PATH; NULL: "mpirun" */
    const char *worker;   /* the train-worker program; NULL: BINDIR/train-worker */
    const char *agent;    /* what runs a program on another host; NULL: "ssh" */
    int64_t slots;        /* cores of this node that jobs may take; 0: all this process may use */
    struct job_limits limits;
    struct slurm_settings slurm;
    const char *drain_command;   /* called with a node and a reason; NULL: none */
    struct failure_rules *rules; /* the manager owns them from now on; NULL: the built-in ones */
};

/* The store must outlive the manager. Nothing is started yet. */
int job_manager_create(const struct job_manager_config *config, struct store *store,
                       struct job_manager **out, struct error *e);

/* Recovers what an earlier daemon left, then serves until job_manager_stop: returns 0 with the jobs
 * running on without the daemon, or a negative error that the daemon cannot work with. */
int job_manager_run(struct job_manager *m, struct error *e);

/* Async-signal-safe and callable from any thread, also before job_manager_run. */
void job_manager_stop(struct job_manager *m);

void job_manager_destroy(struct job_manager *m); /* NULL is fine; jobs run on */

/* Called on the manager's thread after each round of its loop, and at the latest this many seconds
 * after the last call as that one returned (INFINITY: whenever something happens). */
typedef double job_manager_round(void *context);
void job_manager_each_round(struct job_manager *m, job_manager_round *round, void *context);

/* For what is started or stopped from now on. On the manager's thread. */
void job_manager_set_limits(struct job_manager *m, const struct job_limits *limits);

/* Likewise. The manager owns the rules from now on; they take over the counts of those before. */
void job_manager_set_rules(struct job_manager *m, struct failure_rules *rules,
                           const char *drain_command);
