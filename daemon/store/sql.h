/* SQL connections, transactions and statements. */
#pragma once

#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct sql; /* a connection, used by one thread at a time */

/* SQL expression for the user of a submitted_by column: the sweep's owner for a sweep's job, '' if
 * unnamed. */
#define SQL_USER_OF(column)                                                                        \
    "coalesce(case when " column " glob 'sweep [0-9]*' then (select s.submitted_by from sweep s "  \
    "where s.id = cast(substr(" column ", 7) as integer)) else " column " end, '')"

/* Takes the writer connection and begins a transaction. Every successful begin needs a
 * sql_write_end, which commits if status is 0, otherwise rolls back, and returns the final
 * status. */
struct sql *sql_write_begin(struct store *s, bool durable, struct error *e);
int sql_write_end(struct store *s, struct sql *c, int status, struct error *e);

/* Wraps `write`, an expression that uses c and returns a status, in sql_write_begin and
 * sql_write_end. */
#define sql_transaction(s, durable, c, e, write)                                                   \
    ({                                                                                             \
        struct sql *c = sql_write_begin(s, durable, e);                                            \
        c ? sql_write_end(s, c, write, e) : -(int)(e)->code;                                       \
    })

int sql_set_durable(struct sql *c, bool durable, struct error *e);

/* Blocks until a reader connection is free. */
struct sql *sql_read_begin(struct store *s);
void sql_read_end(struct store *s, struct sql *c);

/* Prepares a statement and binds values by format: b const void * and int64_t bytes, i int64_t, d
 * double (NAN: null), t double (0: null), s const char *, n int64_t (negative: null). sql must be a
 * literal, because prepared statements are cached by its address. Returns NULL with *e on
 * failure. */
sqlite3_stmt *sql_query(struct sql *c, struct error *e, const char *sql, const char *format, ...);
sqlite3_stmt *sql_query_values(struct sql *c, struct error *e, const char *sql, const char *format,
                               va_list *values);

/* Returns 1 for a row, 0 at the end, negative on failure or if statement is NULL. The statement is
 * released after 0 and failure. */
int sql_row(struct sql *c, sqlite3_stmt *statement, struct error *e);
void sql_done(sqlite3_stmt *statement); /* releases a statement before its last row */

/* Runs a statement that returns no rows. *changed: number of changed rows; may be NULL. */
int sql_run(struct sql *c, struct error *e, int *changed, const char *sql, const char *format, ...);
int sql_run_values(struct sql *c, struct error *e, int *changed, const char *sql,
                   const char *format, va_list *values);

/* Gets the first row. Returns 1 if there is one, 0 if not, negative on failure. After ':' the
 * format has a letter per column, whose addresses follow the values: i int64_t (null: 0), d double
 * (NAN), b bool, s char * (NULL; freed by the caller). Example:
 * sql_one(c, e, "select name from job where id = ?", "i:s", id, &name) */
int sql_one(struct sql *c, struct error *e, const char *sql, const char *format, ...);
int sql_one_values(struct sql *c, struct error *e, const char *sql, const char *format,
                   va_list *values);

sqlite3 *sql_db(struct sql *c);

/* Column accessors: sql_text returns a copy, or NULL; the others map null to NAN or to fallback. */
char *sql_text(sqlite3_stmt *statement, int column);
double sql_double(sqlite3_stmt *statement, int column);
int64_t sql_int(sqlite3_stmt *statement, int column, int64_t fallback);

#define STORE_DAMAGED_ADVICE                                                                       \
    "Stop traind, move traind.db, traind.db-wal and traind.db-shm away, and put a backup of "      \
    "traind.db in their place; without one, \"sqlite3 OLD .recover | sqlite3 traind.db\" saves "   \
    "what can be read. The runs themselves are in jobs/"

int sql_error(sqlite3 *db, struct error *e, const char *what);

/* Calls the fact hook, if any. */
int store_call_hook(struct sql *c, const struct store_fact *fact, struct error *e);

/* Excludes events and series left by a removed job. ?1 is the id. */
#define STORE_OF_JOB "job_id = (select id from job where id = ?1)"
