/* Submission: a new job in the queue. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/store.h"

/* What the queue must know of a plan. Seconds are NAN where there are none. */
struct store_job_size {
    const char *launcher;
    int64_t slots, train_steps, global_batch;
    int64_t evaluations, eval_images;
    int64_t nodes;
    double node_share;
    double time_limit_seconds;
    double predicted_seconds, predicted_low_seconds, predicted_high_seconds;
};

/* What comes again with the same key, from the same user, is made once. */
struct store_key {
    const char *key;    /* the Idempotency-Key; NULL: none */
    const char *digest; /* of the body as sent: same key, other digest: ERR_CONFLICT */
    const char *by;     /* whose key; NULL: nobody is named */
};

/* What a submission brings. */
struct store_job_new {
    const char *name;
    const char *submitted_by; /* NULL: nobody was named */
    const char *const *tags;  /* without repetition */
    size_t tag_count;
    const char *note;            /* NULL: none */
    const char *spec;            /* JSON text of job_spec_to_json */
    const char *plan;            /* JSON text of plan_to_json */
    const char *idempotency_key; /* as in store_key, of submitted_by */
    const char *request_digest;
    int64_t priority;
    struct store_job_size size;
    int64_t max_queued; /* jobs of one user; ERR_TOO_MANY for one more; 0: no limit */
    const char *reason; /* of the state queued */
    double now;
};

/* The idempotency key of a trial's job, of sweep, rung and number. A client's key cannot begin so
 * (request_key). */
#define STORE_TRIAL_KEY "\x01sweep-%lld-%lld-%lld"

/* Inserts a queued job with its first state event. With an idempotency key seen before: nothing is
 * inserted, *id is the earlier job's and *existed is true. With the key of a trial that waits, the
 * trial becomes submitted, with the job's id, at the same time; ERR_CONFLICT if its sweep has
 * ended. Durable; what several threads submit at a time shares one commit. */
int store_job_insert(struct store *s, const struct store_job_new *job, int64_t *id, bool *existed,
                     struct error *e);

/* The job that came with this key before, so that a repeated submission is answered without looking
 * at its data again: *id is 0 if there is none. ERR_CONFLICT: it came from another body. */
int store_job_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e);

/* The next job's id lies above this one. */
int store_job_ids_above(struct store *s, int64_t id, struct error *e);

struct sql;

/* In the transaction of the caller: */
int store_job_set_size(struct sql *c, int64_t id, const struct store_job_size *size,
                       struct error *e);
/* In SQL, the Idempotency-Key as it is stored, of one that came from `by`: each user's keys are
 * their own (0028_keys_of_users.sql). A trial's stays what it is. */
#define STORE_KEY(key, by)                                                                         \
    "iif(" by " is null or unicode(" key ") = 1, " key ", char(2) || " by " || char(2) || " key ")"
/* What came with this Idempotency-Key before, from the rows of query (key, digest, by -> id, is it
 * the same body?), a literal. 1: it is there and came from the same body; 0: it is not (or key is
 * NULL); ERR_CONFLICT: from another one. what: "job". */
int store_find_key(struct sql *c, const char *query, const char *what, const struct store_key *key,
                   int64_t *id, struct error *e);
int store_job_to_end_of_queue(struct sql *c, int64_t id, double now, struct error *e);
