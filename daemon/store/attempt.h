/* A job's attempts: their begin, their end, and what puts a job back into the queue. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_row.h"

/* Launches in the order that makes a killed daemon safe: store_job_begin_attempt before a process
 * is started, store_job_set_launcher, which makes both durable, before that executes mpirun.
 * change: to "starting", or "queued" in Slurm. above: the newest attempt in the run directory,
 * unknown to a restored database. ERR_CONFLICT: held or cancelled meanwhile. */
int store_job_begin_attempt(struct store *s, int64_t id, const struct store_state_change *change,
                            int64_t above, int64_t *attempt, struct error *e);
int store_job_set_launcher(struct store *s, int64_t id, int64_t pid, int64_t pid_start,
                           struct error *e);

/* Before a job is handed to Slurm. ERR_CONFLICT: just cancelled. Durable. */
int store_job_hand_to_slurm(struct store *s, int64_t id, int64_t attempt, const char *slurm,
                            struct error *e);

/* slurm: JSON text of its state in Slurm; NULL: not in Slurm. Makes no event. */
int store_job_set_slurm(struct store *s, int64_t id, const char *slurm, struct error *e);

struct store_attempt_end {
    int64_t attempt;
    struct store_state_change change; /* queued: a restart, or it never ran */
    int64_t exit_code, exit_signal;   /* of the launcher, or STORE_NO_EXIT */
    const json_t *failure;            /* NULL: did not fail. Kept if it is the job's first */
    const struct notice_rule *tell;   /* of the failure; NULL: nobody */
    bool restarts;                    /* an automatic restart, from the checkpoint */
    bool goes_on;                     /* back into the queue without counting as a restart */
    bool resumes;
    double joules;         /* by Slurm, used where the workers measured none; NAN: unknown */
    double images_per_sec; /* NAN: unchanged */
    double not_before;
    int64_t *next; /* not NULL: Slurm starts the next attempt, whose number it gets, within this
                      transaction */
};
/* Durable. ERR_CONFLICT: queued again although this attempt is to be cancelled. */
int store_attempt_end(struct store *s, int64_t id, const struct store_attempt_end *end,
                      struct error *e);

/* Back into the queue with other documents. */
struct store_job_again {
    const char *spec, *plan; /* JSON text */
    int64_t priority;
    struct store_job_size size;
    bool resumes;
    bool other_speed;    /* its speed so far no longer applies */
    bool keeps_place;    /* already in the queue */
    int64_t max_queued;  /* as in store_job_new; not for a sweep's jobs */
    const json_t *event; /* fields of the event "resume" */
    const char *reason;
    double now;
    const char *by; /* as in store_state_change */
};
/* Durable. ERR_CONFLICT: neither failed nor cancelled (with keeps_place: not queued). ERR_TOO_MANY:
 * its owner has max_queued queued jobs. */
int store_job_again(struct store *s, int64_t id, const struct store_job_again *again,
                    struct error *e);

/* Why queued jobs wait, and when they start (0: unknown); makes no events. */
struct store_waiting {
    int64_t id;
    const char *reason;
    double estimated_start;
};
int store_jobs_wait(struct store *s, const struct store_waiting *jobs, size_t count,
                    struct error *e);

struct sql;

/* Sums the table attempt_energy for the job. */
int store_job_sum_energy(struct sql *c, int64_t job_id, struct error *e);
