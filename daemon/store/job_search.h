/* Search for jobs, as a list or in groups. */
#pragma once

#include "daemon/store/job_row.h"

const char *store_sort_name(size_t sort); /* "newest"...; NULL behind the last */

/* At most filter->limit of *total jobs; case does not count. *next: "ID" or "ID,KEY" for after and
 * after_key, freed by the caller; NULL: the last page. */
int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e);

struct store_group {
    char *value; /* JSON text, owned */
    int64_t jobs, states[JOB_STATE_COUNT];
    int64_t images;          /* steps x global batch, of all */
    double mean_ttt_seconds; /* of succeeded jobs; NAN: none */
    int64_t best_id;         /* 0: none was evaluated */
    char *best_name;         /* owned, or NULL */
    double best_top1, best_epoch, best_at;
    int64_t best_step;
};
struct store_groups {
    struct store_group *items;
    size_t count, room;
    int64_t total; /* also beyond the limit */
};

/* by: a key as "$.optimizer.name"; NULL: each tag. filter->limit is of groups. The largest first,
 * or by filter->sort: NAME (value), BEST_TOP1, TIME (mean). */
int store_job_groups(struct store *s, const struct store_job_filter *filter, const char *by,
                     struct store_groups *groups, struct error *e);
void store_groups_clear(struct store_groups *groups);
