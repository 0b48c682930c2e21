/* Single statements, each on a connection taken for it; values as for sql_query. */
#pragma once

#include <jansson.h>

#include "daemon/store/sql.h"

/* *changed: number of changed rows; may be NULL. */
int once_run(struct store *s, bool durable, int *changed, struct error *e, const char *sql,
             const char *format, ...);

/* Does the same as sql_one, but having no row is not an error: returns 0. */
int once_get(struct store *s, struct error *e, const char *sql, const char *format, ...);

/* Gets the first column of every row; values must be large enough for all rows. */
int once_integers(struct store *s, int64_t *values, size_t *count, struct error *e, const char *sql,
                  const char *format, ...);

/* A nonzero result stops the iteration; a negative one is returned as an error. */
typedef int once_row(sqlite3_stmt *row, void *context, struct error *e);
int once_each(struct store *s, once_row *take, void *context, struct error *e, const char *sql,
              const char *format, ...);

/* Creates an array of the results of `make` for each row. */
int once_json(struct store *s, json_t *(*make)(sqlite3_stmt *row), json_t **array, struct error *e,
              const char *sql, const char *format, ...);
