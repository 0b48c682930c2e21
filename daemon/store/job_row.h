/* The rows of the table job, as they are read. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_fields.h"
#include "common/job/job_spec.h"
#include "common/job/job_state.h"
#include "daemon/store/store.h"

#define STORE_NO_EXIT JOB_FIELD_NULL /* exit_code, exit_signal: none known */

#define STORE_MEMBER_TEXT(name)        char *name;
#define STORE_MEMBER_INT(name)         int64_t name;
#define STORE_MEMBER_INT_OR_NULL(name) int64_t name;
#define STORE_MEMBER_BOOL(name)        bool name;
#define STORE_MEMBER_REAL(name)        double name;
#define STORE_MEMBER_TIME(name)        double name;
#define STORE_MEMBER_STATE(name)       enum job_state name;
#define STORE_MEMBER_NONE(name)
#define STORE_MEMBER(name, storage, column, form, notice) STORE_MEMBER_##storage(name)

/* One row of the table job, with the members of job_fields.h. Owns its texts. spec and plan are
 * NULL where a list was asked without documents. */
struct store_job {
    JOB_FIELDS(STORE_MEMBER)
    JOB_DOCUMENTS(STORE_MEMBER)
    struct store_documents *parsed; /* of spec and plan; shared with copies of the row */
};
void store_job_clear(struct store_job *job); /* frees the strings and zeroes it; NULL is fine */

/* The documents, parsed when they are first asked for, by one thread at a time; owned by the row.
 * NULL in a row without documents. */
const json_t *store_job_spec(const struct store_job *job);
const json_t *store_job_plan(const struct store_job *job);
/* Of a row with documents. ERR_INVALID: another version took this job, whose document is not valid
 * in this one; NULL. */
const struct job_spec *store_job_document(const struct store_job *job, struct error *e);
/* The same; the caller frees it (job_spec_destroy). */
struct job_spec *store_job_take_document(const struct store_job *job, struct error *e);

/* Its newest attempt was asked to be cancelled: it ends soon, or has. */
bool store_job_cancel_asked(const struct store_job *job);

struct store_jobs {
    struct store_job *items;
    size_t count, room;
};
void store_jobs_clear(struct store_jobs *jobs);

/* ERR_NOT_FOUND: "there is no job 7". Clear with store_job_clear. */
int store_job_get(struct store *s, int64_t id, struct store_job *job, struct error *e);

/* Every job's id, rising, and whether it was launched once. */
typedef void store_job_id_visit(void *context, int64_t id, bool launched);
int store_job_each_id(struct store *s, store_job_id_visit *visit, void *context, struct error *e);

enum store_order {
    STORE_NEWEST_FIRST, /* id falling: listings; after = ids below it */
    STORE_QUEUE_ORDER, /* the queue: by queued_at - priority x priority_seconds, then by id, without
                          those that are held; after is not used */
};
enum store_launcher {
    STORE_ANY_LAUNCHER,
    STORE_LOCAL,
    STORE_SLURM,    /* those that have not been handed to Slurm */
    STORE_IN_SLURM, /* those that have */
};
/* What a list is sorted by, the best or newest first; jobs without the value stand last. */
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

#define STORE_TAGS_BYTES 1024 /* of a filter's tags, with the NUL */

struct store_job_filter {
    unsigned states; /* bits 1u << enum job_state; 0: all */
    int64_t after;   /* a job's id: what stands behind it; 0: from the start */
    int64_t limit;   /* 0: no limit */
    enum store_order order;
    double priority_seconds;      /* of waiting, that a point of priority counts as much as */
    enum store_launcher launcher; /* of STORE_QUEUE_ORDER and queued jobs alone */
    bool documents;               /* load spec and plan too */
    /* Of store_job_search alone; NULL or 0: any. */
    const char *text;  /* in the id, name, tags, note, reason, submitted_by, network or data */
    const char *user;  /* "user:eve", "token:eve", or "eve" for both */
    const char *name;  /* a part of it */
    int64_t sweep;     /* whose jobs */
    const char *label; /* of a failure */
    int64_t finished_after;
    const char *tags;        /* with commas between them: the jobs that have all of these */
    const char *key, *value; /* "$.optimizer.name" of the document, and JSON text: that it is */
    enum store_sort sort;
    const char *after_key; /* what the job `after` was sorted by; NULL: it had nothing */
};
int store_job_list(struct store *s, const struct store_job_filter *filter, struct store_jobs *jobs,
                   struct error *e);

/* Those of the ids that are there, in this order. */
int store_job_list_ids(struct store *s, const int64_t *ids, size_t count, struct store_jobs *jobs,
                       struct error *e);

/* At most `most` ids of the jobs whose document says that they reproduce this one. */
int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t most, size_t *count,
                            struct error *e);

/* Who asked last for a change of this attempt: a new text, NULL where nobody was named. */
int store_job_asked_by(struct store *s, int64_t id, int64_t attempt, char **by, struct error *e);

/* How many jobs are in these states (bits as in the filter). */
int store_job_count(struct store *s, unsigned states, int64_t *count, struct error *e);

int store_disk_bytes(struct store *s, int64_t *bytes, struct error *e); /* of all jobs */
/* The first ended job above this id whose disk_bytes are not known; 0: none. */
int store_job_unmeasured(struct store *s, int64_t above, int64_t *id, struct error *e);
