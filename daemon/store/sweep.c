#include "daemon/store/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/json.h"
#include "common/xalloc.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

void store_sweep_clear(struct store_sweep *sweep)
{
    free(sweep->name);
    free(sweep->submitted_by);
    free(sweep->state);
    json_decref(sweep->document);
    for (size_t i = 0; i < sweep->count; i++) {
        free(sweep->trials[i].point);
        free(sweep->trials[i].spec);
        free(sweep->trials[i].state);
        free(sweep->trials[i].reason);
    }
    free(sweep->trials);
    memset(sweep, 0, sizeof *sweep);
}

static int sweep_insert_trials(struct sql *c, int64_t id, const struct store_trial *trials,
                               size_t count, struct error *e)
{
    int status = 0;

    for (size_t i = 0; i < count && !status; i++)
        status =
            sql_run(c, e, NULL,
                    "insert or ignore into sweep_trial (sweep_id, rung, number, point, spec, "
                    "state) values (?, ?, ?, ?, ?, 'waiting')",
                    "iiiss", id, trials[i].rung, trials[i].number, trials[i].point, trials[i].spec);
    return status;
}

static int sweep_find_by_key(struct sql *c, const struct store_key *key, int64_t *id,
                             struct error *e)
{
    return store_find_key(c,
                          "select id, request_digest is ?2 from sweep "
                          "where idempotency_key = " STORE_KEY("?1", "?3"),
                          "sweep", key, id, e);
}

int store_sweep_find_key(struct store *s, const struct store_key *key, int64_t *id, struct error *e)
{
    struct sql *c = sql_read_begin(s);

    *id = 0;
    int found = sweep_find_by_key(c, key, id, e);
    sql_read_end(s, c);
    return found < 0 ? found : 0;
}

static int sweep_insert(struct sql *c, struct store_sweep *sweep, const struct store_key *key,
                        struct error *e)
{
    char *document = must_alloc(json_to_text(sweep->document, JSON_COMPACT));
    int status = sql_run(c, e, NULL,
                         "insert into sweep (name, state, document, train_images, eval_images, "
                         "created_at, idempotency_key, request_digest, submitted_by) values (?1, "
                         "'running', ?2, ?3, ?4, ?5, " STORE_KEY("?6", "?8") ", ?7, ?8)",
                         "ssiidsss", sweep->name, document, sweep->train_images, sweep->eval_images,
                         sweep->created_at, key->key, key->digest, sweep->submitted_by);

    free(document);
    sweep->id = sqlite3_last_insert_rowid(sql_db(c));
    return status ? status : sweep_insert_trials(c, sweep->id, sweep->trials, sweep->count, e);
}

int store_sweep_insert(struct store *s, struct store_sweep *sweep, const struct store_key *key,
                       bool *existed, struct error *e)
{
    struct sql *c = sql_write_begin(s, true, e);

    if (!c)
        return -(int)e->code;
    int found = sweep_find_by_key(c, key, &sweep->id, e);
    *existed = found > 0;
    return sql_write_end(s, c, found ? (found > 0 ? 0 : found) : sweep_insert(c, sweep, key, e), e);
}

static int sweep_check_running(struct sql *c, int64_t id, struct error *e)
{
    bool running;
    int found =
        sql_one(c, e, "select state = 'running' from sweep where id = ?", "i:b", id, &running);

    if (found < 0)
        return found;
    if (found == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no sweep %lld", (long long)id);
    if (!running)
        return error_set(e, ERR_CONFLICT, "sweep %lld has already ended", (long long)id);
    return 0;
}

int store_sweep_add_trials(struct store *s, int64_t id, const struct store_trial *trials,
                           size_t count, struct error *e)
{
    return sql_transaction(s, true, c, e,
                           sweep_check_running(c, id, e)
                               ? -(int)e->code
                               : sweep_insert_trials(c, id, trials, count, e));
}

int store_sweep_set_trial(struct store *s, int64_t id, const struct store_trial *t, struct error *e)
{
    return once_run(s, true, NULL, e,
                    "update sweep_trial set state = ?4, job_id = ?5, metric = ?6, reason = ?7 "
                    "where sweep_id = ?1 and rung = ?2 and number = ?3",
                    "iiisnds", id, t->rung, t->number, t->state,
                    t->job_id > 0 ? t->job_id : (int64_t)-1, t->metric, t->reason);
}

int store_sweep_end(struct store *s, int64_t id, const char *state, double now, struct error *e)
{
    struct sql *c = sql_write_begin(s, true, e);

    struct store_fact fact = {.what = STORE_FACT_SWEEP, .id = id, .state = state, .t = now};

    if (!c)
        return -(int)e->code;
    bool failed =
        sweep_check_running(c, id, e) ||
        sql_run(c, e, NULL, "update sweep set state = ?2, finished_at = ?3 where id = ?1", "isd",
                id, state, now) ||
        sql_run(c, e, NULL,
                "update sweep_trial set state = 'cancelled' where sweep_id = ? and state = "
                "'waiting'",
                "i", id) ||
        store_call_hook(c, &fact, e);
    return sql_write_end(s, c, failed ? -(int)e->code : 0, e);
}

static int sweep_read_trials(struct sql *c, struct store_sweep *sweep, struct error *e)
{
    sqlite3_stmt *row = sql_query(c, e,
                                  "select rung, number, point, spec, state, job_id, metric, reason "
                                  "from sweep_trial where sweep_id = ? order by rung, number",
                                  "i", sweep->id);
    int status;

    while ((status = sql_row(c, row, e)) > 0)
        array_add(sweep->trials, sweep->count, sweep->capacity) = (struct store_trial){
            .rung = sqlite3_column_int64(row, 0),
            .number = sqlite3_column_int64(row, 1),
            .point = sql_text(row, 2),
            .spec = sql_text(row, 3),
            .state = sql_text(row, 4),
            .job_id = sql_int(row, 5, 0),
            .metric = sql_double(row, 6),
            .reason = sql_text(row, 7),
        };
    return status;
}

int store_sweep_get(struct store *s, int64_t id, struct store_sweep *sweep, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    char *document = NULL;

    *sweep = (struct store_sweep){0};
    int found = sql_one(c, e,
                        "select id, name, state, document, train_images, eval_images, created_at, "
                        "finished_at, submitted_by from sweep where id = ?",
                        "i:isssiidds", id, &sweep->id, &sweep->name, &sweep->state, &document,
                        &sweep->train_images, &sweep->eval_images, &sweep->created_at,
                        &sweep->finished_at, &sweep->submitted_by);
    int status = found > 0 ? sweep_read_trials(c, sweep, e) : found;
    sql_read_end(s, c);
    if (found > 0)
        sweep->document = json_loads(document, 0, NULL);
    free(document);
    if (status)
        store_sweep_clear(sweep);
    if (found == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no sweep %lld", (long long)id);
    return status;
}

int store_sweep_ids(struct store *s, bool running, int64_t after, int64_t *ids, size_t max,
                    size_t *count, struct error *e)
{
    return once_integers(
        s, ids, count, e,
        "select id from sweep where (?1 = 0 or state = 'running') and (?3 = 0 or id < ?3) "
        "order by id desc limit ?2",
        "iii", (int64_t)running, (int64_t)max, after);
}

int store_sweep_ending(struct store *s, int64_t *ids, size_t max, size_t *count, struct error *e)
{
    return once_integers(s, ids, count, e,
                         "select id from sweep where state <> 'running' and exists "
                         "(select 1 from sweep_trial where sweep_id = sweep.id and "
                         "sweep_trial.state = 'submitted') order by id limit ?",
                         "i", (int64_t)max);
}
