#include "daemon/notice/outbox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/buffer.h"
#include "common/digest.h"
#include "common/xalloc.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

#define TRIM_AT_ONCE 1000

static const char *const states[OUTBOX_STATES] = {
    [OUTBOX_WAITING] = "waiting", [OUTBOX_DELIVERED] = "delivered", [OUTBOX_FAILED] = "failed"};

const char *outbox_state_name(size_t state)
{
    return state < OUTBOX_STATES ? states[state] : NULL;
}

static enum outbox_state outbox_state_of(const char *name)
{
    size_t i = 0;

    while (i < OUTBOX_STATES - 1 && strcmp(states[i], name) != 0)
        i++;
    return (enum outbox_state)i;
}

void outbox_notice_clear(struct outbox_notice *n)
{
    free(n->target);
    free(n->owner);
    free(n->node);
    free(n->body);
    free(n->error);
    *n = (struct outbox_notice){0};
}

void outbox_notices_clear(struct outbox_notices *list)
{
    for (size_t i = 0; i < list->count; i++)
        outbox_notice_clear(&list->items[i]);
    free(list->items);
    *list = (struct outbox_notices){0};
}

/* The result cannot be guessed, because the database's uuid is secret. */
static void outbox_make_uid(const char *uuid, const struct outbox_new *n, char uid[DIGEST_BYTES])
{
    char *text = xasprintf("%s %s %s %s %s", uuid, notice_kind_name(n->kind), n->target,
                           notice_format_name(n->format), n->key);

    digest_text(text, strlen(text), uid);
    free(text);
}

int outbox_add(struct sql *c, const char *uuid, const struct outbox_new *n, int64_t *id,
               struct error *e)
{
    char uid[DIGEST_BYTES];
    char *body = must_alloc(json_dumps(n->body, JSON_COMPACT | JSON_REAL_PRECISION(12)));
    int inserted = 0;

    outbox_make_uid(uuid, n, uid);
    int status = sql_run(
        c, e, &inserted,
        "insert into notice (uid, t, kind, target, format, by_rule, owner, job_id, sweep_id, node, "
        "body, state, next_at) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'waiting', "
        "?2) "
        "on conflict (uid) do nothing",
        "sdsssisnnss", uid, n->t, notice_kind_name(n->kind), n->target,
        notice_format_name(n->format), (int64_t)n->by_rule, n->owner,
        n->job_id > 0 ? n->job_id : (int64_t)-1, n->sweep_id > 0 ? n->sweep_id : (int64_t)-1,
        n->node, body);
    if (id)
        *id = sqlite3_last_insert_rowid(sql_db(c));
    free(body);
    return status ? status : inserted > 0;
}

int outbox_attempted(struct store *s, int64_t id, enum outbox_state state, const char *words,
                     double at, struct error *e)
{
    bool waits = state == OUTBOX_WAITING;

    return once_run(s, false, NULL, e,
                    "update notice set state = ?2, attempts = attempts + 1, error = ?3, next_at = "
                    "coalesce(?4, next_at), done_at = ?5 where id = ?1 and state = 'waiting'",
                    "issdd", id, states[state], words, waits ? at : NAN, waits ? NAN : at);
}

int outbox_trim(struct store *s, double t, int *deleted, struct error *e)
{
    return once_run(s, false, deleted, e,
                    "delete from notice where id in (select id from notice where done_at < ?1 "
                    "and not exists (select 1 from job where job.id = notice.job_id and "
                    "job.state in ('queued', 'starting', 'running', 'evaluating')) limit ?2)",
                    "di", t, (int64_t)TRIM_AT_ONCE);
}

#define COLUMNS                                                                                    \
    "id, uid, t, kind, target, format, by_rule, owner, job_id, sweep_id, node, body, state, "      \
    "attempts, next_at, done_at, error"

static struct outbox_notice outbox_read(sqlite3_stmt *row)
{
    double done = sql_double(row, 15);
    struct outbox_notice n = {
        .id = sqlite3_column_int64(row, 0),
        .t = sqlite3_column_double(row, 2),
        .kind = notice_kind_of((const char *)sqlite3_column_text(row, 3)),
        .target = sql_text(row, 4),
        .format = notice_format_of((const char *)sqlite3_column_text(row, 5)),
        .by_rule = sqlite3_column_int(row, 6) != 0,
        .owner = sql_text(row, 7),
        .job_id = sql_int(row, 8, 0),
        .sweep_id = sql_int(row, 9, 0),
        .node = sql_text(row, 10),
        .body = sql_text(row, 11),
        .state = outbox_state_of((const char *)sqlite3_column_text(row, 12)),
        .attempts = sqlite3_column_int64(row, 13),
        .next_at = sqlite3_column_double(row, 14),
        .done_at = isnan(done) ? 0 : done,
        .error = sql_text(row, 16),
    };

