/* The outbox: the table notice. Functions with a struct sql work inside the caller's transaction.
 * Thread-safe. */
#pragma once

#include "common/notify/rule.h"
#include "daemon/store/store.h"

enum outbox_state { OUTBOX_WAITING, OUTBOX_DELIVERED, OUTBOX_FAILED, OUTBOX_STATES };
const char *outbox_state_name(size_t state); /* "waiting"; NULL behind the last */

#define OUTBOX_UID_BYTES 33

/* A row. Strings are owned, NULL where there is none. */
struct outbox_notice {
    int64_t id;
    char uid[OUTBOX_UID_BYTES]; /* of Traind-Notice-Id: the same however often it is sent */
    double t;
    enum notice_kind kind;
    char *target;
    enum notice_format format;
    bool by_rule; /* of the administrator's rules */
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
    size_t count, room;
};
void outbox_notice_clear(struct outbox_notice *n);
void outbox_notices_clear(struct outbox_notices *list);

/* Strings are borrowed. key: identifies the fact; a notice of it is written only once. */
struct outbox_new {
    enum notice_kind kind;
    enum notice_format format;
    bool by_rule;
    const char *target, *owner, *node, *key;
    int64_t job_id, sweep_id;
    const json_t *body;
    double t;
};
/* 1: written, 0: it exists; negative: error. *id (may be NULL): of a written one. */
int outbox_add(struct sql *c, const char *database_uuid, const struct outbox_new *n, int64_t *id,
               struct error *e);

/* The oldest waiting notice of each target, if it is due: at most of_owner of each owner, in turn,
 * `most` in all. *next_at: when the next one is due; INFINITY: none. */
int outbox_due(struct store *s, double now, int64_t of_owner, size_t most,
               struct outbox_notices *list, double *next_at, struct error *e);

/* Tests of this owner since t. */
int outbox_tests(struct sql *c, const char *owner, double t, int64_t *count, double *first,
                 struct error *e);

/* at: of the next attempt if it is waiting, else of the end. */
int outbox_attempted(struct store *s, int64_t id, enum outbox_state state, const char *words,
                     double at, struct error *e);

struct outbox_filter {
    int64_t after; /* ids below it; 0: the newest */
    int64_t limit;
    int64_t job_id, sweep_id, id; /* 0: any */
    const char *state;            /* NULL: any */
    bool everything;              /* also of the administrator's rules, of anybody */
    bool of_anybody;              /* of all but the administrator's rules */
    const char *owner;            /* else: of this one, and those without an owner */
};
int outbox_list(struct store *s, const struct outbox_filter *filter, struct outbox_notices *list,
                struct error *e);

int outbox_waiting(struct store *s, int64_t *count, struct error *e);

/* Deletes some that were done before t, except those of jobs that have not ended. */
int outbox_trim(struct store *s, double t, int *deleted, struct error *e);
