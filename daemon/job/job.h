/* Job manager state shared between threads: the limits, and the slots and queue as of the loop's
 * last round. All functions are thread-safe. doc/job-lifecycle.md describes the life of a job. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/job_forecast.h"

struct job_manager;
struct slurm_settings;
struct store;

struct store *job_manager_store(const struct job_manager *m);
int64_t job_manager_total_slots(const struct job_manager *m);
const struct slurm_settings *job_manager_slurm(const struct job_manager *m);

/* Limits per user on this machine, counting jobs that run at the same time; 0: no limit. */
struct queue_caps {
    int64_t running, slots;
};

/* How a user's earlier use lowers the priority of a waiting job. */
struct queue_fair_share {
    double weight; /* priority points lost by a user who accounts for all use; 0: off */
    double half_life_seconds;
};

/* Settings that may change while the manager runs. */
struct job_limits {
    /* Grace period before SIGTERM, in which the workers finish their step and write a checkpoint;
     * negative: 10. A job with long steps gets the time of three steps if that is longer. */
    double cancel_grace_seconds;
    double priority_seconds; /* waiting time worth one point of priority; 0: 3600 */
    struct queue_caps caps;
    int64_t max_queued_per_user; /* 0: no limit */
    struct queue_fair_share fair_share;
    double
        restart_delay_seconds; /* of the first automatic restart; doubles with each further one */
    int64_t keep_runs;         /* ended jobs to keep; 0: all */
    int64_t
        keep_checkpoints; /* checkpoints to keep per ended job; 0: all that checkpoint.keep left */
    int64_t keep_audit_days; /* age at which audit log lines are deleted; 0: never */
    int64_t log_limit_bytes; /* size limit of an ended attempt's stdout.log; 0: none */
    int64_t stall_seconds;   /* stall timeout of train-worker; 0: disabled */
};
struct job_limits job_manager_limits(struct job_manager *m);

/* Wakes the loop. Async-signal-safe. */
void job_manager_wake(struct job_manager *m);

/* Occupancy of this node. */
struct job_slots {
    int64_t total, used;
    int64_t running, queued; /* jobs */
};
void job_manager_slots(struct job_manager *m, struct job_slots *slots);

/* Returns the job's position in this machine's queue, counting from 1, as of the last scheduling
 * pass; 0 if it is not queued. Sets *of to the length of the queue. */
int64_t job_queue_position(struct job_manager *m, int64_t id, int64_t *of);

/* Gets the forecast end of a running job, as used for the start times of waiting jobs in the last
 * scheduling pass, corrected for the time since. Returns false if no job waits or the end is
 * unknown. */
bool job_queue_end(struct job_manager *m, int64_t id, struct forecast_end *end);

/* Returns failure_rules_to_json of the rules in force. */
json_t *job_failure_rules(struct job_manager *m, int64_t *unlabelled);

/* Returns `by`, or a placeholder if the user is unnamed; for log messages. */
const char *job_requester_name(const char *by);
