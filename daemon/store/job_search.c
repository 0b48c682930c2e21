#include "daemon/store/job_search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/xalloc.h"
#include "daemon/store/sql.h"
#include "daemon/store/store_internal.h"

/* JSON text; null if written by an older version without this key. */
#define FIND_VALUE(path) "coalesce(spec -> " path ", 'null')"

/* ?2 with and without a prefix, and the sweeps of that user, which own their jobs. */
#define FIND_NAMES "?2, 'user:' || ?2, 'token:' || ?2"
#define FIND_SUBMITTERS                                                                            \
    "(values (?2), ('user:' || ?2), ('token:' || ?2) union all "                                   \
    "select 'sweep ' || its.id from sweep as its where its.submitted_by in (" FIND_NAMES "))"
#define FIND_FITS                                                                                  \
    "(?1 = '' or instr(?1, ',' || state || ',')) "                                                 \
    "and (?2 is null or submitted_by in " FIND_SUBMITTERS ") "                                     \
    "and (?3 is null or instr(lower(coalesce(name, '')), lower(?3))) "                             \
    "and (?4 = 0 or submitted_by = 'sweep ' || ?4) "                                               \
    "and (?7 is null or ?8 = (select count(*) from job_tag as its where its.job_id = job.id "      \
    "and instr(?7, ',' || its.tag || ','))) "                                                      \
    "and (?11 is null or failure_label = ?11) "                                                    \
    "and (?9 is null or " FIND_VALUE(                                                              \
        "?9") " = ?10) "                                                                           \
              "and (?12 = 0 or finished_at > ?12) "                                                \
              "and (?5 is null or id = ?5 or instr(lower(coalesce(name, '') || char(10) || "       \
              "coalesce(reason, '') || char(10) || coalesce(submitted_by, '') || char(10) || "     \
              "coalesce(note, '') || char(10) || coalesce((select group_concat(its.tag, "          \
              "char(10)) "                                                                         \
              "from job_tag as its where its.job_id = job.id), '') || char(10) || "                \
              "coalesce(json_extract(spec, '$.model.arch'), '') || char(10) || "                   \
              "coalesce(json_extract(spec, '$.data.train'), '')), lower(?5)))"

/* ?1 to ?12 for sql_query; ?6 is the first tag, used as the starting point of some statements. */
#define FIND_FORMAT "sssisssisssi"
#define FIND_BOUND(f, w)                                                                           \
    (w)->states, (f)->user, (f)->name, (f)->sweep, (f)->text, (w)->tag, (w)->tags, (w)->tag_count, \
        (f)->key, (f)->value, (f)->label, (f)->finished_after

struct search_words {
    char states[256];       /* ",queued,,running,"; "": all */
    const char *tag, *tags; /* the first tag, and all as ",a,b,"; NULL: any */
    int64_t tag_count;
    char tag_text[STORE_TAGS_BYTES], tags_text[STORE_TAGS_BYTES + 2];
};

static void search_states(unsigned states, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (int state = 0; states && state < JOB_STATE_COUNT; state++)
        if (states & 1u << state)
            used += (size_t)snprintf(text + used, bytes - used, ",%s,",
                                     job_state_name((enum job_state)state));
}

static void search_words(const struct store_job_filter *filter, struct search_words *w)
{
    const char *tags = filter->tags;

    search_states(filter->states, w->states, sizeof w->states);
    w->tag = w->tags = NULL;
    w->tag_count = 0;
    if (!tags)
        return;
    snprintf(w->tag_text, sizeof w->tag_text, "%.*s", (int)strcspn(tags, ","), tags);
    snprintf(w->tags_text, sizeof w->tags_text, ",%s,", tags);
    w->tag = w->tag_text;
    w->tags = w->tags_text;
    for (const char *at = w->tags_text; (at = strchr(at + 1, ','));)
        w->tag_count++;
}

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

/* Ascending; jobs without a key come last, newest first. A page begins after job ?13 with key ?16,
 * even if that job has changed since. */
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

/* Starts from an index if the filter has its column. */
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

/* Caches the total per commit: pages request it more often than jobs change, and counting 100,000
 * jobs takes longer than the rest of the query. */
static int job_search_count_all(struct store *s, unsigned states, int64_t *total, struct error *e)
{
    uint64_t commits =
        atomic_load(&s->commits); /* read first: the count may be newer than this, but not older */

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
    struct search_words words;

    search_words(f, &words);
    int found = sql_one(c, e, search_of(f)->count, FIND_FORMAT ":i", FIND_BOUND(f, &words), total);
    return found < 0 ? found : 0;
}

/* Returns the position of the next page, after the last row. */
static char *search_next(sqlite3_stmt *row)
{
    int type = sqlite3_column_type(row, 1);
    long long id = sqlite3_column_int64(row, 0);

    if (type == SQLITE_NULL)
        return xasprintf("%lld", id);
    if (type == SQLITE_TEXT)
        return xasprintf("%lld,%s", id, (const char *)sqlite3_column_text(row, 1));
    return xasprintf("%lld,%.17g", id, sqlite3_column_double(row, 1));
}

