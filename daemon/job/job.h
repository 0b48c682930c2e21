/*
 * What threads share with the job manager: its limits, and the state of its slots and queue as the
 * loop last saw them. All functions are thread-safe. doc/job-lifecycle.md describes the jobs.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/job/job_forecast.h"

struct job_manager;
struct slurm_settings;
struct store;

struct store *job_manager_store(const struct job_manager *m);
int64_t job_manager_total_slots(const struct job_manager *m); /* of this node */
const struct slurm_settings *job_manager_slurm(const struct job_manager *m);

/* Of one user on this machine, at the same time; 0: no limit. */
struct queue_caps {
    int64_t running, slots;
};

/* How earlier use counts against a job that waits. */
struct queue_fair_share {
    double weight; /* points of priority that a user with all use loses; 0: off */
    double half_life_seconds;
};

/* What may change while the manager runs. */
struct job_limits {
    /* Between asking the workers to stop after their step, with a checkpoint, and SIGTERM; below 0:
     * 10. A job whose steps are long gets three of them. */
    double cancel_grace_seconds;
    double priority_seconds; /* of waiting, that a point of priority counts as much as; 0: 3600 */
    struct queue_caps caps;
    int64_t max_queued_per_user; /* 0: no limit */
    struct queue_fair_share fair_share;
    double restart_delay_seconds; /* before the first automatic restart; doubles with each */
    int64_t keep_runs;            /* ended jobs that are kept; 0: all */
    int64_t keep_checkpoints;     /* of an ended job; 0: all that its checkpoint.keep left */
    int64_t keep_audit_days;      /* of a line of the audit log; 0: all */
    int64_t log_limit_bytes;      /* of an ended attempt's stdout.log; 0: none */
    int64_t stall_seconds;        /* of train-worker; 0: it does not watch for stalls */
};
struct job_limits job_manager_limits(struct job_manager *m);

/* Wakes the loop; async-signal-safe. */
void job_manager_wake(struct job_manager *m);

/* How full the node is. */
struct job_slots {
    int64_t total, used;
    int64_t running, queued; /* jobs */
};
void job_manager_slots(struct job_manager *m, struct job_slots *slots);

/* The position of a job in this machine's queue, from 1, as of the last look at it, and how many
 * wait in *of; 0: it is not in it. */
int64_t job_queue_position(struct job_manager *m, int64_t id, int64_t *of);

/* When this running job will have ended, as the waiting ones were told: of the last look at the
 * queue, less the seconds since. False: none waits, or it was not known. */
bool job_queue_end(struct job_manager *m, int64_t id, struct forecast_end *end);

/* failure_rules_to_json of the rules that are in force. */
json_t *job_failure_rules(struct job_manager *m, int64_t *unlabelled);

/* For the log: by itself, or words for an unnamed user. */
const char *job_requester_name(const char *by);
