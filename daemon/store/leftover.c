#include "daemon/store/leftover.h"

#include "daemon/store/sql.h"

int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e)
{
    struct sql *c = sql_write_begin(s, false, e);

    if (!c)
        return -(int)e->code;
    int status =
        left ? sql_run(c, e, NULL, "insert or ignore into leftover select id from job where id = ?",
                       "i", job_id)
             : sql_run(c, e, NULL, "delete from leftover where job_id = ?", "i", job_id);
    return sql_write_end(s, c, status, e);
}

int store_leftover_list(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row =
        sql_query(c, e, "select job_id from leftover order by job_id limit ?", "i", (int64_t)most);
    int status = row ? 1 : -(int)e->code;

    *count = 0;
    while (status > 0 && (status = sql_row(c, row, e)) > 0)
        ids[(*count)++] = sqlite3_column_int64(row, 0);
    sql_read_end(s, c);
    return status;
}
