#include "daemon/store/once.h"

#include <stdarg.h>

int once_run(struct store *s, bool durable, int *changed, struct error *e, const char *sql,
             const char *format, ...)
{
    va_list values;

    if (changed)
        *changed = 0;
    va_start(values, format);
    int status =
        sql_transaction(s, durable, c, e, sql_run_values(c, e, changed, sql, format, &values));
    va_end(values);
    return status;
}

static int once_read(struct store *s, once_row *take, void *context, struct error *e,
                     const char *sql, const char *format, va_list *values)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query_values(c, e, sql, format, values);
    int status;

    while ((status = sql_row(c, row, e)) > 0) {
        int taken = take(row, context, e);
        if (!taken)
            continue;
        sql_done(row);
        status = taken < 0 ? taken : 0;
        break;
    }
    sql_read_end(s, c);
    return status;
}

int once_each(struct store *s, once_row *take, void *context, struct error *e, const char *sql,
              const char *format, ...)
{
    va_list values;

    va_start(values, format);
    int status = once_read(s, take, context, e, sql, format, &values);
    va_end(values);
    return status;
}

int once_get(struct store *s, struct error *e, const char *sql, const char *format, ...)
{
    struct sql *c = sql_read_begin(s);
    va_list values;

    va_start(values, format);
    int found = sql_one_values(c, e, sql, format, &values);
    va_end(values);
    sql_read_end(s, c);
    return found < 0 ? found : 0;
}

struct once_list {
    int64_t *values;
    size_t *count;
};

static int once_add_integer(sqlite3_stmt *row, void *list, struct error *e)
{
    struct once_list *l = list;

    (void)e;
    l->values[(*l->count)++] = sqlite3_column_int64(row, 0);
    return 0;
}

int once_integers(struct store *s, int64_t *values, size_t *count, struct error *e, const char *sql,
                  const char *format, ...)
{
    struct once_list list = {values, count};
    va_list bound;

    *count = 0;
    va_start(bound, format);
    int status = once_read(s, once_add_integer, &list, e, sql, format, &bound);
    va_end(bound);
    return status;
}

struct once_array {
    json_t *array, *(*make)(sqlite3_stmt *row);
};

static int once_add_json(sqlite3_stmt *row, void *array, struct error *e)
{
    struct once_array *a = array;

    (void)e;
    json_array_append_new(a->array, a->make(row));
    return 0;
}

int once_json(struct store *s, json_t *(*make)(sqlite3_stmt *row), json_t **array, struct error *e,
              const char *sql, const char *format, ...)
{
    struct once_array into = {json_array(), make};
    va_list values;

    va_start(values, format);
    int status = once_read(s, once_add_json, &into, e, sql, format, &values);
    va_end(values);
    if (status)
        json_decref(into.array);
    *array = status ? NULL : into.array;
    return status;
}
