#include "daemon/store/job_row.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/job/job_document.h"
#include "common/job/recipe/preset.h"
#include "common/xalloc.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

#define COLUMN(name, storage, column, form, notice) ", " column
#define BRIEF                                       "0" JOB_FIELDS(COLUMN)
#define FULL                                        BRIEF JOB_DOCUMENTS(COLUMN)

struct store_documents {
    json_t *spec, *plan;
    struct job_spec *document;
};

void store_job_clear(struct store_job *job)
{
    if (!job)
        return;
#define FREE_TEXT(name) free(job->name);
#define FREE_INT(name)
#define FREE_INT_OR_NULL(name)
#define FREE_BOOL(name)
#define FREE_REAL(name)
#define FREE_TIME(name)
#define FREE_STATE(name)
#define FREE_NONE(name)
#define FREE(name, storage, column, form, notice) FREE_##storage(name)
    JOB_FIELDS(FREE)
    JOB_DOCUMENTS(FREE)
    if (job->parsed) {
        json_decref(job->parsed->spec);
        json_decref(job->parsed->plan);
        job_spec_destroy(job->parsed->document);
        free(job->parsed);
    }
    memset(job, 0, sizeof *job);
}

/* Returns an empty object if the text is not JSON (the schema prevents that). */
static const json_t *job_parse(const char *text, json_t **parsed)
{
    if (!*parsed)
        *parsed = json_loads(text, 0, NULL);
    if (!*parsed)
        *parsed = json_object();
    return *parsed;
}

const json_t *store_job_spec(const struct store_job *job)
{
    return job->parsed ? job_parse(job->spec, &job->parsed->spec) : NULL;
}

const json_t *store_job_plan(const struct store_job *job)
{
    return job->parsed ? job_parse(job->plan, &job->parsed->plan) : NULL;
}

const struct job_spec *store_job_document(const struct store_job *job, struct error *e)
{
    struct problems problems = {0};
    struct job_spec **document = &job->parsed->document;

    if (!*document)
        *document = job_spec_parse(store_job_spec(job), preset_lookup, NULL, &problems);
    if (!*document) {
        char *text = problems_to_text(&problems);
        error_set(e, ERR_INVALID, "the stored job document is not valid in this version: %s",
                  text ? text : "");
        free(text);
    }
    problems_clear(&problems);
    return *document;
}

struct job_spec *store_job_take_document(const struct store_job *job, struct error *e)
{
    struct job_spec *document = (struct job_spec *)store_job_document(job, e);

    job->parsed->document = NULL;
    return document;
}

bool store_job_cancel_asked(const struct store_job *job)
{
    return job->cancel_attempt > 0 && job->cancel_attempt == job->attempt;
}

void store_jobs_clear(struct store_jobs *jobs)
{
    if (!jobs)
        return;
    for (size_t i = 0; i < jobs->count; i++)
        store_job_clear(&jobs->items[i]);
    free(jobs->items);
    memset(jobs, 0, sizeof *jobs);
}

static double job_time(sqlite3_stmt *row, int column)
{
    double t = sql_double(row, column);
    return isnan(t) ? 0 : t;
}

static enum job_state job_state(sqlite3_stmt *row, int column)
{
    return job_state_of((const char *)sqlite3_column_text(row, column));
}

#define JOBS "jobs/" /* prefix of run_dir in the database: relative to the state folder */

/* Takes ownership of `stored`. */
static char *job_absolute_run_dir(const struct store *s, char *stored)
{
    if (!s->jobs_dir || !stored || strncmp(stored, JOBS, strlen(JOBS)) != 0)
        return stored;
    char *path = xasprintf("%s/%s", s->jobs_dir, stored + strlen(JOBS));
    free(stored);
    return path;
}

static void job_read_row(const struct store *s, sqlite3_stmt *row, bool documents,
                         struct store_job *job)
{
    int at = 1;

    memset(job, 0, sizeof *job);
#define READ_TEXT(name)                           job->name = sql_text(row, at++);
#define READ_INT(name)                            job->name = sqlite3_column_int64(row, at++);
#define READ_INT_OR_NULL(name)                    job->name = sql_int(row, at++, JOB_FIELD_NULL);
#define READ_BOOL(name)                           job->name = sqlite3_column_int(row, at++);
#define READ_REAL(name)                           job->name = sql_double(row, at++);
#define READ_TIME(name)                           job->name = job_time(row, at++);
#define READ_STATE(name)                          job->name = job_state(row, at++);
#define READ_NONE(name)                           at++;
#define READ(name, storage, column, form, notice) READ_##storage(name)
    JOB_FIELDS(READ)
    job->run_dir = job_absolute_run_dir(s, job->run_dir);
    if (documents) {
        JOB_DOCUMENTS(READ)
        job->parsed = xcalloc(1, sizeof *job->parsed);
    }
}

