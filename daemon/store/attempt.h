/* Job attempts: their start, their end, and requeueing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/job_change.h"
#include "daemon/store/job_insert.h"
#include "daemon/store/job_row.h"

/* A launch calls store_job_begin_attempt before starting any process, and store_job_set_launcher,
 * which makes both durable, before that process executes mpirun, so that a daemon killed in between
 * can be recovered. change: to "starting", or "queued" in Slurm. above: the newest attempt in the
 * run directory, which a restored database may not know. ERR_CONFLICT: the job was held or
 * cancelled meanwhile. */
int store_job_begin_attempt(struct store *s, int64_t id, const struct store_state_change *change,
                            int64_t above, int64_t *attempt, struct error *e);
int store_job_set_launcher(struct store *s, int64_t id, int64_t pid, int64_t pid_start,
                           struct error *e);

/* Called before a job is submitted to Slurm. Durable. ERR_CONFLICT: it has just been cancelled. */
int store_job_hand_to_slurm(struct store *s, int64_t id, int64_t attempt, const char *slurm,
                            struct error *e);

/* Stores the job's state in Slurm (JSON text; NULL: not in Slurm). Writes no event. */
int store_job_set_slurm(struct store *s, int64_t id, const char *slurm, struct error *e);

struct store_attempt_end {
    int64_t attempt;
    struct store_state_change change; /* to queued: a restart, or the attempt never ran */
    int64_t exit_code, exit_signal;   /* of the launcher, or STORE_NO_EXIT */
    const json_t *failure; /* NULL: did not fail. Stored only if it is the job's first failure */
    const struct notice_rule *tell; /* whom to notify of the failure; NULL: nobody */
    bool restarts;                  /* the job is restarted automatically from its checkpoint */
    bool goes_on;                   /* requeued without counting as a restart */
    bool resumes;
    double joules;         /* measured by Slurm, used if the workers measured none; NAN: unknown */
    double images_per_sec; /* NAN: unchanged */
    double not_before;
    int64_t *next; /* if not NULL, set to the number of the attempt that Slurm starts next */
};
/* Durable. ERR_CONFLICT: would be requeued although its cancellation was requested. */
int store_attempt_end(struct store *s, int64_t id, const struct store_attempt_end *end,
                      struct error *e);

/* A job to be requeued with other documents. */
struct store_job_again {
    const char *spec, *plan; /* JSON text */
    const char *wanted;      /* as in job_fields.h */
    int64_t priority;
    struct store_job_size size;
    bool resumes;
    bool other_speed;    /* discard the speed measured so far */
    bool keeps_place;    /* the job is already queued */
    int64_t max_queued;  /* as in store_job_new; ignored for a sweep's jobs */
    const json_t *event; /* fields of the event "resume" */
    const char *reason;
    double now;
    const char *by; /* as in store_state_change */
};
/* Durable. ERR_CONFLICT: neither failed nor cancelled (with keeps_place: not queued). ERR_TOO_MANY:
 * its owner already has max_queued queued jobs. */
int store_job_again(struct store *s, int64_t id, const struct store_job_again *again,
                    struct error *e);

/* Why queued jobs wait and when they are expected to start (0: unknown). Writes no events. */
struct store_waiting {
    int64_t id;
    const char *reason;
    double estimated_start;
};
int store_jobs_wait(struct store *s, const struct store_waiting *jobs, size_t count,
                    struct error *e);

struct sql;

/* Updates the job's energy from the table attempt_energy. */
int store_job_sum_energy(struct sql *c, int64_t job_id, struct error *e);
