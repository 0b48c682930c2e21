/* Searches for jobs and groups them. */
#pragma once

#include "daemon/store/job_row.h"

const char *store_sort_name(size_t sort); /* "newest"...; NULL past the end */

/* Returns at most filter->limit of *total matching jobs, ignoring case. *next is set to "ID" or
 * "ID,KEY" (values for after and after_key), freed by the caller; NULL: this is the last page. */
int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e);

struct store_group {
    char *value; /* JSON text */
    int64_t jobs, states[JOB_STATE_COUNT];
    int64_t images;          /* steps x global batch, summed over the jobs */
    double mean_ttt_seconds; /* over succeeded jobs; NAN: none */
    int64_t best_id;         /* 0: no job was evaluated */
    char *best_name;         /* owned; may be NULL */
    double best_top1, best_epoch, best_at;
    int64_t best_step;
};
struct store_groups {
    struct store_group *items;
    size_t count, capacity;
    int64_t total; /* number of groups, including those beyond the limit */
};

/* by: a key such as "$.optimizer.name"; NULL: each tag. filter->limit limits the groups. Largest
 * first, or by filter->sort: NAME (value), BEST_TOP1 or TIME (mean). */
int store_job_groups(struct store *s, const struct store_job_filter *filter, const char *by,
                     struct store_groups *groups, struct error *e);
void store_groups_clear(struct store_groups *groups);
