#include "daemon/store/leftover.h"

#include "daemon/store/once.h"

int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e)
{
    return once_run(s, false, NULL, e,
                    left ? "insert or ignore into leftover select id from job where id = ?"
                         : "delete from leftover where job_id = ?",
                    "i", job_id);
}

int store_leftover_list(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e)
{
    return once_integers(s, ids, count, e, "select job_id from leftover order by job_id limit ?",
                         "i", (int64_t)most);
}
