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
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/job/job_state.h"
#include "common/plan/predict/predict.h"
#include "common/run/attempt.h"

struct store;

/* Opens or makes the database and migrates it to this version. Refuses (ERR_CONFLICT, untouched) a
 * database of a newer version, and a file system without WAL, as NFS. */
int store_open(const char *path, struct store **out, struct error *e);
void store_close(struct store *s); /* NULL is fine; no other thread may be inside */

/* Which database this is: a restored backup is the one that it is a copy of. */
struct store_identity {
    char uuid[33];
    int64_t unmarked; /* jobs up to this id are older than owner.json (job/dir/run_dir.h) */
};
const struct store_identity *store_identity(const struct store *s);

/* STATE/jobs, absolute, which run_dir of a job is told with; before any other thread is there. */
int store_set_jobs_dir(struct store *s, const char *jobs_dir, struct error *e);

/* Copies the database as it is now into path (a new or empty file), while others read and write
 * (backup.c). */
int store_backup(struct store *s, const char *path, struct error *e);

/* For a watchdog: waits of the calling thread for the one writer are no hang of that thread. Called
 * before it shares the store with others. */
void store_watch_thread(struct store *s);
/* How long that thread has been waiting for the writer; 0: it does not. On any thread. */
double store_wait_seconds(struct store *s);

/* A read works: GET /readyz. */
int store_check(struct store *s, struct error *e);

/* ---------------------------------------------------------------- jobs (job.c) */

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
    /* find/label.h: as they are now, where the document may have those of an earlier time. */
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

/* What the queue must know of a plan. Seconds are NAN where there are none. */
struct store_job_size {
    const char *launcher;
    int64_t slots, train_steps, global_batch;
    int64_t evaluations, eval_images;
    int64_t nodes;
    double node_share;
    double time_limit_seconds;
    double predicted_seconds, predicted_low_seconds, predicted_high_seconds;
};

/* What comes again with the same key, from the same user, is made once. */
struct store_key {
    const char *key;    /* the Idempotency-Key; NULL: none */
    const char *digest; /* of the body as sent: same key, other digest: ERR_CONFLICT */
    const char *by;     /* whose key; NULL: nobody is named */
};

/* What a submission brings. */
struct store_job_new {
    const char *name;
    const char *submitted_by; /* NULL: nobody was named */
    const char *const *tags;  /* without repetition */
    size_t tag_count;
    const char *note;            /* NULL: none */
    const char *spec;            /* JSON text of job_spec_to_json */
    const char *plan;            /* JSON text of plan_to_json */
    const char *idempotency_key; /* as in store_key, of submitted_by */
    const char *request_digest;
    int64_t priority;
    struct store_job_size size;
    int64_t max_queued; /* jobs of one user; ERR_TOO_MANY for one more; 0: no limit */
    const char *reason; /* of the state queued */
    double now;
};

/* The idempotency key of a trial's job, of sweep, rung and number. A client's key cannot begin so
 * (request_key). */
#define STORE_TRIAL_KEY "\x01sweep-%lld-%lld-%lld"

/* Inserts a queued job with its first state event. With an idempotency key seen before: nothing is
 * inserted, *id is the earlier job's and *existed is true. With the key of a trial that waits, the
 * trial becomes submitted, with the job's id, at the same time; ERR_CONFLICT if its sweep has
 * ended. Durable; what several threads submit at a time shares one commit. */
int store_job_insert(struct store *s, const struct store_job_new *job, int64_t *id, bool *existed,
                     struct error *e);

/* The job that came with this key before, so that a repeated submission is answered without looking
 * at its data again: *id is 0 if there is none. ERR_CONFLICT: it came from another body. */
int store_job_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e);

/* ERR_NOT_FOUND: "there is no job 7". Clear with store_job_clear. */
int store_job_get(struct store *s, int64_t id, struct store_job *job, struct error *e);

/* The next job's id lies above this one. */
int store_job_ids_above(struct store *s, int64_t id, struct error *e);

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
const char *store_sort_name(size_t sort); /* "newest"...; NULL behind the last */

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

/* The jobs that fit, at most filter->limit (1 to 1000) of *total. Case does not count. *next, which
 * the caller frees, is what the next page begins behind: "ID" or "ID,KEY", for after and
 * after_key; NULL: that was the last one. */
int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e);

/* At most `most` ids of the jobs whose document says that they reproduce this one (job.c). */
int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t most, size_t *count,
                            struct error *e);

