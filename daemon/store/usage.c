#include "daemon/store/usage.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/text.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

#define BIN_SECONDS 21600.0
#define KEPT_BINS   (3 * 366 * 4) /* three years */
#define HALF_LIVES  10            /* what is older counts less than a thousandth */

int store_usage_end(struct sql *c, int64_t job_id, double now, struct error *e)
{
    int status = sql_run(
        c, e, NULL,
        "insert into usage (user, bin, slot_seconds) "
        "with recursive ran as (select " SQL_USER_OF(
            "job.submitted_by") " as user, slots, "
                                "max(active_since, ?2 - 34560000.0) as since from job where id = "
                                "?1 "
                                "and slots > 0 and "
                                "active_since < ?2), bins(bin) as (select cast(since / 21600 as "
                                "integer) from ran "
                                "union all select bin + 1 from bins where (bin + 1) * 21600.0 < "
                                "?2) "
                                "select user, bin, slots * (min(?2, (bin + 1) * 21600.0) - "
                                "max(since, "
                                "bin * 21600.0)) "
                                "from ran, bins where true "
                                "on conflict (user, bin) do update set slot_seconds = slot_seconds "
                                "+ "
                                "excluded.slot_seconds",
        "id", job_id, now);

    if (status)
        return status;
    return sql_run(c, e, NULL,
                   "delete from usage where bin < ?2 and user = (select " SQL_USER_OF(
                       "job.submitted_by") " from job where id = ?1)",
                   "ii", job_id, (int64_t)(now / BIN_SECONDS) - KEPT_BINS);
}

int store_usage_check_queued(struct sql *c, const char *submitted_by, int64_t most, struct error *e)
{
    int64_t queued;
    int status = sql_one(c, e,
                         "select count(*) from job where state = 'queued' and " SQL_USER_OF(
                             "job.submitted_by") " = coalesce(?1, '')",
                         "s:i", submitted_by, &queued);

    if (status < 0 || queued < most)
        return status < 0 ? status : 0;
    return error_set(
        e, ERR_TOO_MANY,
        "%s has %lld queued job%s, and max_queued_per_user of traind.conf is %lld: wait "
        "until one has started, or cancel one",
        submitted_by ? submitted_by : "whoever has no token", (long long)queued, plural(queued),
        (long long)most);
}

static struct store_use *usage_row(struct store_uses *uses, const char *user)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->items[i].user, user) == 0)
            return &uses->items[i];
    struct store_use *added = &array_add(uses->items, uses->count, uses->room);
    *added = (struct store_use){.user = xstrdup(user)};
    return added;
}

/* The first column is the user. */
typedef void usage_add(struct store_use *use, sqlite3_stmt *row, double now, double half_life);
static int usage_read(struct sql *c, sqlite3_stmt *row, struct store_uses *uses, usage_add *add,
                      const double times[2], struct error *e)
{
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        add(usage_row(uses, (const char *)sqlite3_column_text(row, 0)), row, times[0], times[1]);
    return status;
}

/* A bin counts as if used at its middle. */
static void usage_add_bin(struct store_use *use, sqlite3_stmt *row, double now, double half_life)
{
    double age = now - (sqlite3_column_double(row, 1) + 0.5) * BIN_SECONDS;

    use->slot_seconds += sqlite3_column_double(row, 2) * exp2(-fmax(0, age) / half_life);
}

/* The decayed integral of its slots so far. */
static void usage_add_running(struct store_use *use, sqlite3_stmt *row, double now,
                              double half_life)
{
    int64_t slots = sqlite3_column_int64(row, 1);
    double ran = fmax(0, now - sql_double(row, 2));

    use->running++;
    use->slots += slots;
    if (ran > 0)
        use->slot_seconds += (double)slots * half_life / M_LN2 * -expm1(-M_LN2 * ran / half_life);
}

static void usage_add_queued(struct store_use *use, sqlite3_stmt *row, double now, double half_life)
{
    (void)now;
    (void)half_life;
    use->queued = sqlite3_column_int64(row, 1);
}

static int usage_compare(const void *a, const void *b)
{
    return strcmp(((const struct store_use *)a)->user, ((const struct store_use *)b)->user);
}

int store_usage(struct store *s, double now, double half_life_seconds, struct store_uses *uses,
                struct error *e)
{
    struct sql *c = sql_read_begin(s);
    const double times[2] = {now, half_life_seconds};
    int64_t from = (int64_t)((now - HALF_LIVES * half_life_seconds) / BIN_SECONDS);

    *uses = (struct store_uses){0};
    int status = usage_read(
        c, sql_query(c, e, "select user, bin, slot_seconds from usage where bin >= ?", "i", from),
        uses, usage_add_bin, times, e);
    if (!status)
        status = usage_read(
            c,
            sql_query(
                c, e,
                "select " SQL_USER_OF(
                    "job.submitted_by") ", slots, active_since from job where launcher = 'local' "
                                        "and state in ('starting', 'running', 'evaluating')",
                ""),
            uses, usage_add_running, times, e);
    if (!status)
        status = usage_read(
            c,
            sql_query(c, e,
                      "select " SQL_USER_OF(
                          "job.submitted_by") " as user, count(*) from job where state = 'queued' "
                                              "group by user",
                      ""),
            uses, usage_add_queued, times, e);
    sql_read_end(s, c);
    for (size_t i = 0; i < uses->count; i++)
        uses->slot_seconds += uses->items[i].slot_seconds;
    if (status)
        store_uses_clear(uses);
    else if (uses->count)
        qsort(uses->items, uses->count, sizeof *uses->items, usage_compare);
    return status;
}

void store_uses_clear(struct store_uses *uses)
{
    for (size_t i = 0; i < uses->count; i++)
        free(uses->items[i].user);
    free(uses->items);
    *uses = (struct store_uses){0};
}

double store_uses_share(const struct store_uses *uses, const char *user)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->items[i].user, user) == 0)
            return uses->slot_seconds > 0 ? uses->items[i].slot_seconds / uses->slot_seconds : 0;
    return 0;
}

int store_usage_user(struct store *s, const char *submitted_by, char **user, struct error *e)
{
    if (submitted_by && strncmp(submitted_by, "sweep ", 6) == 0)
        return once_get(s, e, "select " SQL_USER_OF("?1"), "s:s", submitted_by, user);
    *user = xstrdup(submitted_by ? submitted_by : "");
    return 0;
}