static sqlite3_stmt *search_query(struct sql *c, const struct store_job_filter *f, struct error *e)
{
    const char *sql = search_of(f)->ids;
    struct search_words words;

    search_words(f, &words);
    if (f->sort == STORE_SORT_NAME)
        return sql_query(c, e, sql, FIND_FORMAT "iiis", FIND_BOUND(f, &words), f->after, f->limit,
                         (int64_t)f->sort, f->after_key);
    return sql_query(c, e, sql, FIND_FORMAT "iiid", FIND_BOUND(f, &words), f->after, f->limit,
                     (int64_t)f->sort, f->after_key ? strtod(f->after_key, NULL) : NAN);
}

/* f->limit is limit + 1, to find out whether there is another page. */
static int search_ids(struct sql *c, const struct store_job_filter *f, size_t limit, int64_t *ids,
                      size_t *count, char **next, struct error *e)
{
    sqlite3_stmt *row = search_query(c, f, e);
    int status;

    *count = 0;
    while ((status = sql_row(c, row, e)) > 0) {
        ids[(*count)++] = sqlite3_column_int64(row, 0);
        if (*count == limit)
            *next = search_next(row);
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
    *next = xasprintf("%lld", (long long)jobs->items[limit - 1].id);
    return 0;
}

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
    int64_t *ids = xcalloc(limit + 1, sizeof *ids);

    *jobs = (struct store_jobs){0};
    one_more.limit++;
    *next = NULL;
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

/* Bare columns beside max() come from the row with the maximum (SQLite's SELECT, 2.5). */
#define GROUPS(value, from)                                                                        \
    "select " value " as value, count(*) as jobs, "                                                \
    "sum(state = 'queued'), sum(state = 'starting'), sum(state = 'running'), "                     \
    "sum(state = 'evaluating'), sum(state = 'succeeded'), sum(state = 'failed'), "                 \
    "sum(state = 'cancelled'), sum(step * coalesce(global_batch, 0)), "                            \
    "avg(case when state = 'succeeded' and train_steps > 0 then ttt_seconds end) as mean, "        \
    "max(best_top1) as best, id, name, best_top1_step, best_top1_epoch, best_top1_at, "            \
    "count(*) over () from " from " where " FIND_FITS " group by value "                           \
    "order by case ?14 when 1 then null when 6 then mean when 8 then -best else -count(*) end "    \
    "nulls last, value limit ?13"
_Static_assert(JOB_QUEUED == 0 && JOB_CANCELLED == 6 && JOB_STATE_COUNT == 7,
               "the states in their order");
_Static_assert(STORE_SORT_NAME == 1 && STORE_SORT_TIME == 6 && STORE_SORT_BEST_TOP1 == 8,
               "the numbers behind order by");

static void search_append_group(struct store_groups *groups, sqlite3_stmt *row)
{
    struct store_group *g = &array_add(groups->items, groups->count, groups->capacity);
    bool evaluated = sqlite3_column_type(row, 11) != SQLITE_NULL;
    *g = (struct store_group){
        .value = sql_text(row, 0),
        .jobs = sqlite3_column_int64(row, 1),
        .images = sqlite3_column_int64(row, 9),
        .mean_ttt_seconds = sql_double(row, 10),
        .best_top1 = sql_double(row, 11),
        .best_id = evaluated ? sqlite3_column_int64(row, 12) : 0,
        .best_name = evaluated ? sql_text(row, 13) : NULL,
        .best_step = sqlite3_column_int64(row, 14),
        .best_epoch = sql_double(row, 15),
        .best_at = sql_double(row, 16),
    };
    for (int i = 0; i < JOB_STATE_COUNT; i++)
        g->states[i] = sqlite3_column_int64(row, 2 + i);
    groups->total = sqlite3_column_int64(row, 17);
}

static sqlite3_stmt *search_groups_query(struct sql *c, const struct store_job_filter *f,
                                         const char *by, struct error *e)
{
    static const char by_tag[] =
        GROUPS("coalesce(json_quote(tag), 'null')", "job left join job_tag on job_id = job.id");
    static const char by_key[] = GROUPS(FIND_VALUE("?15"), "job");
    struct search_words words;

    search_words(f, &words);
    if (!by)
        return sql_query(c, e, by_tag, FIND_FORMAT "ii", FIND_BOUND(f, &words), f->limit,
                         (int64_t)f->sort);
    return sql_query(c, e, by_key, FIND_FORMAT "iis", FIND_BOUND(f, &words), f->limit,
                     (int64_t)f->sort, by);
}

int store_job_groups(struct store *s, const struct store_job_filter *filter, const char *by,
                     struct store_groups *groups, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = search_groups_query(c, filter, by, e);
    int status;

    *groups = (struct store_groups){0};
    while ((status = sql_row(c, row, e)) > 0)
        search_append_group(groups, row);
    sql_read_end(s, c);
    if (status)
        store_groups_clear(groups);
    return status;
}

void store_groups_clear(struct store_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        free(groups->items[i].value);
        free(groups->items[i].best_name);
    }
    free(groups->items);
    *groups = (struct store_groups){0};
}
