/* Jobs that are looked for: by words, user, name and sweep, in another order than the newest first.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "daemon/store/store_internal.h"

static const char *const sorts[] = {
    [STORE_SORT_NEWEST] = "newest",     [STORE_SORT_NAME] = "name",
    [STORE_SORT_PRIORITY] = "priority", [STORE_SORT_TOP1] = "top1",
    [STORE_SORT_LOSS] = "loss",         [STORE_SORT_SPEED] = "images_per_sec",
    [STORE_SORT_TIME] = "ttt_seconds",  [STORE_SORT_FINISHED] = "finished_at",
};

const char *store_sort_name(size_t sort)
{
    return sort < sizeof sorts / sizeof sorts[0] ? sorts[sort] : NULL;
}

/* "user:eve" and "token:eve" are both found by "eve". instr finds text as it is: no wildcards. */
#define FOUND                                                                                      \
    "from job where (?2 = '' or instr(?2, ',' || state || ',')) "                                  \
    "and (?3 is null or submitted_by in (?3, 'user:' || ?3, 'token:' || ?3)) "                     \
    "and (?4 is null or instr(lower(coalesce(name, '')), lower(?4))) "                             \
    "and (?5 = 0 or submitted_by = 'sweep ' || ?5) "                                               \
    "and (?6 is null or id = ?6 or instr(lower(coalesce(name, '') || char(10) || "                 \
    "coalesce(reason, '') || char(10) || coalesce(submitted_by, '') || char(10) || "               \
    "coalesce(json_extract(spec, '$.model.arch'), '') || char(10) || "                             \
    "coalesce(json_extract(spec, '$.data.train'), '')), lower(?6)))"

/* What a list is sorted by, rising; without it a job stands last, and the newest is first of those
 * that have the same. A page begins behind the job ?1 with the key ?9, whatever has become of that
 * job since. */
#define KEY                                                                                        \
    "case ?8 when 1 then lower(name) when 2 then -priority when 3 then -top1 when 4 then loss "    \
    "when 5 then -images_per_sec when 6 then ttt_seconds when 7 then -finished_at end"
#define BEHIND                                                                                     \
    " and (?1 = 0 or (?9 is null and " KEY " is null and id < ?1) or "                             \
    "(?9 is not null and (" KEY " > ?9 or " KEY " is null or (" KEY " = ?9 and id < ?1)))) "
_Static_assert(STORE_SORT_NEWEST == 0 && STORE_SORT_NAME == 1 && STORE_SORT_PRIORITY == 2 &&
                   STORE_SORT_FINISHED == 7,
               "the numbers in KEY");

/* format: of what is bound, from ?1 on. */
static sqlite3_stmt *search_query(struct sql *c, const char *sql, const char *format,
                                  const struct store_job_filter *f, struct error *e)
{
    char states[256] = "";
    size_t used = 0;

    for (int state = 0; f->states && state < JOB_STATE_COUNT; state++)
        if (f->states & 1u << state)
            used += (size_t)snprintf(states + used, sizeof states - used, ",%s,",
                                     job_state_name((enum job_state)state));
    if (f->sort == STORE_SORT_NAME)
        return sql_query(c, e, sql, format, f->after, states, f->user, f->name, f->sweep, f->text,
                         f->limit, (int64_t)f->sort, f->after_key);
    return sql_query(c, e, sql, format, f->after, states, f->user, f->name, f->sweep, f->text,
                     f->limit, (int64_t)f->sort, f->after_key ? strtod(f->after_key, NULL) : NAN);
}

/* All jobs in these states. Pages ask for it far more often than jobs change, and to count a
 * hundred thousand takes longer than the rest of the answer: counted once a commit. */
static int count_all(struct store *s, unsigned states, int64_t *total, struct error *e)
{
    uint64_t commits = atomic_load(&s->commits); /* before the count: it may be newer, not older */

    pthread_mutex_lock(&s->counting);
    bool known = s->counted.commits == commits && s->counted.states == states;
    if (known)
        *total = s->counted.jobs;
    pthread_mutex_unlock(&s->counting);
    int status =
        known ? 0 : store_job_count(s, states ? states : (1u << JOB_STATE_COUNT) - 1, total, e);
    if (known || status)
        return status;
    pthread_mutex_lock(&s->counting);
    s->counted.commits = commits;
    s->counted.states = states;
    s->counted.jobs = *total;
    pthread_mutex_unlock(&s->counting);
    return 0;
}

static int search_count(struct sql *c, const struct store_job_filter *f, int64_t *total,
                        struct error *e)
{
    sqlite3_stmt *row = search_query(c, "select count(*) " FOUND, "isssis", f, e);
    int status = row ? sql_row(c, row, e) : -(int)ERR_INTERNAL;

    if (status > 0) {
        *total = sqlite3_column_int64(row, 0);
        sql_done(row);
        status = 0;
    }
    return status;
}

/* Of the last row of a page: what the next one begins behind. */
static char *search_next(sqlite3_stmt *row)
{
    char *next = NULL;
    int written, type = sqlite3_column_type(row, 1);
    long long id = sqlite3_column_int64(row, 0);

    if (type == SQLITE_NULL)
        written = asprintf(&next, "%lld", id);
    else if (type == SQLITE_TEXT)
        written = asprintf(&next, "%lld,%s", id, (const char *)sqlite3_column_text(row, 1));
    else
        written = asprintf(&next, "%lld,%.17g", id, sqlite3_column_double(row, 1));
    return written < 0 ? NULL : next;
}

static int search_ids(struct sql *c, const struct store_job_filter *f, int64_t *ids, size_t *count,
                      char **next, struct error *e)
{
    static const char sql[] =
        "select id, " KEY " as key " FOUND BEHIND "order by key nulls last, id desc limit ?7";
    const char *format = f->sort == STORE_SORT_NAME ? "isssisiis" : "isssisiid";
    sqlite3_stmt *row = search_query(c, sql, format, f, e);
    int status = row ? 1 : -(int)ERR_INTERNAL;

    *count = 0;
    while (status > 0 && (status = sql_row(c, row, e)) > 0) {
        ids[(*count)++] = sqlite3_column_int64(row, 0);
        if (*count == (size_t)f->limit && !(*next = search_next(row))) {
            sql_done(row);
            return error_set(e, ERR_NO_MEMORY, "no memory for a list of jobs");
        }
    }
    return status;
}

int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e)
{
    bool all = !filter->text && !filter->user && !filter->name && !filter->sweep;
    bool plain = all && !filter->sort;
    int64_t *ids = calloc((size_t)filter->limit, sizeof *ids);
    size_t count = 0;

    *jobs = (struct store_jobs){0};
    *next = NULL;
    if (!ids)
        return error_set(e, ERR_NO_MEMORY, "no memory for a list of jobs");
    int status = all ? count_all(s, filter->states, total, e) : 0;
    struct sql *c = sql_read_begin(s);
    if (!all)
        status = search_count(c, filter, total, e);
    if (!status && !plain)
        status = search_ids(c, filter, ids, &count, next, e);
    sql_read_end(s, c);
    if (!status)
        status =
            plain ? store_job_list(s, filter, jobs, e) : store_job_list_ids(s, ids, count, jobs, e);
    if (!status && plain && jobs->count == (size_t)filter->limit &&
        asprintf(next, "%lld", (long long)jobs->items[jobs->count - 1].id) < 0)
        *next = NULL;
    free(ids);
    return status;
}
