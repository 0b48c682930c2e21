/* The audit log: who asked for what, kept when its subject is gone. */
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
const char *store_audit_action(size_t i); /* "job.submit"...; NULL behind the last */

/* What is written. */
struct store_audit {
    enum store_audit_kind action;
    int64_t target;     /* id of the job, sweep, token or notice; 0: none */
    const char *by;     /* "user:NAME", "token:NAME"; NULL: nobody was named */
    const char *detail; /* NULL: none */
    double t;
};
/* In the caller's transaction. */
int store_audit_write(struct sql *c, const struct store_audit *a, struct error *e);

/* In its own, durable, for what is already done; a failure is logged. */
void store_audit_add(struct store *s, const struct store_audit *a);

/* Deletes those of the oldest `limit` lines that are before t. Not durable. */
int store_audit_trim(struct store *s, double t, int64_t limit, int *deleted, struct error *e);

/* The newest first; texts are owned or NULL. */
struct store_audit_line {
    int64_t id, target;
    double t;
    char *by, *action, *detail;
};
struct store_audit_lines {
    struct store_audit_line *items;
    size_t count, room;
};
struct store_audit_filter {
    int64_t after;      /* ids below it; 0: the newest */
    int64_t limit;      /* above 0 */
    const char *by;     /* as written, or the bare name; NULL: anybody */
    const char *action; /* NULL: any */
    int64_t target;     /* 0: any */
};
int store_audit_list(struct store *s, const struct store_audit_filter *filter,
                     struct store_audit_lines *lines, struct error *e);
void store_audit_lines_clear(struct store_audit_lines *lines);
