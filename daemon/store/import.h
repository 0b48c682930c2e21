/* A job of another database, stored as one that has ended. */
#ifndef TRAIND_DAEMON_STORE_IMPORT_H
#define TRAIND_DAEMON_STORE_IMPORT_H

#include "daemon/store/store.h"

/* One event of it; body is the type's own fields, and lives until the next call. */
struct store_import_event {
    int64_t attempt;
    double t;
    const char *type;
    const json_t *body;
};

struct store_import {
    const char *name, *reason; /* NULL: none */
    const char *by;            /* who imports it, and owns it here; NULL: nobody was named */
    const char *spec, *plan;   /* JSON text */
    const char *const *tags;   /* of the document, as is the note */
    size_t tag_count;
    const char *note;     /* NULL: none */
    const char *from;     /* JSON text: schema/api/archive.json, "ImportedFrom" */
    const char *digest;   /* of all that the archive holds: the same is stored once */
    enum job_state state; /* an end */
    int64_t attempt;      /* the newest */
    double created_at, started_at, finished_at; /* 0: none */
    int64_t exit_code, exit_signal;             /* STORE_NO_EXIT: none */
    struct store_job_size size;                 /* without slots: it takes none */
    double now;
    void *context; /* of the two below */
    /* The next event, oldest first: 1; 0: there are no more; or an error. */
    int (*next)(void *context, struct store_import_event *event, struct error *e);
    /* Puts the run directory into its place, behind all else and before the commit. */
    int (*place)(void *context, const struct store_job *job, struct error *e);
};

/* In one transaction, durable. An archive that was imported before: nothing is done, *existed is
 * true, and *id is that job's. ERR_INVALID: the events do not end as the job does. */
int store_job_import(struct store *s, const struct store_import *job, int64_t *id, bool *existed,
                     struct error *e);

#endif
