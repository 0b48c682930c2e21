/* Reads and writes of the store that are a statement alone, on a connection that they take and give
 * back. sql and what follows it are as for sql_query; 0 or negative, with *e filled. */
#pragma once

#include <jansson.h>

#include "daemon/store/sql.h"

/* In a transaction of its own; the number of rows changed in *changed (may be NULL). */
int once_run(struct store *s, bool durable, int *changed, struct error *e, const char *sql,
             const char *format, ...);

/* Columns of the first row, as sql_one; 0 without one too. */
int once_get(struct store *s, struct error *e, const char *sql, const char *format, ...);

/* The first column of all rows, of which there must not be more than values has room for. */
int once_integers(struct store *s, int64_t *values, size_t *count, struct error *e, const char *sql,
                  const char *format, ...);

/* Called with each row; what is not 0 ends it, and if negative is what is returned. */
typedef int once_row(sqlite3_stmt *row, void *context, struct error *e);
int once_each(struct store *s, once_row *take, void *context, struct error *e, const char *sql,
              const char *format, ...);

/* An array of what make gives for each row; NULL on failure. */
int once_json(struct store *s, json_t *(*make)(sqlite3_stmt *row), json_t **array, struct error *e,
              const char *sql, const char *format, ...);