/* Those of the ids that are there, in this order. */
int store_job_list_ids(struct store *s, const int64_t *ids, size_t count, struct store_jobs *jobs,
                       struct error *e);

/* A change of state with its words. Sets started_at at the first "starting" and finished_at at an
 * end. ERR_CONFLICT where the job's state (as in the database, not as the caller thinks) does not
 * lead there; the same state again only changes the reason. Durable. */
struct store_state_change {
    enum job_state to;
    const char *reason; /* NULL: none */
    double now;
    const char *by; /* who asked for it; NULL: the daemon itself, or somebody who was not named */
};
int store_job_set_state(struct store *s, int64_t id, const struct store_state_change *change,
                        struct error *e);

/* A job that waits, and has not been handed to Slurm, is cancelled. ERR_CONFLICT: it does not wait
 * any more. Durable. */
int store_job_cancel_waiting(struct store *s, int64_t id, const char *reason, const char *by,
                             double now, struct error *e);

/* The attempt that is under way is to be cancelled: the state stays, an event says who asked, and
 * the attempt is never queued again (ERR_CONFLICT). Durable. ERR_CONFLICT: it is not under way any
 * more. */
int store_job_ask_cancel(struct store *s, int64_t id, int64_t attempt, const char *by, double now,
                         struct error *e);

/* What people change about a job that waits. */
struct store_waiting_change {
    enum { STORE_HOLD, STORE_RELEASE, STORE_PRIORITY } what;
    int64_t priority;
    double now;
    const char *by; /* as in store_state_change */
};
/* A job that is held stays queued, is in no list of STORE_QUEUE_ORDER, and begins no attempt until
 * it is released; the time for which it is held does not count as waiting. It is held no more
 * once it is cancelled. ERR_CONFLICT: it does not wait here, or there is nothing to change. An
 * event says who asked. Durable. */
int store_job_change_waiting(struct store *s, int64_t id, const struct store_waiting_change *change,
                             struct error *e);

/* Who asked last for a change of this attempt: a new text, NULL where nobody was named. */
int store_job_asked_by(struct store *s, int64_t id, int64_t attempt, char **by, struct error *e);

/* How many jobs are in these states (bits as in the filter). */
int store_job_count(struct store *s, unsigned states, int64_t *count, struct error *e);

/* disk_bytes of a job. */
int store_job_set_disk(struct store *s, int64_t id, int64_t bytes, struct error *e);
int store_disk_bytes(struct store *s, int64_t *bytes, struct error *e); /* of all jobs */
/* The first ended job above this id whose disk_bytes are not known; 0: none. */
int store_job_unmeasured(struct store *s, int64_t above, int64_t *id, struct error *e);

/* At most `most` ids of ended jobs beyond the `keep` that ended last; those that were imported, and
 * those whose sweep has not taken their result, do not count. */
int store_jobs_beyond(struct store *s, int64_t keep, int64_t *ids, size_t most, size_t *count,
                      struct error *e);

/* Removes a job: its row and what refers to it, and notes that its events and series are left
 * (removal.h), which nobody can read any more. Durable. ERR_NOT_FOUND; ERR_CONFLICT where it has
 * not ended. */
int store_job_delete(struct store *s, int64_t id, struct error *e);

/* ---------------------------------------------------------------- attempts (attempt.c) */

/* A launch, in the order that makes a killed daemon safe: store_job_begin_attempt (the next
 * attempt, launcher forgotten) before a process is started, store_job_set_launcher, which makes
 * both durable, before that becomes mpirun. The change is to "starting", or to "queued" of a job
 * that waits in Slurm's queue from now on. above: the newest attempt that the run directory has,
 * which a restored database may not know. ERR_CONFLICT: it was held or cancelled meanwhile. */
int store_job_begin_attempt(struct store *s, int64_t id, const struct store_state_change *change,
                            int64_t above, int64_t *attempt, struct error *e);
int store_job_set_launcher(struct store *s, int64_t id, int64_t pid, int64_t pid_start,
                           struct error *e);

/* Likewise of a job that is handed to Slurm, before that is done: from now on it is in Slurm, as
 * this text says. ERR_CONFLICT: it has just been cancelled. Durable. */
int store_job_hand_to_slurm(struct store *s, int64_t id, int64_t attempt, const char *slurm,
                            struct error *e);

