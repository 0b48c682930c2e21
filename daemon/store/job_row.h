/* The rows of the table job, as they are read. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "daemon/store/store.h"

#define STORE_NO_EXIT JOB_FIELD_NULL

#define STORE_MEMBER_TEXT(name)        char *name;
#define STORE_MEMBER_INT(name)         int64_t name;
#define STORE_MEMBER_INT_OR_NULL(name) int64_t name;
#define STORE_MEMBER_BOOL(name)        bool name;
#define STORE_MEMBER_REAL(name)        double name;
#define STORE_MEMBER_TIME(name)        double name;
#define STORE_MEMBER_STATE(name)       enum job_state name;
#define STORE_MEMBER_NONE(name)
#define STORE_MEMBER(name, storage, column, form, notice) STORE_MEMBER_##storage(name)

/* A row with the fields of job_fields.h; owns its texts. spec and plan are NULL in lists without
 * documents. */
struct store_job {
    JOB_FIELDS(STORE_MEMBER)
    JOB_DOCUMENTS(STORE_MEMBER)
    struct store_documents *parsed; /* shared with copies of the row */
};
void store_job_clear(struct store_job *job); /* NULL is fine */

/* Parsed at the first call (by one thread at a time), owned by the row; NULL without documents. */
const json_t *store_job_spec(const struct store_job *job);
const json_t *store_job_plan(const struct store_job *job);
/* Of a row with documents. NULL with ERR_INVALID: not valid in this version. */
const struct job_spec *store_job_document(const struct store_job *job, struct error *e);
/* Freed by the caller. */
struct job_spec *store_job_take_document(const struct store_job *job, struct error *e);

/* Its newest attempt is to be cancelled. */
bool store_job_cancel_asked(const struct store_job *job);

struct store_jobs {
    struct store_job *items;
    size_t count, room;
};
void store_jobs_clear(struct store_jobs *jobs);

/* ERR_NOT_FOUND */
int store_job_get(struct store *s, int64_t id, struct store_job *job, struct error *e);

/* In ascending order. */
typedef void store_job_id_visit(void *context, int64_t id, bool launched);
int store_job_each_id(struct store *s, store_job_id_visit *visit, void *context, struct error *e);

enum store_order {
    STORE_NEWEST_FIRST, /* after = ids below it */
    STORE_QUEUE_ORDER, /* by queued_at - priority x priority_seconds, then id; without held jobs and
                          after */
};
enum store_launcher {
    STORE_ANY_LAUNCHER,
    STORE_LOCAL,
    STORE_SLURM, /* not handed over yet */
    STORE_IN_SLURM,
};
/* Best or newest first; jobs without the value last. */
enum store_sort {
    STORE_SORT_NEWEST,
    STORE_SORT_NAME,
    STORE_SORT_PRIORITY,
    STORE_SORT_TOP1,
    STORE_SORT_LOSS,
    STORE_SORT_SPEED,
    STORE_SORT_TIME,
    STORE_SORT_FINISHED,
    STORE_SORT_BEST_TOP1,
    STORE_SORT_DISK
};

#define STORE_TAGS_BYTES 1024 /* with the NUL */

struct store_job_filter {
    unsigned states; /* bits 1u << enum job_state; 0: all */
    int64_t after;   /* an id; 0: from the start */
    int64_t limit;   /* 0: no limit */
    enum store_order order;
    double priority_seconds;      /* of waiting per point of priority */
    enum store_launcher launcher; /* queued jobs in STORE_QUEUE_ORDER */
    bool documents;               /* with spec and plan */
    /* Of store_job_search alone; NULL or 0: any. */
    const char *text;  /* in the id, name, tags, note, reason, submitted_by, network or data */
    const char *user;  /* "user:eve", "token:eve", or "eve" for both */
    const char *name;  /* a part of it */
    int64_t sweep;     /* whose jobs */
    const char *label; /* of a failure */
    int64_t finished_after;
    const char *tags;        /* separated by commas; all of them */
    const char *key, *value; /* "$.optimizer.name", and its value as JSON text */
    enum store_sort sort;
    const char *after_key; /* sort key of `after`; NULL: it had none */
};
int store_job_list(struct store *s, const struct store_job_filter *filter, struct store_jobs *jobs,
                   struct error *e);

/* Those that exist, in this order. */
int store_job_list_ids(struct store *s, const int64_t *ids, size_t count, struct store_jobs *jobs,
                       struct error *e);

/* Jobs whose document reproduces this one. */
int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t most, size_t *count,
                            struct error *e);

/* Who last asked for a change of this attempt: a new text, or NULL. */
int store_job_asked_by(struct store *s, int64_t id, int64_t attempt, char **by, struct error *e);

/* states: as in the filter. */
int store_job_count(struct store *s, unsigned states, int64_t *count, struct error *e);

int store_disk_bytes(struct store *s, int64_t *bytes, struct error *e); /* of all jobs */
/* The first ended job above this id without disk_bytes; 0: none. */
int store_job_unmeasured(struct store *s, int64_t above, int64_t *id, struct error *e);
