/* Reads rows of the table job. */
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

/* A row with the fields of job_fields.h; owns its strings. spec and plan are NULL in lists without
 * documents. */
struct store_job {
    JOB_FIELDS(STORE_MEMBER)
    JOB_DOCUMENTS(STORE_MEMBER)
    struct store_documents *parsed; /* shared with copies of the row */
};
void store_job_clear(struct store_job *job); /* NULL-safe */

/* Returns the parsed document, parsed on the first call (not thread-safe) and owned by the row;
 * NULL if the row has no documents. */
const json_t *store_job_spec(const struct store_job *job);
const json_t *store_job_plan(const struct store_job *job);
/* Returns the job's validated document, owned by the row. NULL with ERR_INVALID: not valid in this
 * version. The row must have documents. */
const struct job_spec *store_job_document(const struct store_job *job, struct error *e);
/* Does the same, but the caller owns the result. */
struct job_spec *store_job_take_document(const struct store_job *job, struct error *e);

/* Returns whether cancellation of its newest attempt was requested. */
bool store_job_cancel_asked(const struct store_job *job);

struct store_jobs {
    struct store_job *items;
    size_t count, capacity;
};
void store_jobs_clear(struct store_jobs *jobs);

/* ERR_NOT_FOUND. */
int store_job_get(struct store *s, int64_t id, struct store_job *job, struct error *e);

/* Called for each job in ascending order of id. */
typedef void store_job_id_visit(void *context, int64_t id, bool launched);
int store_job_each_id(struct store *s, store_job_id_visit *visit, void *context, struct error *e);

enum store_order {
    STORE_NEWEST_FIRST, /* `after`: only ids below it */
    STORE_QUEUE_ORDER, /* by queued_at - priority x priority_seconds, then id; neither held jobs nor
                          `after` */
};
enum store_launcher {
    STORE_ANY_LAUNCHER,
    STORE_LOCAL,
    STORE_SLURM, /* not yet submitted to Slurm */
    STORE_IN_SLURM,
};
/* Best or newest first; jobs without the value come last. */
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

#define STORE_TAGS_BYTES 1024 /* including the NUL */

struct store_job_filter {
    unsigned states; /* bit set of 1u << enum job_state; 0: all */
    int64_t after;   /* an id; 0: from the start */
    int64_t limit;   /* 0: unlimited */
    enum store_order order;
    double priority_seconds;      /* waiting time per point of priority */
    enum store_launcher launcher; /* STORE_QUEUE_ORDER only */
    bool documents;               /* include spec and plan */
    /* The filters below apply to store_job_search only. NULL or 0: any. */
    const char *text; /* searched in id, name, tags, note, reason, submitted_by, network and data */
    const char *user; /* "user:eve", "token:eve", or "eve" for both */
    const char *name; /* substring */
    int64_t sweep;    /* only jobs of this sweep */
    const char *label; /* of its failure */
    int64_t finished_after;
    const char *tags;        /* comma-separated; all must be present */
    const char *key, *value; /* e.g. "$.optimizer.name", and its value as JSON text */
    enum store_sort sort;
    const char *after_key; /* sort key of the job `after`; NULL: it has none */
};
int store_job_list(struct store *s, const struct store_job_filter *filter, struct store_jobs *jobs,
                   struct error *e);

/* Gets the existing jobs among ids, in this order. */
int store_job_list_ids(struct store *s, const int64_t *ids, size_t count, struct store_jobs *jobs,
                       struct error *e);

/* Lists the jobs whose document reproduces this job. */
int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t max, size_t *count,
                            struct error *e);

/* Gets who last requested a change of this attempt, or NULL. The caller frees *by. */
int store_job_asked_by(struct store *s, int64_t id, int64_t attempt, char **by, struct error *e);

/* states: as in store_job_filter. */
int store_job_count(struct store *s, unsigned states, int64_t *count, struct error *e);

int store_disk_bytes(struct store *s, int64_t *bytes, struct error *e); /* total for all jobs */
/* Finds the first ended job with a higher id and unknown disk_bytes; 0: none. */
int store_job_unmeasured(struct store *s, int64_t above, int64_t *id, struct error *e);
