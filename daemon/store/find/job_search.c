/* Jobs that are looked for: by words, user, name, sweep, tags and a key of their documents,
 * in another order than the newest first. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/store/find/find.h"
#include "daemon/store/sql.h"
#include "daemon/store/store.h"
#include "daemon/store/store_internal.h"

static const char *const sorts[] = {
    [STORE_SORT_NEWEST] = "newest",       [STORE_SORT_NAME] = "name",
    [STORE_SORT_PRIORITY] = "priority",   [STORE_SORT_TOP1] = "top1",
    [STORE_SORT_LOSS] = "loss",           [STORE_SORT_SPEED] = "images_per_sec",
    [STORE_SORT_TIME] = "ttt_seconds",    [STORE_SORT_FINISHED] = "finished_at",
    [STORE_SORT_BEST_TOP1] = "best_top1", [STORE_SORT_DISK] = "disk_bytes",
};

const char *store_sort_name(size_t sort)
{
    return sort < sizeof sorts / sizeof sorts[0] ? sorts[sort] : NULL;
}

/* What a list is sorted by, rising; without it a job stands last, and the newest is first of those
 * that have the same. A page begins behind the job ?13 with the key ?16, whatever has become of
 * that job since. */
#define KEY                                                                                        \
    "case ?15 when 1 then lower(name) when 2 then -priority when 3 then -top1 when 4 then loss "   \
    "when 5 then -images_per_sec when 6 then ttt_seconds when 7 then -finished_at "                \
    "when 8 then -best_top1 when 9 then -disk_bytes end"
#define BEHIND                                                                                     \
    " and (?13 = 0 or (?16 is null and " KEY " is null and id < ?13) or "                          \
    "(?16 is not null and (" KEY " > ?16 or " KEY " is null or (" KEY " = ?16 and id < ?13)))) "
_Static_assert(STORE_SORT_NEWEST == 0 && STORE_SORT_NAME == 1 && STORE_SORT_PRIORITY == 2 &&
                   STORE_SORT_FINISHED == 7 && STORE_SORT_BEST_TOP1 == 8 && STORE_SORT_DISK == 9,
               "the numbers in KEY");

/* Where the search begins: at an index, if the filter has what it is over. */
#define SEARCH(from)                                                                               \
    {                                                                                              \
        "select count(*) from " from FIND_FITS,                                                    \
            "select id, " KEY " as key from " from FIND_FITS BEHIND                                \
            "order by key nulls last, id desc limit ?14"                                           \
    }
static const struct search {
    const char *count, *ids;
} search_all = SEARCH("job where "),
  search_tag = SEARCH("job_tag as first cross join job on job.id = first.job_id "
                      "where first.tag = ?6 and "),
  search_user = SEARCH("job indexed by job_by_submitter where "
                       "submitted_by in " FIND_SUBMITTERS " and "),
  search_sweep = SEARCH("job indexed by job_by_submitter where submitted_by = 'sweep ' || ?4 and "),
  search_finish = SEARCH("job indexed by job_by_finish where finished_at > ?12 and ");

static const struct search *search_of(const struct store_job_filter *f)
{
    return f->tags             ? &search_tag
           : f->sweep          ? &search_sweep
           : f->user           ? &search_user
           : f->finished_after ? &search_finish
                               : &search_all;
}

/* All jobs in these states. Pages ask for it far more often than jobs change, and to count a
 * hundred thousand takes longer than the rest of the answer: counted once a commit. */
static int job_search_count_all(struct store *s, unsigned states, int64_t *total, struct error *e)
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
    struct find_words words;

    find_words_of(f, &words);
    return sql_integer(c, e, total, search_of(f)->count, FIND_FORMAT, FIND_BOUND(f, &words));
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

static sqlite3_stmt *search_query(struct sql *c, const struct store_job_filter *f, struct error *e)
{
    const char *sql = search_of(f)->ids;
    struct find_words words;

    find_words_of(f, &words);
    if (f->sort == STORE_SORT_NAME)
        return sql_query(c, e, sql, FIND_FORMAT "iiis", FIND_BOUND(f, &words), f->after, f->limit,
                         (int64_t)f->sort, f->after_key);
    return sql_query(c, e, sql, FIND_FORMAT "iiid", FIND_BOUND(f, &words), f->after, f->limit,
                     (int64_t)f->sort, f->after_key ? strtod(f->after_key, NULL) : NAN);
}

/* limit: of the page; f asks for one job more, which says whether there is another page. */
static int search_ids(struct sql *c, const struct store_job_filter *f, size_t limit, int64_t *ids,
                      size_t *count, char **next, struct error *e)
{
    sqlite3_stmt *row = search_query(c, f, e);
    int status;

    *count = 0;
    while ((status = sql_row(c, row, e)) > 0) {
        ids[(*count)++] = sqlite3_column_int64(row, 0);
        if (*count == limit && !(*next = search_next(row))) {
            sql_done(row);
            return error_set(e, ERR_NO_MEMORY, "no memory for a list of jobs");
        }
    }
    if (*count > limit) {
        *count = limit;
    } else {
        free(*next);
        *next = NULL;
    }
    return status;
}

static int search_plain(struct store *s, const struct store_job_filter *f, size_t limit,
                        struct store_jobs *jobs, char **next, struct error *e)
{
    int status = store_job_list(s, f, jobs, e);

    if (status || jobs->count <= limit)
        return status;
    store_job_clear(&jobs->items[--jobs->count]);
    if (asprintf(next, "%lld", (long long)jobs->items[limit - 1].id) >= 0)
        return 0;
    *next = NULL;
    store_jobs_clear(jobs);
    return error_set(e, ERR_NO_MEMORY, "no memory for a list of jobs");
}

/* Does nothing but the states narrow the list down? */
static bool search_takes_all(const struct store_job_filter *f)
{
    return !f->text && !f->user && !f->name && !f->sweep && !f->tags && !f->key && !f->label &&
           !f->finished_after;
}

int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e)
{
    bool all = search_takes_all(filter);
    bool plain = all && !filter->sort;
    struct store_job_filter one_more = *filter;
    size_t limit = (size_t)filter->limit, count = 0;
    int64_t *ids = calloc(limit + 1, sizeof *ids);

    *jobs = (struct store_jobs){0};
    one_more.limit++;
    *next = NULL;
    if (!ids)
        return error_set(e, ERR_NO_MEMORY, "no memory for a list of jobs");
    int status = all ? job_search_count_all(s, filter->states, total, e) : 0;
    struct sql *c = sql_read_begin(s);
    if (!all)
        status = search_count(c, filter, total, e);
    if (!status && !plain)
        status = search_ids(c, &one_more, limit, ids, &count, next, e);
    sql_read_end(s, c);
    if (!status)
        status = plain ? search_plain(s, &one_more, limit, jobs, next, e)
                       : store_job_list_ids(s, ids, count, jobs, e);
    free(ids);
    return status;
}
