/*
 * The life of a job, from submission to its end: queue, launch, watch, ingest, cancel, recovery.
 *
 * One manager for a daemon. Its loop runs on one thread (job_manager_run, the main thread) and is
 * alone in starting and ending launchers and in reading run directories; job_submit and job_cancel
 * may be called from any thread: they write to the store and wake the loop. What a job is doing is
 * always read from the store. The lifecycle in words: doc/job-lifecycle.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_spec.h"
#include "common/plan/plan.h"
#include "common/plan/workers.h"
#include "daemon/job/job_fair.h"
#include "daemon/job/job_forecast.h"
#include "daemon/launch/slurm.h"
#include "daemon/launch/slurm_cores.h"
#include "daemon/store/store.h"

struct job_manager;

/* What may change while the manager runs. */
struct job_limits {
    /* Between asking the workers to stop after their step, with a checkpoint, and SIGTERM; below 0:
     * 10. A job whose steps are long gets three of them. */
    double cancel_grace_seconds;
    double priority_seconds; /* of waiting, that a point of priority counts as much as; 0: 3600 */
    struct queue_caps caps;  /* of one user */
    int64_t max_queued_per_user; /* 0: no limit */
    struct queue_fair_share fair_share;
    double restart_delay_seconds; /* before the first automatic restart; it doubles with each */
    int64_t keep_runs;            /* ended jobs that are kept; 0: all */
    int64_t keep_checkpoints;     /* of an ended job; 0: all that its checkpoint.keep left */
    int64_t keep_audit_days;      /* of a line of the audit log; 0: all */
    int64_t log_limit_bytes;      /* of an ended attempt's stdout.log; 0: none */
    int64_t stall_seconds;        /* of train-worker; 0: it watches for no stalls */
};

struct failure_rules;

/* Strings are copied, but for those of slurm, which must outlive the manager. */
struct job_manager_config {
    const char *jobs_dir; /* STATE/jobs, absolute; made if missing */
    const char *mpirun;   /* a path, or a name to be found in PATH; NULL: "mpirun" */
    const char *worker;   /* the train-worker program; NULL: BINDIR/train-worker */
    const char *agent;    /* what runs a program on another host; NULL: "ssh" */
    int64_t slots;        /* cores of this node that jobs may take; 0: all this process may use */
    struct job_limits limits;
    struct slurm_settings slurm;
    const char *drain_command;   /* called with a node and a reason; NULL: none */
    struct failure_rules *rules; /* of failures: the manager's from now on; NULL: traind's own */
};

/* Called on the manager's thread after each round of its loop, and at the latest so many seconds
 * after the last call as that one returned (INFINITY: whenever something happens). */
typedef double job_manager_round(void *context);
void job_manager_each_round(struct job_manager *m, job_manager_round *round, void *context);

/* Makes a signal handler's wish known to the round: async-signal-safe. */
void job_manager_wake(struct job_manager *m);

/* Takes effect as a whole, for what is started or stopped from now on. On the manager's thread. */
void job_manager_set_limits(struct job_manager *m, const struct job_limits *limits);

/* Likewise of the failure rules, which become the manager's with the counts of those before, and of
 * the command that drains a node (NULL: none). */
void job_manager_set_rules(struct job_manager *m, struct failure_rules *rules,
                           const char *drain_command);

/* failure_rules_to_json of the rules that are in force. Thread-safe. */
json_t *job_failure_rules(struct job_manager *m, int64_t *unlabelled);

/* The store must outlive the manager. Nothing is started yet. */
int job_manager_create(const struct job_manager_config *config, struct store *store,
                       struct job_manager **out, struct error *e);

/* Recovers what a former daemon left, then serves until job_manager_stop: returns 0 with the jobs
 * going on without the daemon, or a negative error that the daemon cannot work with. */
int job_manager_run(struct job_manager *m, struct error *e);

/* Async-signal-safe and callable from any thread, also before job_manager_run. */
void job_manager_stop(struct job_manager *m);

void job_manager_destroy(struct job_manager *m); /* NULL is fine; jobs go on */

/* What a submission brings, checked by the caller: the document is valid. */
struct job_submission {
    const struct job_spec *spec;
    const struct plan *plan;
    const char *idempotency_key; /* NULL: none */
    const char *request_digest;  /* of the body as sent; NULL: none */
    const char *submitted_by;    /* NULL: nobody was named */
};

/*
 * Queues a job: makes its row, which holds document and plan; durable when it returns. Its run
 * directory is made when it starts. *existed (may be NULL): the key was seen before, *id is the
 * earlier job. ERR_INVALID: it can never fit on this node; why is added to problems, too.
 * ERR_CONFLICT: the same key with another body. Thread-safe.
 */
