/* What all files of the store share: connections, statements kept prepared, values bound in one
 * call. */
#pragma once

#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "daemon/store/store.h"

struct sql; /* a connection, used by one thread at a time */

/* Whom a submitted_by ("job.submitted_by", "?3") stands for: of a sweep's jobs the sweep's owner;
 * '' where nobody was named. */
#define SQL_USER_OF(column)                                                                        \
    "coalesce(case when " column " glob 'sweep [0-9]*' then (select s.submitted_by from sweep s "  \
    "where s.id = cast(substr(" column ", 7) as integer)) else " column " end, '')"

/* The writer, inside a transaction. Every sql_write_begin that gave a connection is closed by one
 * sql_write_end, which commits if status is 0, else rolls back, and returns the final status. */
struct sql *sql_write_begin(struct store *s, bool durable, struct error *e);
int sql_write_end(struct store *s, struct sql *c, int status, struct error *e);

/* The same around `write`, a call on connection c that returns a status; gives the final one. */
#define sql_transaction(s, durable, c, e, write)                                                   \
    ({                                                                                             \
        struct sql *c = sql_write_begin(s, durable, e);                                            \
        c ? sql_write_end(s, c, write, e) : -(int)(e)->code;                                       \
    })

/* Whether a commit waits for the disk. */
int sql_set_durable(struct sql *c, bool durable, struct error *e);

/* A reader; waits for a free one. */
struct sql *sql_read_begin(struct store *s);
void sql_read_end(struct store *s, struct sql *c);

/* A prepared statement with its values bound, ready for sql_row. sql must be a literal: statements
 * are kept by its address. format, a letter a value: b const void * and int64_t bytes, i int64_t, d
 * double (NAN: null), t double (0: null), s const char * (NULL: null), n int64_t (negative: null).
 * NULL with *e filled on failure. */
sqlite3_stmt *sql_query(struct sql *c, struct error *e, const char *sql, const char *format, ...);
sqlite3_stmt *sql_query_values(struct sql *c, struct error *e, const char *sql, const char *format,
                               va_list *values);

/* 1: a row is there; 0: no more, the statement is free again; negative: failed, likewise. Without a
 * statement, as sql_query failed: what *e says. */
int sql_row(struct sql *c, sqlite3_stmt *statement, struct error *e);
void sql_done(sqlite3_stmt *statement); /* leave a statement before its last row */

/* sql_query and sql_row for a statement without rows; the number of rows changed in *changed (may
 * be NULL). */
int sql_run(struct sql *c, struct error *e, int *changed, const char *sql, const char *format, ...);
int sql_run_values(struct sql *c, struct error *e, int *changed, const char *sql,
                   const char *format, va_list *values);

/* The first row of a statement. 1: it is there; 0: none; negative: *e says why. Behind a ':' the
 * format goes on with a letter for each column, of which the address follows the values: i int64_t
 * (0), d double (NAN), b bool (false), s char * (NULL; the caller frees it); in brackets what null,
 * no row and a failure give. sql_one(c, e, "select name from job where id = ?", "i:s", id, &name)
 */
int sql_one(struct sql *c, struct error *e, const char *sql, const char *format, ...);
int sql_one_values(struct sql *c, struct error *e, const char *sql, const char *format,
                   va_list *values);

sqlite3 *sql_db(struct sql *c);

/* Column values: a copy, NULL for null; NAN for null; fallback for null. */
char *sql_text(sqlite3_stmt *statement, int column);
double sql_double(sqlite3_stmt *statement, int column);
int64_t sql_int(sqlite3_stmt *statement, int column, int64_t fallback);

#define STORE_DAMAGED_ADVICE                                                                       \
    "Stop traind, move traind.db, traind.db-wal and traind.db-shm away, and put a backup of "      \
    "traind.db in their place; without one, \"sqlite3 OLD .recover | sqlite3 traind.db\" saves "   \
    "what can be read. The runs themselves are in jobs/"

/* Fills *e from the connection's last error. */
int sql_error(sqlite3 *db, struct error *e, const char *what);

/* Passes the fact to the callback of store_on_fact, if there is one. */
int store_tell(struct sql *c, const struct store_fact *fact, struct error *e);

/* In SQL, where a job's events and series are read: those that a removed job has left are not
 * (job_removal.h). Value 1 is the job's id. */
#define STORE_OF_JOB "job_id = (select id from job where id = ?1)"
