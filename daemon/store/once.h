/* Single statements on a connection of their own; values as for sql_query. */
#pragma once

#include <jansson.h>

#include "daemon/store/sql.h"

/* changed: number of rows, may be NULL. */
int once_run(struct store *s, bool durable, int *changed, struct error *e, const char *sql,
             const char *format, ...);

/* As sql_one, but 0 without a row too. */
int once_get(struct store *s, struct error *e, const char *sql, const char *format, ...);

/* First columns; values must have room for all rows. */
int once_integers(struct store *s, int64_t *values, size_t *count, struct error *e, const char *sql,
                  const char *format, ...);

/* Not 0 ends the walk; negative is returned. */
typedef int once_row(sqlite3_stmt *row, void *context, struct error *e);
int once_each(struct store *s, once_row *take, void *context, struct error *e, const char *sql,
              const char *format, ...);

/* An array of what make returns for each row. */
int once_json(struct store *s, json_t *(*make)(sqlite3_stmt *row), json_t **array, struct error *e,
              const char *sql, const char *format, ...);