int job_submit(struct job_manager *m, const struct job_submission *submission,
               struct problems *problems, int64_t *id, bool *existed, struct error *e);

/*
 * Cancels a job, asked by somebody, who stands in its events and in the log (NULL: nobody was
 * named). A queued one is cancelled when this returns; of an active one the workers get SIGTERM,
 * after the grace SIGKILL, and the state changes when all its processes are gone. ERR_NOT_FOUND;
 * ERR_CONFLICT: it has ended already (its state is named). Thread-safe.
 */
int job_cancel(struct job_manager *m, int64_t id, const char *by, struct error *e);

/*
 * Puts a failed or cancelled job back into the queue, to go on from its newest checkpoint. changes
 * (NULL: none) is an object with keys of cluster, restart and priority; with other workers the job
 * is planned again. *answer gets {"step", "before", "after", "steps_left"}: the numbers of the old
 * and of the new plan, a new reference. Problems of the changes go into *problems.
 * ERR_NOT_FOUND; ERR_CONFLICT: it runs, has succeeded, or has no checkpoint; ERR_INVALID: the
 * changes (problems->count tells if they are listed). Thread-safe.
 */
int job_resume(struct job_manager *m, int64_t id, const json_t *changes, const char *by,
               struct problems *problems, json_t **answer, struct error *e);

/*
 * Holds a job that waits: it stays in the queue and is passed over until job_release; the time for
 * which it is held does not count as waiting. job_set_priority gives it another priority (-1000 to
 * 1000). by stands in its events and in the log. ERR_NOT_FOUND; ERR_CONFLICT: it does not wait,
 * waits in Slurm's queue, or is held (is not held) already. Thread-safe.
 */
int job_hold(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_release(struct job_manager *m, int64_t id, const char *by, struct error *e);
int job_set_priority(struct job_manager *m, int64_t id, int64_t priority, const char *by,
                     struct error *e);

/*
 * Changes name, note, tags and star of a job in any state; change is checked, as
 * daemon/store/job_label.h has it. ERR_NOT_FOUND; ERR_INVALID: too many tags. Thread-safe.
 */
int job_label(struct job_manager *m, int64_t id, const json_t *change, const char *by,
              struct error *e);

/* Removes an ended job: nobody finds it any more. Its events, series and run directory go in the
 * next rounds of the loop. Who asked stands in the log, as its events are gone. ERR_NOT_FOUND;
 * ERR_CONFLICT: it has not ended. Thread-safe. */
int job_remove(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* by in words for the log: itself, or words for nobody who is known. */
const char *job_by_words(const char *by);

/* How full the node is. Thread-safe. */
struct job_slots {
    int64_t total, used;
    int64_t running, queued; /* jobs */
};
void job_manager_slots(struct job_manager *m, struct job_slots *slots);

/* The place of a job in this machine's queue, from 1, as of the last look at it, and how many wait
 * in *of; 0: it is not in it. Thread-safe. */
int64_t job_queue_position(struct job_manager *m, int64_t id, int64_t *of);

/* When this running job will have ended, as those that wait were told: of the last look at the
 * queue, less the seconds since. False: none waits, or it was not known. Thread-safe. */
bool job_queue_end(struct job_manager *m, int64_t id, struct forecast_end *end);

/* Of one user, and how use counts. Thread-safe. */
struct job_limits job_manager_limits(struct job_manager *m);

/* Slots of this machine that a job takes: workers_per_node x max(1, threads_per_worker, or total /
 * workers when 0); 0 for one that runs on other hosts alone (hosts.h). */
int64_t job_slots_needed(const struct job_spec *spec, int64_t total);

/* How a job's node was shared out. */
struct job_cores {
    struct slurm_cores node;     /* of which threads are a share; cores 0: the document says them */
    struct plan_workers workers; /* that were chosen */
};

/* A job without cluster.workers_per_node gets its workers and their threads
 * (common/plan/workers.h), and a job for Slurm without cluster.threads_per_worker these: its
 * workers' share of a node's cores, which Slurm or slurm.node_cores names. On this machine threads
 * that the document leaves open follow from its slots whenever the job starts: they are only told.
 * by: whose job it is, whose speeds are known. Waits for Slurm, 10 s at most; thread-safe. Fills
 * *problems and returns the error's code where it cannot be known. */
int job_share_cores(const struct job_manager *m, struct job_spec *spec, const char *by,
                    struct job_cores *found, struct problems *problems);

/* For the plan, as long as *cores is there. */
void job_cores_tell(const struct job_cores *cores, struct plan_inputs *inputs);

/* The batch script by which a person may submit a job of launcher slurm; the caller frees *text.
 * Thread-safe. */
int job_slurm_script(struct job_manager *m, const struct job_spec *spec, const struct plan *plan,
                     char **text, struct error *e);
