#include "daemon/store/sql.h"

#include <math.h>
#include <string.h>

#include "common/assert_always.h"
#include "common/clock.h"
#include "common/xalloc.h"
#include "daemon/store/store_internal.h"

int sql_error(sqlite3 *db, struct error *e, const char *what)
{
    int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    const char *words = db ? sqlite3_errmsg(db) : "out of memory";

    switch (code & 0xff) {
    case SQLITE_FULL:
        return error_set(e, ERR_NO_SPACE, "%s: the disk of the state folder is full", what);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return error_set(e, ERR_CORRUPT, "%s: the database is damaged (%s). " STORE_DAMAGED_ADVICE,
                         what, words);
    case SQLITE_NOMEM:
        return error_set(e, ERR_NO_MEMORY, "%s: out of memory", what);
    case SQLITE_BUSY:
        return error_set(
            e, ERR_BUSY,
            "%s: another program has locked the database. Try again, or close that program", what);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_IOERR:
        return error_set(e, ERR_IO, "%s: %s; check that the state folder is writable", what, words);
    default:
        return error_set(e, ERR_INTERNAL, "%s: %s", what, words);
    }
}

sqlite3 *sql_db(struct sql *c)
{
    assert_object(c, SQL_MAGIC);
    return c->db;
}

static sqlite3_stmt *sql_prepared(struct sql *c, const char *sql)
{
    for (int i = 0; i < c->count; i++)
        if (c->statements[i].sql == sql)
            return c->statements[i].statement;
    if (c->count == SQL_STATEMENTS)
        return NULL;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL))
        return NULL;
    c->statements[c->count].sql = sql;
    c->statements[c->count++].statement = statement;
    return statement;
}

/* copy: the value may not outlive this call. */
static int sql_bind_one(sqlite3_stmt *statement, int place, char kind, bool copy, va_list *values)
{
    void (*lives)(void *) = copy ? SQLITE_TRANSIENT : SQLITE_STATIC;

    switch (kind) {
    case 'i':
        return sqlite3_bind_int64(statement, place, va_arg(*values, int64_t));
    case 'n': {
        int64_t value = va_arg(*values, int64_t);
        return value < 0 ? sqlite3_bind_null(statement, place)
                         : sqlite3_bind_int64(statement, place, value);
    }
    case 'b': {
        const void *bytes = va_arg(*values, const void *);
        return sqlite3_bind_blob(statement, place, bytes, (int)va_arg(*values, int64_t), lives);
    }
    case 's':
        return sqlite3_bind_text(statement, place, va_arg(*values, const char *), -1, lives);
    default: {
        double value = va_arg(*values, double);
        return isnan(value) || (kind == 't' && value == 0)
                   ? sqlite3_bind_null(statement, place)
                   : sqlite3_bind_double(statement, place, value);
    }
    }
}

static sqlite3_stmt *sql_run_query(struct sql *c, struct error *e, const char *sql,
                                   const char *format, bool copy, va_list *values)
{
    sqlite3_stmt *statement = sql_prepared(c, sql);

    assert_object(c, SQL_MAGIC);
    if (!statement) {
        sql_error(c->db, e, "preparing a statement");
        return NULL;
    }
    sqlite3_reset(statement);
    for (int i = 0; format[i] && format[i] != ':'; i++) {
        if (sql_bind_one(statement, i + 1, format[i], copy, values) != SQLITE_OK) {
            sql_error(c->db, e, "binding a value");
            return NULL;
        }
    }
    return statement;
}

sqlite3_stmt *sql_query_values(struct sql *c, struct error *e, const char *sql, const char *format,
                               va_list *values)
{
    return sql_run_query(c, e, sql, format, true, values);
}

sqlite3_stmt *sql_query(struct sql *c, struct error *e, const char *sql, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    sqlite3_stmt *statement = sql_run_query(c, e, sql, format, true, &values);
    va_end(values);
    return statement;
}

int sql_row(struct sql *c, sqlite3_stmt *statement, struct error *e)
{
    assert_object(c, SQL_MAGIC);
    if (!statement)
        return -(int)e->code;
    int code = sqlite3_step(statement);

    if (code == SQLITE_ROW)
        return 1;
    int status = code == SQLITE_DONE ? 0 : sql_error(c->db, e, "database");
    sqlite3_reset(statement);
    return status;
}

void sql_done(sqlite3_stmt *statement)
{
    sqlite3_reset(statement);
}

/* Stores the null value if there is no row. */
static void sql_take_column(sqlite3_stmt *row, int column, char kind, va_list *values)
{
    switch (kind) {
    case 'i':
        *va_arg(*values, int64_t *) = row ? sqlite3_column_int64(row, column) : 0;
        return;
    case 'b':
        *va_arg(*values, bool *) = row && sqlite3_column_int(row, column);
        return;
    case 's':
        *va_arg(*values, char **) = row ? sql_text(row, column) : NULL;
        return;
    default:
        *va_arg(*values, double *) = row ? sql_double(row, column) : NAN;
    }
}

