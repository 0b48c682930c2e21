/* Jobs that are looked for, as a list or in groups: by their tags, or by what stands at a key of
 * their documents. */
#pragma once

#include "daemon/store/job_row.h"

const char *store_sort_name(size_t sort); /* "newest"...; NULL behind the last */

/* The jobs that fit, at most filter->limit (1 to 1000) of *total. Case does not count. *next, which
 * the caller frees, is what the next page begins behind: "ID" or "ID,KEY", for after and
 * after_key; NULL: that was the last one. */
int store_job_search(struct store *s, const struct store_job_filter *filter,
                     struct store_jobs *jobs, int64_t *total, char **next, struct error *e);

struct store_group {
    char *value; /* JSON text, owned: a tag or null, or the value in the document */
    int64_t jobs, states[JOB_STATE_COUNT];
    int64_t images;          /* trained on, of all of them: steps x global batch */
    double mean_ttt_seconds; /* of those that succeeded; NAN: none has */
    int64_t best_id;         /* of the job with the best evaluation; 0: none was evaluated */
    char *best_name;         /* owned; NULL: it has none */
    double best_top1, best_epoch, best_at;
    int64_t best_step;
};
struct store_groups {
    struct store_group *items;
    size_t count, room;
    int64_t total; /* how many there are, also beyond the limit */
};

/* The jobs that fit filter, whose limit is that of groups. by: a key as "$.optimizer.name"; NULL:
 * by tag, where a job is in the group of each of its tags. The groups with the most jobs come
 * first, or by filter->sort: STORE_SORT_NAME, by value; STORE_SORT_BEST_TOP1; STORE_SORT_TIME, by
 * the mean. */
int store_job_groups(struct store *s, const struct store_job_filter *filter, const char *by,
                     struct store_groups *groups, struct error *e);
void store_groups_clear(struct store_groups *groups);
