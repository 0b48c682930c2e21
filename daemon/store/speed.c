#include "daemon/store/speed.h"

#include "common/run/speed.h"
#include "daemon/store/audit.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

/* Limits are per owner, so that nobody can displace the speeds of others. */
#define SPEEDS_KEPT     100   /* per kind of job: more than any query uses */
#define SPEEDS_KEPT_ALL 20000 /* over all kinds, because clients can add speeds */

static int speed_insert(struct sql *c, const struct store_speed *speed, struct error *e)
{
    const struct plan_sample *sample = &speed->sample;

    return sql_run(c, e, NULL,
                   "insert into speed (key, cpu, t, workers, batch, image_seconds, update_seconds, "
                   "exchange_seconds, owner) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                   "ssdiiddds", speed->key, speed->cpu, speed->t, sample->workers, sample->batch,
                   sample->image_seconds, sample->update_seconds, sample->exchange_seconds,
                   speed->owner);
}

int store_speed_add(struct store *s, const struct store_speed *speed,
                    const struct store_audit *audit, struct error *e)
{
    struct sql *c = sql_write_begin(s, audit != NULL, e);

    if (!c)
        return -(int)e->code;
    bool failed = speed_insert(c, speed, e) ||
                  sql_run(c, e, NULL,
                          "delete from speed where key = ?1 and cpu = ?2 and owner is ?3 and id <= "
                          "(select id from speed where key = ?1 and cpu = ?2 and owner is ?3 "
                          "order by id desc limit 1 offset ?4)",
                          "sssi", speed->key, speed->cpu, speed->owner, (int64_t)SPEEDS_KEPT) ||
                  sql_run(c, e, NULL,
                          "delete from speed where owner is ?1 and id <= (select id from speed "
                          "where owner is ?1 order by id desc limit 1 offset ?2)",
                          "si", speed->owner, (int64_t)SPEEDS_KEPT_ALL) ||
                  (audit && store_audit_write(c, audit, e));
    return sql_write_end(s, c, failed ? -(int)e->code : 0, e);
}

int store_speed_find(struct store *s, const char *key, const char *cpu, const char *by,
                     struct plan_sample *samples, size_t max, size_t *count, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(
        c, e,
        "select workers, batch, image_seconds, update_seconds, exchange_seconds "
        "from speed where key = ?1 and cpu = ?2 and (owner is null or owner = " SQL_USER_OF(
            "?3") ") order by id desc",
        "sss", key, cpu, by);
    int status = 0;

    *count = 0;
    while (*count < max && (status = sql_row(c, row, e)) > 0) {
        samples[*count] = (struct plan_sample){
            .workers = sqlite3_column_int64(row, 0),
            .batch = sqlite3_column_int64(row, 1),
            .image_seconds = sqlite3_column_double(row, 2),
            .update_seconds = sqlite3_column_double(row, 3),
            .exchange_seconds = sqlite3_column_double(row, 4),
        };
        *count += speed_sample_is_sound(&samples[*count]);
    }
    if (status > 0)
        sql_done(row);
    sql_read_end(s, c);
    return status < 0 ? status : 0;
}

int store_job_set_forecast(struct store *s, int64_t id, const char *forecast, struct error *e)
{
    return once_run(s, false, NULL, e, "update job set forecast = ?2 where id = ?1", "is", id,
                    forecast);
}

int store_forecast_each(struct store *s, int64_t max,
                        void (*visit)(void *context, const char *forecast), void *context,
                        struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e,
                                  "select forecast from job where forecast is not null "
                                  "and imported_attempts is null order by id desc limit ?",
                                  "i", max);
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        visit(context, (const char *)sqlite3_column_text(row, 0));
    sql_read_end(s, c);
    return status;
}
