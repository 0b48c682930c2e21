#include "daemon/store/audit.h"

#include <stdlib.h>

#include "common/buffer.h"
#include "common/log.h"
#include "daemon/store/once.h"
#include "daemon/store/sql.h"

static const char *const actions[STORE_AUDIT_COUNT] = {
    [STORE_AUDIT_JOB_SUBMIT] = "job.submit",     [STORE_AUDIT_JOB_CANCEL] = "job.cancel",
    [STORE_AUDIT_JOB_HOLD] = "job.hold",         [STORE_AUDIT_JOB_RELEASE] = "job.release",
    [STORE_AUDIT_JOB_PRIORITY] = "job.priority", [STORE_AUDIT_JOB_LABEL] = "job.label",
    [STORE_AUDIT_JOB_RESUME] = "job.resume",     [STORE_AUDIT_JOB_REMOVE] = "job.remove",
    [STORE_AUDIT_JOB_IMPORT] = "job.import",     [STORE_AUDIT_SWEEP_SUBMIT] = "sweep.submit",
    [STORE_AUDIT_SWEEP_CANCEL] = "sweep.cancel", [STORE_AUDIT_TOKEN_CREATE] = "token.create",
    [STORE_AUDIT_TOKEN_REVOKE] = "token.revoke", [STORE_AUDIT_BACKUP] = "backup",
    [STORE_AUDIT_NOTICE_TEST] = "notice.test",   [STORE_AUDIT_SPEED_ADD] = "speed.add",
};

const char *store_audit_action(size_t i)
{
    return i < STORE_AUDIT_COUNT ? actions[i] : NULL;
}

int store_audit_write(struct sql *c, const struct store_audit *a, struct error *e)
{
    return sql_run(
        c, e, NULL, "insert into audit (t, by, action, target, detail) values (?, ?, ?, ?, ?)",
        "dssns", a->t, a->by, actions[a->action], a->target > 0 ? a->target : -1, a->detail);
}

void store_audit_add(struct store *s, const struct store_audit *a)
{
    struct error e;
    struct sql *c = sql_write_begin(s, true, &e);

    if (!c || sql_write_end(s, c, store_audit_write(c, a, &e), &e))
        log_warning("cannot write the audit log: %s", e.text);
}

int store_audit_trim(struct store *s, double t, int64_t limit, int *deleted, struct error *e)
{
    return once_run(s, false, deleted, e,
                    "delete from audit where id in (select id from "
                    "(select id, t from audit order by id limit ?) where t < ?)",
                    "id", limit, t);
}

static int audit_append(sqlite3_stmt *row, void *list, struct error *e)
{
    struct store_audit_lines *lines = list;

    (void)e;
    array_add(lines->items, lines->count, lines->capacity) = (struct store_audit_line){
        .id = sqlite3_column_int64(row, 0),
        .t = sqlite3_column_double(row, 1),
        .by = sql_text(row, 2),
        .action = sql_text(row, 3),
        .target = sql_int(row, 4, 0),
        .detail = sql_text(row, 5),
    };
    return 0;
}

int store_audit_list(struct store *s, const struct store_audit_filter *f,
                     struct store_audit_lines *lines, struct error *e)
{
    *lines = (struct store_audit_lines){0};
    int status = once_each(
        s, audit_append, lines, e,
        "select id, t, by, action, target, detail from audit where (?1 = 0 or id < ?1) "
        "and (?2 is null or by in (?2, 'user:' || ?2, 'token:' || ?2)) "
        "and (?3 is null or action = ?3) and (?4 = 0 or target = ?4) order by id desc limit ?5",
        "issii", f->after, f->by, f->action, f->target, f->limit);
    if (status)
        store_audit_lines_clear(lines);
    return status;
}

void store_audit_lines_clear(struct store_audit_lines *lines)
{
    for (size_t i = 0; i < lines->count; i++) {
        free(lines->items[i].by);
        free(lines->items[i].action);
        free(lines->items[i].detail);
    }
    free(lines->items);
    *lines = (struct store_audit_lines){0};
}
