/* The store: one SQLite database, STATE/traind.db, in WAL mode, with one writer connection and a
 * pool of readers. Functions may be called from any thread, return 0 or a negative error code and
 * fill *e. Times are Unix seconds from the caller, never from SQL.
 *
 * Each change of a job's state writes a "state" event and the row in one transaction.
 *
 * What a client was told is on disk when the function returns (synchronous=FULL). Ingested events
 * are committed with synchronous=NORMAL: after a power cut the database may fall back to an older
 * commit with its position in events.jsonl, from which the daemon reads on. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_state.h"
#include "common/run/attempt.h"

struct store;
struct sql;
struct store_node_check;
struct notice_rule;

/* A restored backup has the identity of its original. */
struct store_identity {
    char uuid[33];
    int64_t unmarked; /* jobs up to this id are older than owner.json (daemon/job/run_dir.h) */
};

#define STORE_LISTENERS 4 /* of store_on_commit */

struct store_state_change {
    enum job_state to;
    const char *reason; /* NULL: none */
    double now;
    const char *by; /* NULL: the daemon, or nobody was named */
};

/* What notices may be sent about. */
struct store_fact {
    enum {
        STORE_FACT_END,     /* a job has ended: id, change */
        STORE_FACT_FAILURE, /* of an attempt: id, attempt, body (as failure_to_json), tell */
        STORE_FACT_EVENT,   /* an eval, straggler or warning of a job: id, attempt, type, body */
        STORE_FACT_SWEEP,   /* a sweep has ended: id, state */
        STORE_FACT_NODE,    /* a node is drained that was not: check */
    } what;
    int64_t id, attempt;
    const struct store_state_change *change;
    enum event_type type;
    const json_t *body;
    const char *state;
    const struct store_node_check *check;
    const struct notice_rule *tell; /* NULL: nobody else */
    double t;
};

/* Called inside the transaction that stores the fact; an error undoes both. */
typedef int store_fact_hook(struct sql *c, const struct store_fact *fact, void *context,
                            struct error *e);
/* The transaction was rolled back. */
typedef void store_rollback_hook(void *context);