/* What Slurm says of a job: JSON text; NULL: it is not in Slurm. No event is made of it. */
int store_job_set_slurm(struct store *s, int64_t id, const char *slurm, struct error *e);

/* How an attempt ended. */
struct store_attempt_end {
    int64_t attempt;
    struct store_state_change change; /* to an end, or to queued: a restart, or it never ran */
    int64_t exit_code, exit_signal;   /* of the launcher; STORE_NO_EXIT for what is not known */
    const json_t *failure;            /* of a failed attempt, else NULL: kept if it is the job's
                                         first, and a "failed" event unless the workers sent one */
    const struct notice_rule *tell;   /* of the failure, by the rule that fits it; NULL: nobody */
    bool restarts;                    /* counts as an automatic restart, from the checkpoint */
    bool goes_on;                     /* back into the queue too, but counts as nothing */
    bool resumes;
    double joules; /* of its nodes, by Slurm, where the workers measured none; NAN: not known */
    double images_per_sec; /* of all steps so far; NAN: it stays what it is */
    double not_before;     /* of a restart: when its back-off ends */
    int64_t *next;         /* not NULL: Slurm starts the same job again as the next attempt, which
                              begins in the same transaction; gets its number */
};
/* In one transaction, durable. ERR_CONFLICT: it is to be queued again, but somebody has asked to
 * cancel this attempt. */
int store_attempt_end(struct store *s, int64_t id, const struct store_attempt_end *end,
                      struct error *e);

/* Back into the queue, with other documents. */
struct store_job_again {
    const char *spec, *plan; /* JSON text */
    int64_t priority;
    struct store_job_size size;
    bool resumes;
    bool other_speed;    /* what it did a second so far says nothing any more */
    bool keeps_place;    /* it is in the queue already and stays where it is */
    int64_t max_queued;  /* as in store_job_new; a sweep's jobs have no limit */
    const json_t *event; /* fields of a "resume" event: the old and the new numbers */
    const char *reason;
    double now;
    const char *by; /* as in store_state_change */
};
/* In one transaction, durable. ERR_CONFLICT where the job is neither failed nor cancelled (with
 * keeps_place: not queued); ERR_TOO_MANY where whose it is has max_queued jobs in the queue. */
int store_job_again(struct store *s, int64_t id, const struct store_job_again *again,
                    struct error *e);

/* What a queued job waits for, as words and as a time (0: not known). Written for those that still
 * are queued; no events are made of it, as it changes with every minute. */
struct store_waiting {
    int64_t id;
    const char *reason;
    double estimated_start;
};
int store_jobs_wait(struct store *s, const struct store_waiting *jobs, size_t count,
                    struct error *e);

/* ---------------------------------------------------------------- events (event.c) */

/* The numbers of a step; NAN: not there. */
struct store_step {
    int64_t step; /* -1: it has none, and is in no series */
    double epoch;
    double metrics[EVENT_METRICS_MAX]; /* in the order of event_metric_at */
};
void store_step_clear(struct store_step *step);
void store_step_of(const json_t *body, struct store_step *step);

/* One line of events.jsonl, parsed. */
struct store_event {
    int64_t seq;
    double t;
    enum event_type type;
    const json_t
        *body;       /* the whole object, with seq, t and type; of a step NULL where own is set */
    const char *own; /* its text without these, where the caller has it; NULL: made from body */
    struct store_step step; /* of a step */
};

/* A batch of lines of one attempt, bytes [from, to) of its events.jsonl, in one transaction: the
 * events (a seq that is there already is left alone), their rows in step_metric and eval, the job's
 * progress and results, the new position, and the change of state if one is given and the state
 * differs. from must be the stored position, else ERR_CONFLICT and nothing is written. */
struct store_batch {
    int64_t job_id, attempt;
    int64_t from_bytes, to_bytes;
    const struct store_event *events;
    size_t count;
    const struct store_state_change *change; /* NULL: none */
};
int store_ingest(struct store *s, const struct store_batch *batch, struct error *e);

/* Where to read on: 0 for an attempt never read. */
int store_ingest_position(struct store *s, int64_t job_id, int64_t attempt, int64_t *bytes,
                          struct error *e);

/* The highest seq of an attempt's events; 0: it has none. */
int store_ingest_seq(struct store *s, int64_t job_id, int64_t attempt, int64_t *seq,
                     struct error *e);

/* An event of the daemon itself (not from a worker), as "warning" or "failed" with fields of its
 * own. fields: a JSON object, or NULL. */
