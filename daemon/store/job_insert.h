/* Submission: inserts new jobs into the queue. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

/* Sizes that the queue needs from a plan. Seconds may be NAN. */
struct store_job_size {
    const char *launcher;
    int64_t slots, train_steps, global_batch;
    int64_t evaluations, eval_images;
    int64_t nodes;
    double node_share;
    double time_limit_seconds;
    double predicted_seconds, predicted_low_seconds, predicted_high_seconds;
};

/* Requests with the same key and owner take effect once. */
struct store_key {
    const char *key;    /* the Idempotency-Key; NULL: none */
    const char *digest; /* of the body; the same key with another digest is an ERR_CONFLICT */
    const char *by;     /* owner of the key; NULL: unnamed */
};

struct store_job_new {
    const char *name;
    const char *submitted_by; /* NULL: unnamed */
    const char *const *tags;  /* unique */
    size_t tag_count;
    const char *note;            /* NULL: none */
    const char *spec;            /* JSON text */
    const char *plan;            /* JSON text */
    const char *idempotency_key; /* as in store_key, with submitted_by as owner */
    const char *request_digest;
    int64_t priority;
    struct store_job_size size;
    int64_t max_queued; /* per user, otherwise ERR_TOO_MANY; 0: no limit */
    const char *reason; /* reason shown while queued */
    double now;
};

/* Key of a trial's job: sweep, rung and number. Keys of clients cannot begin with \x01
 * (request_key). */
#define STORE_TRIAL_KEY "\x01sweep-%lld-%lld-%lld"

/* Inserts a queued job and its first event. If the key is known, sets *existed, and *id to the
 * earlier job. If the key is that of a waiting trial, marks the trial as submitted; ERR_CONFLICT if
 * its sweep has ended. Durable; concurrent submissions share a commit. */
int store_job_insert(struct store *s, const struct store_job_new *job, int64_t *id, bool *existed,
                     struct error *e);

/* Finds the job with this key; *id is 0 if there is none. ERR_CONFLICT: the key was used with
 * another body. */
int store_job_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e);

/* Raises the next job id above this one. */
int store_job_ids_above(struct store *s, int64_t id, struct error *e);

struct sql;

/* The functions below run in the caller's transaction. */
int store_job_set_size(struct sql *c, int64_t id, const struct store_job_size *size,
                       struct error *e);
/* SQL expression for a key as stored: prefixed with its owner, except for trials' keys. */
#define STORE_KEY(key, by)                                                                         \
    "iif(" by " is null or unicode(" key ") = 1, " key ", char(2) || " by " || char(2) || " key ")"
/* query maps (key, digest, by) to (id, same digest). Returns 1 if found, 0 if not. ERR_CONFLICT:
 * used with another body. what: "job" or "sweep", for the error. */
int store_find_key(struct sql *c, const char *query, const char *what, const struct store_key *key,
                   int64_t *id, struct error *e);
