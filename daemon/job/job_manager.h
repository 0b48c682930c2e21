/* The job manager. Its loop runs on one thread, which alone starts and ends launchers and reads run
 * directories. Other threads' requests (job_requests.h) are written to the store and wake the loop;
 * the store is the only source of a job's state. */
#pragma once

#include "daemon/job/job.h"
#include "daemon/launch/slurm.h"

struct failure_rules;

/* Strings are copied, except those of slurm, which must outlive the manager. */
struct job_manager_config {
    const char *jobs_dir; /* STATE/jobs, absolute; created if missing */
    const char *mpirun;   /* a path, or a name to look up in PATH; NULL: "mpirun" */
    const char *worker;   /* the train-worker program; NULL: BINDIR/train-worker */
    const char *agent;    /* program that runs commands on other hosts; NULL: "ssh" */
    int64_t slots; /* cores of this node available to jobs; 0: all that this process may use */
    struct job_limits limits;
    struct slurm_settings slurm;
    const char *drain_command;   /* called with a node name and a reason; NULL: none */
    struct failure_rules *rules; /* owned by the manager; NULL: the built-in rules */
};

/* Starts nothing yet. The store must outlive the manager. */
int job_manager_create(const struct job_manager_config *config, struct store *store,
                       struct job_manager **out, struct error *e);

/* Recovers the jobs of an earlier daemon, then serves until job_manager_stop. Returns 0 while jobs
 * continue without the daemon, or a negative error if the daemon cannot work. */
int job_manager_run(struct job_manager *m, struct error *e);

/* Async-signal-safe and callable from any thread, also before job_manager_run. */
void job_manager_stop(struct job_manager *m);

void job_manager_destroy(struct job_manager *m); /* NULL-safe; jobs continue to run */

/* Callback run on the manager's thread after each round of its loop, and no later than the returned
 * number of seconds after the last call (INFINITY: only when something happens). */
typedef double job_manager_round(void *context);
void job_manager_each_round(struct job_manager *m, job_manager_round *round, void *context);

/* Applies to whatever is started or stopped after this call. Manager's thread only. */
void job_manager_set_limits(struct job_manager *m, const struct job_limits *limits);

/* Manager's thread only. Takes ownership of the rules, which inherit the counts of the previous
 * ones. */
void job_manager_set_rules(struct job_manager *m, struct failure_rules *rules,
                           const char *drain_command);
