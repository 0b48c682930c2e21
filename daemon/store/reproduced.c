#include "daemon/store/sql.h"
#include "daemon/store/store.h"

int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t most, size_t *count,
                            struct error *e)
{
    struct sql *c = sql_read_begin(s);
    sqlite3_stmt *row = sql_query(c, e,
                                  "select id from job indexed by job_reproduces where "
                                  "json_extract(spec, '$.reproduces') = ?1 order by id limit ?2",
                                  "ii", id, (int64_t)most);
    int status = row ? 1 : -(int)e->code;

    *count = 0;
    while (status > 0 && (status = sql_row(c, row, e)) > 0)
        ids[(*count)++] = sqlite3_column_int64(row, 0);
    sql_read_end(s, c);
    return status;
}
