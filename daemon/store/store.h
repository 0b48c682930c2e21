/* The store: one SQLite database, STATE/traind.db, in WAL mode, with one writer connection and a
 * pool of readers. Functions are thread-safe, return 0 or a negative error code and fill *e. Times
 * are Unix seconds passed by the caller, never from SQL.
 *
 * Each change of a job's state writes the row and a "state" event in one transaction.
 *
 * Whatever is acknowledged to a client is on disk when the function returns (synchronous=FULL).
 * Ingested events are committed with synchronous=NORMAL: after a power failure the database may
 * fall back to an older commit, together with its position in events.jsonl, from which the daemon
 * continues to read. */
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
    int64_t unmarked; /* jobs up to this id predate owner.json (daemon/job/run_dir.h) */
};

#define STORE_LISTENERS 4 /* max. callbacks of store_on_commit */

struct store_state_change {
    enum job_state to;
    const char *reason; /* NULL: none */
    double now;
    const char *by; /* NULL: the daemon, or an unnamed user */
};

/* Facts that notices can be sent about. */
struct store_fact {
    enum {
        STORE_FACT_END,     /* a job has ended: id, change */
        STORE_FACT_FAILURE, /* an attempt has failed: id, attempt, body (failure_to_json), tell */
        STORE_FACT_EVENT,   /* a job's eval, straggler or warning: id, attempt, type, body */
        STORE_FACT_SWEEP,   /* a sweep has ended: id, state */
        STORE_FACT_NODE,    /* a node has become drained: check */
    } what;
    int64_t id, attempt;
    const struct store_state_change *change;
    enum event_type type;
    const json_t *body;
    const char *state;
    const struct store_node_check *check;
    const struct notice_rule *tell; /* an additional recipient; NULL: none */
    double t;
};

/* Called in the transaction that stores the fact; an error rolls it back. */
typedef int store_fact_hook(struct sql *c, const struct store_fact *fact, void *context,
                            struct error *e);
/* Called when that transaction is rolled back. */
typedef void store_rollback_hook(void *context);