int sql_one_values(struct sql *c, struct error *e, const char *sql, const char *format,
                   va_list *values)
{
    sqlite3_stmt *row = sql_run_query(c, e, sql, format, false, values);
    const char *columns = strchr(format, ':');
    int found = sql_row(c, row, e);

    for (int i = 0; columns && columns[i + 1]; i++)
        sql_take_column(found > 0 ? row : NULL, i, columns[i + 1], values);
    if (found > 0)
        sqlite3_reset(row);
    return found;
}

int sql_one(struct sql *c, struct error *e, const char *sql, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int found = sql_one_values(c, e, sql, format, &values);
    va_end(values);
    return found;
}

int sql_run_values(struct sql *c, struct error *e, int *changed, const char *sql,
                   const char *format, va_list *values)
{
    int found = sql_one_values(c, e, sql, format, values);

    if (changed)
        *changed = found < 0 ? 0 : sqlite3_changes(c->db);
    return found < 0 ? found : 0;
}

int sql_run(struct sql *c, struct error *e, int *changed, const char *sql, const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int status = sql_run_values(c, e, changed, sql, format, &values);
    va_end(values);
    return status;
}

char *sql_text(sqlite3_stmt *statement, int column)
{
    return xstrdup_or_null((const char *)sqlite3_column_text(statement, column));
}

double sql_double(sqlite3_stmt *statement, int column)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(statement, column);
}

int64_t sql_int(sqlite3_stmt *statement, int column, int64_t fallback)
{
    return sqlite3_column_type(statement, column) == SQLITE_NULL
               ? fallback
               : sqlite3_column_int64(statement, column);
}

int sql_set_durable(struct sql *c, bool durable, struct error *e)
{
    assert_object(c, SQL_MAGIC);
    if (c->durable == durable)
        return 0;
    const char *sql = durable ? "pragma synchronous = full" : "pragma synchronous = normal";
    if (sqlite3_exec(c->db, sql, NULL, NULL, NULL))
        return sql_error(c->db, e, "database");
    c->durable = durable;
    return 0;
}

/* A thread that was waiting while another timed out on another program's lock does not wait again:
 * thirty writers fail after 5 s, not 150 s. */
static int sql_begin_transaction(struct store *s, double since, struct error *e)
{
    bool waited = s->busy_at > since;

    if (waited)
        sqlite3_busy_timeout(s->writer.db, 0);
    int status = sql_run(&s->writer, e, NULL, "begin immediate", "");
    if (waited)
        sqlite3_busy_timeout(s->writer.db, SQL_BUSY_MS);
    if (status == -(int)ERR_BUSY)
        s->busy_at = clock_monotonic();
    return status;
}

struct sql *sql_write_begin(struct store *s, bool durable, struct error *e)
{
    double since = clock_monotonic();
    bool watched = s->watches && pthread_equal(pthread_self(), s->watched);

    assert_object(s, STORE_MAGIC);
    if (watched)
        atomic_store(&s->waits_since, since);
    pthread_mutex_lock(&s->writing);
    int status = sql_set_durable(&s->writer, durable, e);
    if (!status)
        status = sql_begin_transaction(s, since, e);
    if (watched)
        atomic_store(&s->waits_since, 0);
    if (!status)
        return &s->writer;
    pthread_mutex_unlock(&s->writing);
    return NULL;
}

int sql_write_end(struct store *s, struct sql *c, int status, struct error *e)
{
    assert_object(s, STORE_MAGIC);
    assert_always(c == &s->writer);
    if (status == 0)
        status = sql_run(c, e, NULL, "commit", "");
    assert_always(status || sqlite3_txn_state(c->db, NULL) == SQLITE_TXN_NONE);
    if (status && !sqlite3_get_autocommit(
                      c->db)) /* SQLite may have rolled back already because the disk is full */
        sqlite3_exec(c->db, "rollback", NULL, NULL, NULL);
    if (status == 0)
        atomic_fetch_add(&s->commits, 1);
    else if (c->rollback_hook)
        c->rollback_hook(c->hook_context);
    for (int i = 0; status == 0 && i < STORE_LISTENERS; i++)
        if (s->listeners[i].committed)
            s->listeners[i].committed(s->listeners[i].context);
    pthread_mutex_unlock(&s->writing);
    return status;
}

struct sql *sql_read_begin(struct store *s)
{
    assert_object(s, STORE_MAGIC);
    pthread_mutex_lock(&s->lending);
    while (s->free_count == 0)
        pthread_cond_wait(&s->returned, &s->lending);
    struct sql *c = s->free_readers[--s->free_count];
    pthread_mutex_unlock(&s->lending);
    return c;
}

void sql_read_end(struct store *s, struct sql *c)
{
    assert_object(s, STORE_MAGIC);
    assert_always(c >= s->readers && c < s->readers + STORE_READERS);
    assert_always(sqlite3_txn_state(c->db, NULL) == SQLITE_TXN_NONE);
    pthread_mutex_lock(&s->lending);
    assert_always(s->free_count < STORE_READERS);
    s->free_readers[s->free_count++] = c;
    pthread_cond_signal(&s->returned);
    pthread_mutex_unlock(&s->lending);
}

int store_call_hook(struct sql *c, const struct store_fact *fact, struct error *e)
{
    assert_object(c, SQL_MAGIC);
    return c->hook ? c->hook(c, fact, c->hook_context, e) : 0;
}