int store_event_add(struct store *s, int64_t job_id, int64_t attempt, const char *type,
                    const json_t *fields, double now, struct error *e);

/* ---------------------------------------------------------------- reading events (event_read.c) */

/* Ids rise in the order of the commits, so that whoever has seen id n has seen all below it. */
#define STORE_ALL_JOBS 0
struct store_event_range {
    int64_t job_id;     /* or STORE_ALL_JOBS */
    int64_t after;      /* ids above it */
    int64_t limit;      /* 0: none */
    bool without_steps; /* of one job */
    const char *types;  /* of one job: those with these names alone, with commas; NULL: all */
};
struct store_event_row {
    int64_t id, job_id, attempt;
    double t;
    const char *type,
        *body; /* body: the type's own fields, a JSON object; valid during the visit */
};
/* false: enough. */
typedef bool store_event_visit(void *context, const struct store_event_row *row);

/* Oldest first. visit must not call the store. */
int store_event_each(struct store *s, const struct store_event_range *range,
                     store_event_visit *visit, void *context, struct error *e);

/* {"id", "job", "attempt", "t", "type", ...its own fields}: a new reference. */
json_t *store_event_json(const struct store_event_row *row);
/* The same as a new JSON array. */
int store_event_list(struct store *s, const struct store_event_range *range, json_t **events,
                     struct error *e);

/* At most `most` step events of a job, evenly spread over the ids of its events, oldest first: for
 * what stands in no series, as each rank's time. */
int store_event_steps_spread(struct store *s, int64_t job_id, int64_t most,
                             store_event_visit *visit, void *context, struct error *e);

int store_event_newest(struct store *s, int64_t *id, struct error *e); /* 0: there are none */

/* Own fields of the event "gradients", which is one of an attempt's first; NULL: there is none. */
int store_gradients_of(struct store *s, const struct store_job *job, char **body, struct error *e);

/* Calls told(context) after every commit, from the thread that committed: it must be quick and not
 * call the store. At most STORE_LISTENERS may listen, each with a context of its own; told NULL
 * ends that of this context. */
#define STORE_LISTENERS 4
void store_on_commit(struct store *s, void (*told)(void *context), void *context);

/* ---------------------------------------------------------------- facts (open.c) */

struct sql;
struct store_node_check;

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
/* NULL and NULL end it. */
void store_on_fact(struct store *s, store_witness *witness, store_undone *undone, void *context);

/* ---------------------------------------------------------------- series (metric.c, bucket.c) */

/* The jobs that trained at some time since `since`, newest first, as far as they are among the
 * `most` newest: their ids and images a step. */
struct store_trained {
    int64_t id, global_batch;
};
int store_jobs_trained_since(struct store *s, double since, int64_t most,
                             struct store_trained *jobs, size_t *count, struct error *e);

/* Images a second in all steps of the series that belong to the run: not those behind the job's
 * step, where an attempt fell back to its checkpoint. NAN: there are none, or run_stop of this
 * attempt has told it. */
int store_steps_speed(struct store *s, int64_t job_id, int64_t attempt, double *images_per_sec,
                      struct error *e);

/* Evaluations of a job by step: a new JSON array of {"step", "epoch", "top1", "top5", "loss",
 * "images", "t"}. */
int store_eval_list(struct store *s, int64_t job_id, json_t **evals, struct error *e);

/* Some steps of a series in one: a single one, or a bucket of them (bucket.c). */
struct store_metric_sum {
    double count; /* of steps that had such a number */
    double sum, min, max;
};
struct store_metric_part {
    int64_t rows;
    int64_t step; /* of the last row, as are epoch and t */
    double epoch, t;
    struct store_metric_sum of[EVENT_METRICS_MAX]; /* by place in event_metric_at */
};
typedef void store_metric_visit(void *context, const struct store_metric_part *part);

/* Adds part, which lies behind it, to into. */
void store_metric_fold(struct store_metric_part *into, const struct store_metric_part *part);

/* Moves the place of a part to the middle of its steps, which lie behind the place `before` or
 * begin there: that of its last row becomes the new `before`. */
void store_metric_to_middle(struct store_metric_part *part, struct store_metric_part *before);

/* What a series has in the steps [from_step, to_step]. */
struct store_metric_ends {
    int64_t rows; /* at most most + 1: so many or more */
    int64_t first_step, last_step;
};
int store_metric_ends(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                      int64_t most, struct store_metric_ends *ends, struct error *e);

