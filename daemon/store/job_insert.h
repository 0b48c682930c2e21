/* Submission: a new job in the queue. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

/* What the queue needs of a plan. Seconds may be NAN. */
struct store_job_size {
    const char *launcher;
    int64_t slots, train_steps, global_batch;
    int64_t evaluations, eval_images;
    int64_t nodes;
    double node_share;
    double time_limit_seconds;
    double predicted_seconds, predicted_low_seconds, predicted_high_seconds;
};

/* Requests with the same key and owner are done once. */
struct store_key {
    const char *key;    /* the Idempotency-Key; NULL: none */
    const char *digest; /* of the body; same key, other digest: ERR_CONFLICT */
    const char *by;     /* whose key; NULL: nobody is named */
};

struct store_job_new {
    const char *name;
    const char *submitted_by; /* NULL: nobody was named */
    const char *const *tags;  /* unique */
    size_t tag_count;
    const char *note;            /* NULL: none */
    const char *spec;            /* JSON text */
    const char *plan;            /* JSON text */
    const char *idempotency_key; /* as in store_key, of submitted_by */
    const char *request_digest;
    int64_t priority;
    struct store_job_size size;
    int64_t max_queued; /* per user, else ERR_TOO_MANY; 0: no limit */
    const char *reason; /* of the state queued */
    double now;
};

/* A trial's job, by sweep, rung and number; clients' keys cannot begin so (request_key). */
#define STORE_TRIAL_KEY "\x01sweep-%lld-%lld-%lld"

/* Inserts a queued job with its first event. A known key: *existed, and *id is the earlier job.
 * With a waiting trial's key that becomes submitted too; ERR_CONFLICT if its sweep has ended.
 * Durable; concurrent submissions share a commit. */
int store_job_insert(struct store *s, const struct store_job_new *job, int64_t *id, bool *existed,
                     struct error *e);

/* *id 0: none. ERR_CONFLICT: the key came with another body. */
int store_job_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e);

/* Makes the next id greater than this one. */
int store_job_ids_above(struct store *s, int64_t id, struct error *e);

struct sql;

/* In the caller's transaction: */
int store_job_set_size(struct sql *c, int64_t id, const struct store_job_size *size,
                       struct error *e);
/* In SQL, a key as stored: prefixed with its owner, except those of trials. */
#define STORE_KEY(key, by)                                                                         \
    "iif(" by " is null or unicode(" key ") = 1, " key ", char(2) || " by " || char(2) || " key ")"
/* query: (key, digest, by) -> (id, same digest). 1: found; 0: not; ERR_CONFLICT: another body.
 * what: "job". */
int store_find_key(struct sql *c, const char *query, const char *what, const struct store_key *key,
                   int64_t *id, struct error *e);
int store_job_to_end_of_queue(struct sql *c, int64_t id, double now, struct error *e);
