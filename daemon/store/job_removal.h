/* Removal: a job's row goes at once; its events and series follow a few at a time, by the table
 * removal, so that writers need not wait for all of them. */
#pragma once

#include "daemon/store/store.h"

/* Durable. ERR_NOT_FOUND; ERR_CONFLICT: it has not ended. */
int store_job_delete(struct store *s, int64_t id, struct error *e);

/* Ended jobs beyond the `keep` newest, without imported ones and those whose sweep still needs
 * their result. */
int store_jobs_beyond(struct store *s, int64_t keep, int64_t *ids, size_t most, size_t *count,
                      struct error *e);

/* Deletes rows of the first removed job for about this time, in one transaction. *id 0: none left.
 */
int store_removal_go_on(struct store *s, double seconds, int64_t *id, bool *rows_left,
                        struct error *e);

/* Adds or deletes the note that files of a removed job remain, */
int store_removal_set(struct store *s, int64_t job_id, bool left, struct error *e);

/* or that files of an existing job's runs could not be removed (daemon/job/run_dir_cleanup.h). */
int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e);

int store_leftover_list(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e);
