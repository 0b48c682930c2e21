#include "daemon/store/find/groups.h"

#include <stdlib.h>

#include "common/buffer.h"
#include "daemon/store/find/find.h"
#include "daemon/store/sql.h"

/* Beside max(), the bare columns are those of the row that has the highest (SQLite's documentation
 * of SELECT, 2.5). */
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

static void groups_append(struct store_groups *groups, sqlite3_stmt *row)
{
    struct store_group *g = &array_add(groups->items, groups->count, groups->room);
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

static sqlite3_stmt *groups_query(struct sql *c, const struct store_job_filter *f, const char *by,
                                  struct error *e)
{
    static const char by_tag[] =
        GROUPS("coalesce(json_quote(tag), 'null')", "job left join job_tag on job_id = job.id");
    static const char by_key[] = GROUPS(FIND_VALUE("?15"), "job");
    struct find_words words;

    find_words_of(f, &words);
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
    sqlite3_stmt *row = groups_query(c, filter, by, e);
    int status;

    *groups = (struct store_groups){0};
    while ((status = sql_row(c, row, e)) > 0)
        groups_append(groups, row);
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
