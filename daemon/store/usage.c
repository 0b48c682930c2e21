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
#define HALF_LIVES  10            /* older use counts less than a thousandth */

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

int store_usage_check_queued(struct sql *c, const char *submitted_by, int64_t max, struct error *e)
{
    int64_t queued;
    int status = sql_one(c, e,
                         "select count(*) from job where state = 'queued' and " SQL_USER_OF(
                             "job.submitted_by") " = coalesce(?1, '')",
                         "s:i", submitted_by, &queued);

    if (status < 0 || queued < max)
        return status < 0 ? status : 0;
    return error_set(
        e, ERR_TOO_MANY,
        "%s has %lld queued job%s, and max_queued_per_user of traind.conf is %lld: wait "
        "until one has started, or cancel one",
        submitted_by ? submitted_by : "users without a token", (long long)queued, plural(queued),
        (long long)max);
}

static struct store_use *usage_row(struct store_uses *uses, const char *user)
{
    for (size_t i = 0; i < uses->count; i++)
        if (strcmp(uses->items[i].user, user) == 0)
            return &uses->items[i];
    struct store_use *added = &array_add(uses->items, uses->count, uses->capacity);
    *added = (struct store_use){.user = xstrdup(user)};
    return added;
}

static int usage_compare(const void *a, const void *b)
{
    return strcmp(((const struct store_use *)a)->user, ((const struct store_use *)b)->user);
}

#define USER SQL_USER_OF("job.submitted_by")

int store_usage(struct store *s, double now, double half_life_seconds, struct store_uses *uses,
                struct error *e)
{
    enum { BIN, RUNNING, QUEUED };
    struct sql *c = sql_read_begin(s);
    int64_t from = (int64_t)((now - HALF_LIVES * half_life_seconds) / BIN_SECONDS);
    sqlite3_stmt *row = sql_query(
        c, e,
        "select user, 0, bin, slot_seconds from usage where bin >= ? union all "
        "select " USER ", 1, slots, active_since from job where launcher = 'local' "
        "and state in ('starting', 'running', 'evaluating') union all "
        "select " USER " as user, 2, count(*), null from job where state = 'queued' group by user",
        "i", from);
    int status;

    *uses = (struct store_uses){0};
    while ((status = sql_row(c, row, e)) > 0) {
        struct store_use *use = usage_row(uses, (const char *)sqlite3_column_text(row, 0));
        double number = sqlite3_column_double(row, 2), value = sql_double(row, 3);
        switch (sqlite3_column_int(row, 1)) {
        case BIN: /* counts as used in the middle of the bin */
            use->slot_seconds +=
                value * exp2(-fmax(0, now - (number + 0.5) * BIN_SECONDS) / half_life_seconds);
            break;
        case RUNNING: /* the decayed integral of its slots since its start */
            use->running++;
            use->slots += (int64_t)number;
            if (now > value)
                use->slot_seconds += number * half_life_seconds / M_LN2 *
                                     -expm1(-M_LN2 * (now - value) / half_life_seconds);
            break;
        case QUEUED:
            use->queued = (int64_t)number;
        }
    }
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
