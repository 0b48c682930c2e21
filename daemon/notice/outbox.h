/* The outbox: the table notice. Functions that take a struct sql run in the caller's transaction.
 * Thread-safe. */
#pragma once

#include "common/notify/rule.h"
#include "daemon/store/store.h"

enum outbox_state { OUTBOX_WAITING, OUTBOX_DELIVERED, OUTBOX_FAILED, OUTBOX_STATES };
const char *outbox_state_name(size_t state); /* "waiting"; NULL past the last */

#define OUTBOX_UID_BYTES 33

/* A row. Strings are owned and may be NULL. */
struct outbox_notice {
    int64_t id;
    char uid[OUTBOX_UID_BYTES]; /* Traind-Notice-Id, the same for all attempts */
    double t;
    enum notice_kind kind;
    char *target;
    enum notice_format format;
    bool by_rule; /* raised by the administrator's rules */
    char *owner;
    int64_t job_id, sweep_id; /* 0: none */
    char *node;
    char *body; /* JSON text */
    enum outbox_state state;
    int64_t attempts;
    double next_at, done_at; /* done_at: 0: not yet */
    char *error;
};
struct outbox_notices {
    struct outbox_notice *items;
    size_t count, capacity;
};
void outbox_notice_clear(struct outbox_notice *n);
void outbox_notices_clear(struct outbox_notices *list);

/* A notice to add; borrows its strings. key identifies the fact, which gets only one notice. */
struct outbox_new {
    enum notice_kind kind;
    enum notice_format format;
    bool by_rule;
    const char *target, *owner, *node, *key;
    int64_t job_id, sweep_id;
    const json_t *body;
    double t;
};
/* Returns 1 if written, 0 if it exists already, or negative. *id (may be NULL): of the written
 * one. */
int outbox_add(struct sql *c, const char *database_uuid, const struct outbox_new *n, int64_t *id,
               struct error *e);

/* Lists the oldest waiting notice of each target if it is due: at most of_owner per owner, taking
 * turns, and `max` in total. *next_at: when the next one is due; INFINITY: none. */
int outbox_due(struct store *s, double now, int64_t of_owner, size_t max,
               struct outbox_notices *list, double *next_at, struct error *e);

/* Counts the tests of this owner since t. */
int outbox_tests(struct sql *c, const char *owner, double t, int64_t *count, double *first,
                 struct error *e);

/* at: time of the next attempt if still waiting, otherwise of the end. */
int outbox_attempted(struct store *s, int64_t id, enum outbox_state state, const char *words,
                     double at, struct error *e);

struct outbox_filter {
    int64_t after; /* only ids below this; 0: from the newest */
    int64_t limit;
    int64_t job_id, sweep_id, id; /* 0: any */
    const char *state;            /* NULL: any */
    bool everything;              /* include those of the administrator's rules, of anyone */
    bool of_anybody;              /* those of anyone except the administrator's rules */
    const char *owner;            /* otherwise: those of this owner and those without one */
};
int outbox_list(struct store *s, const struct outbox_filter *filter, struct outbox_notices *list,
                struct error *e);

int outbox_waiting(struct store *s, int64_t *count, struct error *e);

/* Deletes some that were done before t, except for jobs that have not ended. */
int outbox_trim(struct store *s, double t, int *deleted, struct error *e);
