#include "daemon/store/once.h"
#include "daemon/store/store.h"

int store_job_reproduced_by(struct store *s, int64_t id, int64_t *ids, size_t most, size_t *count,
                            struct error *e)
{
    return once_integers(s, ids, count, e,
                         "select id from job indexed by job_reproduces where "
                         "json_extract(spec, '$.reproduces') = ?1 order by id limit ?2",
                         "ii", id, (int64_t)most);
}