    snprintf(n.uid, sizeof n.uid, "%s", (const char *)sqlite3_column_text(row, 1));
    return n;
}

static int outbox_collect(struct sql *c, sqlite3_stmt *row, size_t max, struct outbox_notices *list,
                          struct error *e)
{
    int status = 0;

    *list = (struct outbox_notices){0};
    while (list->count < max && (status = sql_row(c, row, e)) > 0)
        array_add(list->items, list->count, list->capacity) = outbox_read(row);
    if (status > 0) {
        sql_done(row);
        status = 0;
    }
    if (status)
        outbox_notices_clear(list);
    return status;
}

/* Skips from target to target using only the index, so that thousands of notices waiting for a dead
 * target cost nothing. Tests overtake the other notices of their target. */
#define HEADS                                                                                      \
    "with recursive head (id, target) as ("                                                        \
    "select * from (select id, target from notice indexed by notice_waiting "                      \
    "where state = 'waiting' order by target, id limit 1) union all "                              \
    "select n.id, n.target from head h join notice n on n.id = (select id from notice indexed by " \
    "notice_waiting where state = 'waiting' and target > h.target order by target, id limit 1)) "

#define TURNS                                                                                      \
    HEADS ", turn (id) as (select id from head union select min(id) from notice indexed by "       \
          "notice_tests where state = 'waiting' and kind = 'test' group by target) "

static int outbox_next_at(struct sql *c, double now, double *next_at, struct error *e)
{
    int found = sql_one(c, e,
                        TURNS "select min(n.next_at) from turn join notice n on n.id = turn.id "
                              "where n.next_at > ?",
                        "d:d", now, next_at);

    if (found >= 0 && isnan(*next_at))
        *next_at = INFINITY;
    return found < 0 ? found : 0;
}

int outbox_due(struct store *s, double now, int64_t of_owner, size_t max,
               struct outbox_notices *list, double *next_at, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(
        c, e,
        TURNS ", due (due_id, place) as (select id, row_number() over (partition by by_rule, case "
              "by_rule when 0 then owner end order by next_at, id) from notice where id in (select "
              "id from turn) and next_at <= ?1) select " COLUMNS " from due join notice on id = "
              "due_id where place <= ?2 order by place, next_at, id limit ?3",
        "dii", now, of_owner, (int64_t)max);
    int status = outbox_collect(c, row, max, list, e);

    if (!status)
        status = outbox_next_at(c, now, next_at, e);
    sql_read_end(s, c);
    return status;
}

int outbox_tests(struct sql *c, const char *owner, double t, int64_t *count, double *first,
                 struct error *e)
{
    int found = sql_one(c, e,
                        "select count(*), min(t) from notice where kind = 'test' and owner is ? "
                        "and t > ?",
                        "sd:id", owner, t, count, first);

    return found < 0 ? found : 0;
}

int outbox_list(struct store *s, const struct outbox_filter *f, struct outbox_notices *list,
                struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(
        c, e,
        "select " COLUMNS " from notice where (?1 = 0 or id < ?1) and (?2 = 0 or job_id = ?2) and "
        "(?3 = 0 or sweep_id = ?3) and (?4 is null or state = ?4) and (?5 or (by_rule = 0 and (?6 "
        "or owner is ?7 or owner is null))) and (?9 = 0 or id = ?9) order by id desc limit ?8",
        "iiisiisii", f->after, f->job_id, f->sweep_id, f->state, (int64_t)f->everything,
        (int64_t)f->of_anybody, f->owner, f->limit, f->id);
    int status = outbox_collect(c, row, (size_t)f->limit, list, e);

    sql_read_end(s, c);
    return status;
}

int outbox_waiting(struct store *s, int64_t *count, struct error *e)
{
    return once_get(s, e, "select count(*) from notice where state = 'waiting'", ":i", count);
}