int store_job_get(struct store *s, int64_t id, struct store_job *job, struct error *e)
{
    memset(job, 0, sizeof *job);
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e, "select " FULL " from job where id = ?", "i", id);
    int found = sql_row(c, row, e);
    if (found > 0) {
        job_read_row(s, row, true, job);
        sql_done(row);
    }
    sql_read_end(s, c);
    if (found == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no job %lld", (long long)id);
    return found > 0 ? 0 : found;
}

/* Formats as "queued","running". State names need no escaping. */
static void job_states_text(unsigned states, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int state = 0; state < JOB_STATE_COUNT; state++)
        if (states & 1u << state)
            used += (size_t)snprintf(text + used, bytes - used, "%s\"%s\"", used ? "," : "",
                                     job_state_name((enum job_state)state));
}

#define STATE_IN "state in (select value from json_each('[' || ?1 || ']'))"

#define QUEUE_LIST(from)                                                                           \
    "select " FULL " from job where id in (select id from job " from                               \
    " order by queued_at - priority * ?2, id limit ?3)"

#define MAY_START "held_at is null and not exists (select 1 from job_after where job_id = job.id)"

/* Uses a covering index, so the cost does not depend on the length of the queue. */
static sqlite3_stmt *job_queue_query(struct sql *c, const struct store_job_filter *filter,
                                     int64_t limit, struct error *e)
{
    static const char *const lists[] = {
        [STORE_ANY_LAUNCHER] = QUEUE_LIST("where state = 'queued' and " MAY_START),
        [STORE_LOCAL] =
            QUEUE_LIST("indexed by job_by_queue where state = 'queued' and launcher = 'local' "
                       "and " MAY_START),
        [STORE_SLURM] = QUEUE_LIST("indexed by job_of_slurm where state = 'queued' and launcher = "
                                   "'slurm' and slurm is null and " MAY_START),
        [STORE_IN_SLURM] = QUEUE_LIST("indexed by job_of_slurm where state = 'queued' and "
                                      "launcher = 'slurm' and slurm is not null"),
    };
    return sql_query(c, e, lists[filter->launcher], "idi", (int64_t)0, filter->priority_seconds,
                     limit);
}

/* Finds the newest jobs of each state by index, because sorting whole rows would move their
 * documents. */
#define NEWEST_OF(state, bit)                                                                      \
    "select * from (select id from job where ?1 & " bit " and state = '" state                     \
    "' and id < ?2 order by id desc limit ?3)"

static sqlite3_stmt *job_newest_query(struct sql *c, const struct store_job_filter *filter,
                                      int64_t after, int64_t limit, struct error *e)
{
    _Static_assert(JOB_QUEUED == 0 && JOB_CANCELLED == 6 && JOB_STATE_COUNT == 7,
                   "the bits below are those of the states");
    /* clang-format off */
    static const char sql[] = "select " FULL " from job where id in ("
        NEWEST_OF("queued", "1") " union all "
        NEWEST_OF("starting", "2") " union all "
        NEWEST_OF("running", "4") " union all "
        NEWEST_OF("evaluating", "8") " union all "
        NEWEST_OF("succeeded", "16") " union all "
        NEWEST_OF("failed", "32") " union all "
        NEWEST_OF("cancelled", "64") ") order by id desc limit ?3";
    /* clang-format on */
    return sql_query(c, e, sql, "iii", (int64_t)filter->states, after, limit);
}

static sqlite3_stmt *job_list_query(struct sql *c, const struct store_job_filter *filter,
                                    struct error *e)
{
    char states[256];
    int64_t after = filter->after > 0 ? filter->after : INT64_MAX;
    int64_t limit = filter->limit > 0 ? filter->limit : -1; /* SQLite: negative means unlimited */

