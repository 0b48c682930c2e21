/* A job's attempts: their begin, their end, and what puts a job back into the queue. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_row.h"

/* A launch, in the order that makes a killed daemon safe: store_job_begin_attempt (the next
 * attempt, launcher forgotten) before a process is started, store_job_set_launcher, which makes
 * both durable, before that becomes mpirun. The change is to "starting", or to "queued" of a job
 * that waits in Slurm's queue from now on. above: the newest attempt that the run directory has,
 * which a restored database may not know. ERR_CONFLICT: it was held or cancelled meanwhile. */
int store_job_begin_attempt(struct store *s, int64_t id, const struct store_state_change *change,
                            int64_t above, int64_t *attempt, struct error *e);
int store_job_set_launcher(struct store *s, int64_t id, int64_t pid, int64_t pid_start,
                           struct error *e);

/* Likewise of a job that is handed to Slurm, before that is done: from now on it is in Slurm, as
 * this text says. ERR_CONFLICT: it has just been cancelled. Durable. */
int store_job_hand_to_slurm(struct store *s, int64_t id, int64_t attempt, const char *slurm,
                            struct error *e);

/* What Slurm says of a job: JSON text; NULL: it is not in Slurm. No event is made of it. */
int store_job_set_slurm(struct store *s, int64_t id, const char *slurm, struct error *e);

/* How an attempt ended. */
struct store_attempt_end {
    int64_t attempt;
    struct store_state_change change; /* to an end, or to queued: a restart, or it never ran */
    int64_t exit_code, exit_signal;   /* of the launcher; STORE_NO_EXIT for what is not known */
    const json_t *failure;            /* of a failed attempt, else NULL: kept if it is the job's
                                         first, and a "failed" event unless the workers sent one */
    const struct notice_rule *tell;   /* of the failure, by the rule that fits it; NULL: nobody */
    bool restarts;                    /* counts as an automatic restart, from the checkpoint */
    bool goes_on;                     /* back into the queue too, but counts as nothing */
    bool resumes;
    double joules; /* of its nodes, by Slurm, where the workers measured none; NAN: not known */
    double images_per_sec; /* of all steps so far; NAN: it stays what it is */
    double not_before;     /* of a restart: when its back-off ends */
    int64_t *next;         /* not NULL: Slurm starts the same job again as the next attempt, which
                              begins in the same transaction; gets its number */
};
/* In one transaction, durable. ERR_CONFLICT: it is to be queued again, but somebody has asked to
 * cancel this attempt. */
int store_attempt_end(struct store *s, int64_t id, const struct store_attempt_end *end,
                      struct error *e);

/* Back into the queue, with other documents. */
struct store_job_again {
    const char *spec, *plan; /* JSON text */
    int64_t priority;
    struct store_job_size size;
    bool resumes;
    bool other_speed;    /* what it did a second so far says nothing any more */
    bool keeps_place;    /* it is in the queue already and stays where it is */
    int64_t max_queued;  /* as in store_job_new; a sweep's jobs have no limit */
    const json_t *event; /* fields of a "resume" event: the old and the new numbers */
    const char *reason;
    double now;
    const char *by; /* as in store_state_change */
};
/* In one transaction, durable. ERR_CONFLICT where the job is neither failed nor cancelled (with
 * keeps_place: not queued); ERR_TOO_MANY where whose it is has max_queued jobs in the queue. */
int store_job_again(struct store *s, int64_t id, const struct store_job_again *again,
                    struct error *e);

/* What a queued job waits for, as words and as a time (0: not known). Written for those that still
 * are queued; no events are made of it, as it changes with every minute. */
struct store_waiting {
    int64_t id;
    const char *reason;
    double estimated_start;
};
int store_jobs_wait(struct store *s, const struct store_waiting *jobs, size_t count,
                    struct error *e);

struct sql;

/* The energy of all its attempts anew, by the table attempt_energy. */
int store_job_sum_energy(struct sql *c, int64_t job_id, struct error *e);
