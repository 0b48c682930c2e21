/*
 * The daemon's memory: one SQLite database, STATE/traind.db, in WAL mode.
 *
 * One writer connection behind a mutex and a small pool of readers, so every function here may be
 * called from any thread. All of them return 0 or a negative error code and fill *e; none keeps a
 * pointer it was given. Times are Unix seconds and come from the caller (clock_now()), never from
 * SQL.
 *
 * A job's state is what its last "state" event says: every change of state writes that event and
 * the job row in one transaction, and is refused where common/job/job_state.h knows no such step.
 *
 * Durability: what a client was told (a submission, a change of state) is on disk when the function
 * returns (synchronous=FULL). Ingested events are committed with synchronous=NORMAL: after a power
 * cut the database may fall back to an older commit, and with it the position in events.jsonl, from
 * which the daemon then reads on, so nothing is lost or doubled.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_state.h"
#include "common/run/attempt.h"

struct store;
struct sql; /* a connection, used by one thread at a time */
struct store_node_check;
struct notice_rule;

/* Which database this is: a restored backup is the one that it is a copy of. */
struct store_identity {
    char uuid[33];
    int64_t unmarked; /* jobs up to this id are older than owner.json (daemon/job/run_dir.h) */
};

#define STORE_LISTENERS 4 /* of store_on_commit */

/* A change of a job's state, with its words. */
struct store_state_change {
    enum job_state to;
    const char *reason; /* NULL: none */
    double now;
    const char *by; /* who asked for it; NULL: the daemon itself, or somebody who was not named */
};

/* What somebody may want to be told of, as it is stored. */
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
    const struct notice_rule *tell; /* besides those who want to know; NULL: nobody */
    double t;
};

/* Called inside the transaction that stores the fact, with its connection: what it writes is
 * committed with it, and an error of it undoes both. */
typedef int store_witness(struct sql *c, const struct store_fact *fact, void *context,
                          struct error *e);
/* undone(context): what the witness has written in this transaction was rolled back. */
typedef void store_undone(void *context);