    job_states_text(filter->states, states, sizeof states);
    if (filter->order == STORE_QUEUE_ORDER && filter->states == 1u << JOB_QUEUED)
        return job_queue_query(c, filter, limit, e);
    if (filter->order == STORE_QUEUE_ORDER)
        return sql_query(c, e, QUEUE_LIST("where " STATE_IN), "sdi", states,
                         filter->priority_seconds, limit);
    if (filter->states == 0)
        return sql_query(c, e,
                         "select " FULL " from job where id < ?1 "
                         "order by id desc limit ?2",
                         "ii", after, limit);
    return job_newest_query(c, filter, after, limit, e);
}

static int job_compare_in_queue(const void *left, const void *right, void *priority_seconds)
{
    const struct store_job *a = left, *b = right;
    double each = *(const double *)priority_seconds;
    double x = a->queued_at - (double)a->priority * each;
    double y = b->queued_at - (double)b->priority * each;

    return x != y ? (x > y) - (x < y) : (a->id > b->id) - (a->id < b->id);
}

int store_job_list(struct store *s, const struct store_job_filter *filter, struct store_jobs *jobs,
                   struct error *e)
{
    struct store_job_filter all = *filter;
    int status;

    memset(jobs, 0, sizeof *jobs);
    if (all.order == STORE_QUEUE_ORDER && all.states == 0)
        all.states = (1u << JOB_STATE_COUNT) - 1;
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = job_list_query(c, &all, e);
    while ((status = sql_row(c, row, e)) > 0)
        job_read_row(s, row, filter->documents,
                     &array_add(jobs->items, jobs->count, jobs->capacity));
    sql_read_end(s, c);
    if (status)
        store_jobs_clear(jobs);
    else if (all.order == STORE_QUEUE_ORDER && jobs->count)
        qsort_r(jobs->items, jobs->count, sizeof jobs->items[0], job_compare_in_queue,
                &all.priority_seconds);
    return status;
}

int store_job_list_ids(struct store *s, const int64_t *ids, size_t count, struct store_jobs *jobs,
                       struct error *e)
{
    struct sql *c = sql_read_begin(s);
    int status = 0;

    *jobs = (struct store_jobs){0};
    for (size_t i = 0; i < count && !status; i++) {
        sqlite3_stmt *row = sql_query(c, e, "select " BRIEF " from job where id = ?", "i", ids[i]);
        status = sql_row(c, row, e);
        if (status > 0) {
            job_read_row(s, row, false, &array_add(jobs->items, jobs->count, jobs->capacity));
            sql_done(row);
            status = 0;
        }
    }
    sql_read_end(s, c);
    if (status)
        store_jobs_clear(jobs);
    return status;
}

int store_job_each_id(struct store *s, store_job_id_visit *visit, void *context, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e, "select id, attempt > 0 from job order by id", "");
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        visit(context, sqlite3_column_int64(row, 0), sqlite3_column_int(row, 1));
    sql_read_end(s, c);
    return status;
}

int store_disk_bytes(struct store *s, int64_t *bytes, struct error *e)
{
    return once_get(s, e, "select bytes from disk", ":i", bytes);
}

int store_job_unmeasured(struct store *s, int64_t above, int64_t *id, struct error *e)
{
    return once_get(s, e,
                    "select coalesce((select id from job not indexed where id > ?1 and "
                    "disk_bytes is null and state in ('succeeded', 'failed', 'cancelled') "
                    "order by id limit 1), 0)",
                    "i:i", above, id);
}

/* Events of workers have a seq and are excluded, so they cannot pretend to be a user's. */
int store_job_asked_by(struct store *s, int64_t id, int64_t attempt, char **by, struct error *e)
{
    return once_get(s, e,
                    "select json_extract(body, '$.by') from job_event where "
                    "job_id = ?1 and attempt = ?2 and seq is null and type = 'state' "
                    "and json_extract(body, '$.by') is not null "
                    "order by id desc limit 1",
                    "ii:s", id, attempt, by);
}

int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t max, size_t *count,
                            struct error *e)
{
    return once_integers(s, ids, count, e,
                         "select id from job indexed by job_reproduces where "
                         "json_extract(spec, '$.reproduces') = ?1 order by id limit ?2",
                         "ii", id, (int64_t)max);
}

int store_job_count(struct store *s, unsigned states, int64_t *count, struct error *e)
{
    char names[256];

    job_states_text(states, names, sizeof names);
    return once_get(s, e, "select count(*) from job where " STATE_IN, "s:i", names, count);
}
