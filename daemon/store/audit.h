/* The audit log: who requested what. Lines remain after their subject is removed. */
#pragma once

#include "daemon/store/store.h"

struct sql;

enum store_audit_kind {
    STORE_AUDIT_JOB_SUBMIT,
    STORE_AUDIT_JOB_CANCEL,
    STORE_AUDIT_JOB_HOLD,
    STORE_AUDIT_JOB_RELEASE,
    STORE_AUDIT_JOB_PRIORITY,
    STORE_AUDIT_JOB_LABEL,
    STORE_AUDIT_JOB_RESUME,
    STORE_AUDIT_JOB_REMOVE,
    STORE_AUDIT_JOB_IMPORT,
    STORE_AUDIT_SWEEP_SUBMIT,
    STORE_AUDIT_SWEEP_CANCEL,
    STORE_AUDIT_TOKEN_CREATE,
    STORE_AUDIT_TOKEN_REVOKE,
    STORE_AUDIT_BACKUP,
    STORE_AUDIT_NOTICE_TEST,
    STORE_AUDIT_SPEED_ADD,
    STORE_AUDIT_COUNT
};
const char *store_audit_action(size_t i); /* "job.submit"...; NULL past the end */

/* A line to write. */
struct store_audit {
    enum store_audit_kind action;
    int64_t target;     /* id of the job, sweep, token or notice; 0: none */
    const char *by;     /* "user:NAME" or "token:NAME"; NULL: unnamed */
    const char *detail; /* NULL: none */
    double t;
};
/* Runs in the caller's transaction. */
int store_audit_write(struct sql *c, const struct store_audit *a, struct error *e);

/* Writes in its own durable transaction, for actions already done. Failures are logged. */
void store_audit_add(struct store *s, const struct store_audit *a);

/* Deletes those of the `limit` oldest lines that are older than t. Not durable. */
int store_audit_trim(struct store *s, double t, int64_t limit, int *deleted, struct error *e);

/* Lines, newest first; strings are owned or NULL. */
struct store_audit_line {
    int64_t id, target;
    double t;
    char *by, *action, *detail;
};
struct store_audit_lines {
    struct store_audit_line *items;
    size_t count, capacity;
};
struct store_audit_filter {
    int64_t after;      /* only ids below this; 0: from the newest */
    int64_t limit;      /* above 0 */
    const char *by;     /* as stored, or the bare name; NULL: anyone */
    const char *action; /* NULL: any */
    int64_t target;     /* 0: any */
};
int store_audit_list(struct store *s, const struct store_audit_filter *filter,
                     struct store_audit_lines *lines, struct error *e);
void store_audit_lines_clear(struct store_audit_lines *lines);
