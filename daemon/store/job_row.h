/* The rows of the table job, as they are read. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/job/job_state.h"
#include "daemon/store/store.h"

#define STORE_NO_EXIT (-1) /* exit_code, exit_signal: none known */

/* One row of the table job. Strings are owned by it, NULL where there is none. Times are 0 and
 * measured values NAN where there is none yet. */
struct store_job {
    int64_t id;
    char *name;         /* NULL: none given */
    char *submitted_by; /* "user:NAME", "token:NAME", "sweep 3"; NULL: nobody was named */
    enum job_state state;
    char *reason;    /* words for a person */
    char *spec;      /* JSON text, every default written out; NULL where a list was asked without
                        documents */
    char *plan;      /* JSON text, likewise */
    int64_t attempt; /* 0: never launched; the first launch is 1 */
    int64_t priority;
    int64_t slots;  /* local slots it takes while it runs; 0 with launcher slurm */
    char *launcher; /* "local", "slurm" */
    char *slurm; /* JSON text: what Slurm says of it; NULL: never handed to Slurm, or to be handed
                    to it again */
    char *idempotency_key;
    char *imported_from; /* JSON text: the job of another database that it is; NULL: of this one */
    double created_at, started_at, finished_at;
    double attempt_started_at; /* the newest attempt */
    int64_t cancel_attempt;    /* the last attempt that was asked to be cancelled; 0: none */
    double queued_at;          /* its place in the queue */
    double estimated_start;    /* of a queued job; 0: not known */
    double not_before;         /* of a queued job: when a restart's back-off ends; 0: none */
    double held_at;            /* of a queued job; 0: it is not held */
    int64_t restarts;          /* automatic ones, since it was submitted or resumed */
    bool resumes;              /* its next attempt goes on from the newest checkpoint */
    char *failure;             /* JSON text: what ended the first attempt that failed */
    char *failure_label;       /* of that, by the failure rules; NULL: none */
    double time_limit_seconds; /* of an attempt; NAN: none */
    double predicted_seconds, predicted_low_seconds, predicted_high_seconds; /* of the plan */
    char *forecast; /* JSON text: of an ended job, how good its predictions were */
    char *run_dir;  /* STATE/jobs/ID, absolute; "jobs/ID" in the database, as STATE may be moved */
    int64_t launcher_pid; /* 0: none */
    /* Field 22 of /proc/PID/stat: tells a pid's second life from its first. */
    int64_t launcher_start;
    int64_t exit_code, exit_signal; /* of the launcher; STORE_NO_EXIT: none */
    /* progress, from the newest step event, and results, from eval and run_stop */
    int64_t train_steps;      /* of the plan */
    int64_t global_batch;     /* of the plan; 0: it has none */
    int64_t evaluations;      /* of the plan; 0: none, or not known */
    int64_t eval_images;      /* of one of them */
    int64_t evaluated_images; /* so far, of a job that evaluates only */
    int64_t step;             /* steps done */
    double epoch, loss, lr;
    double images_per_sec; /* of the newest step; behind the end of an attempt: of all steps of the
                              run, each counted once, images over time */
    double ttt_seconds, top1, top5;
    /* The evaluation with the highest top-1, the first of them; best_top1 NAN: none. */
    double best_top1, best_top1_epoch, best_top1_at;
    int64_t best_top1_step;
    /* job_label.h: as they are now, where the document may have those of an earlier time. */
    char *tags; /* JSON text: a list, sorted */
    char *note; /* NULL: none */
    /* What it took. */
    double joules;     /* of its machines, whole, in all attempts; NAN: never measured */
    bool joules_whole; /* every machine of every attempt was measured */
    int64_t nodes;
    double node_share;   /* of the cores of each, that are the job's; others may take the rest */
    double active_since; /* 0: it does not run */
    double node_seconds; /* of ended attempts, of whole nodes; NAN: not known */
    int64_t disk_bytes;  /* of its run directory, as last measured; 0: none, or not known yet */
};
void store_job_clear(struct store_job *job); /* frees the strings and zeroes it; NULL is fine */
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