/* What it has of steps that ended at this Unix time or later: rows is 1, or 0 for none. Steps end
 * in order. */
int store_metric_ends_since(struct store *s, int64_t job_id, double t,
                            struct store_metric_ends *ends, struct error *e);

/* The steps of [from_step, to_step) in order, in parts: at least `parts` of them where there are
 * so many steps without gaps, and about 8 times that at most. 0 parts: step by step. */
int store_metric_parts(struct store *s, int64_t job_id, int64_t from_step, int64_t to_step,
                       int64_t parts, store_metric_visit *visit, void *context, struct error *e);

/* At most limit steps from from_step on. */
int store_metric_each(struct store *s, int64_t job_id, int64_t from_step, int64_t limit,
                      store_metric_visit *visit, void *context, struct error *e);

/* ---------------------------------------------------------------- speeds (speed.c) */

/* What a finished job or trainctl bench measured; key and processor as common/run/speed.h names
 * them. */
struct store_speed {
    const char *key, *cpu;
    double t;
    struct plan_sample sample;
    const char
        *owner; /* whose plans alone it is for, '' where nobody was named; NULL: everybody's */
};
struct store_audit;
/* audit is written in the same transaction; NULL: nothing. */
int store_speed_add(struct store *s, const struct store_speed *speed,
                    const struct store_audit *audit, struct error *e);
/* Those for the plans of a user (as submitted_by of a job), the newest first, at most `most`,
 * without those of the database that are not sound (speed_sample_is_sound). */
int store_speed_find(struct store *s, const char *key, const char *cpu, const char *by,
                     struct plan_sample *samples, size_t most, size_t *count, struct error *e);

/* How good an ended job's predictions were: JSON text. */
int store_job_set_forecast(struct store *s, int64_t id, const char *forecast, struct error *e);
/* These of the newest `most` jobs that have some; imported ones ran elsewhere and do not count. */
int store_forecast_each(struct store *s, int64_t most,
                        void (*visit)(void *context, const char *forecast), void *context,
                        struct error *e);

/* ---------------------------------------------------------------- sweeps (sweep.c) */

struct store_trial {
    int64_t rung, number;
    char *point, *spec; /* JSON text */
    char *state;        /* waiting, submitted, succeeded, failed, cancelled */
    int64_t job_id;     /* 0: not submitted yet */
    double metric;      /* NAN: none */
    char *reason;       /* why it was asked to stop; NULL: it was not */
};
struct store_sweep {
    int64_t id;
    char *name;         /* NULL: none given */
    char *submitted_by; /* as of a job */
    char *state;        /* running, succeeded, cancelled */
    char *document;     /* JSON text, every default written out */
    int64_t train_images, eval_images;
    double created_at, finished_at; /* NAN: not yet */
    struct store_trial *trials;     /* by rung and number */
    size_t count, room;
};
void store_sweep_clear(struct store_sweep *sweep); /* frees what it points to */

/* With its first trials, in one transaction; sets sweep->id. Durable. *existed: the key was seen
 * before, sweep->id is that one's, and nothing was inserted. ERR_CONFLICT: with another body. */
int store_sweep_insert(struct store *s, struct store_sweep *sweep, const struct store_key *key,
                       bool *existed, struct error *e);
/* As store_job_find_key. */
int store_sweep_find_key(struct store *s, const struct store_key *key, int64_t *id,
                         struct error *e);
/* Trials that are there already are left alone. ERR_CONFLICT: the sweep has ended. */
int store_sweep_add_trials(struct store *s, int64_t id, const struct store_trial *trials,
                           size_t count, struct error *e);
int store_sweep_set_trial(struct store *s, int64_t id, const struct store_trial *trial,
                          struct error *e);
/* Waiting trials become cancelled; submitted ones stay so until their jobs have ended.
 * ERR_NOT_FOUND; ERR_CONFLICT: it has ended. */
int store_sweep_end(struct store *s, int64_t id, const char *state, double now, struct error *e);
int store_sweep_get(struct store *s, int64_t id, struct store_sweep *sweep, struct error *e);
/* The newest first; after: ids below it, 0: all. */
int store_sweep_ids(struct store *s, bool running, int64_t after, int64_t *ids, size_t most,
                    size_t *count, struct error *e);
/* Those that have ended with trials that are still submitted: their jobs are to be cancelled. */
int store_sweep_ending(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e);
