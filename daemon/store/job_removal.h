/*
 * What a removed job leaves until it is deleted: store_job_delete takes away the job's row, so that
 * nobody finds the job any more, and notes it in the table removal, for the next daemon too. Its
 * events and series follow a few at a time, so that other writers need not wait for all of them.
 */
#pragma once

#include "daemon/store/store.h"

/* Removes a job: its row and what refers to it, and notes that its events and series are left
 * below, which nobody can read any more. Durable. ERR_NOT_FOUND; ERR_CONFLICT where it has
 * not ended. */
int store_job_delete(struct store *s, int64_t id, struct error *e);

/* At most `most` ids of ended jobs beyond the `keep` that ended last; those that were imported, and
 * those whose sweep has not taken their result, do not count. */
int store_jobs_beyond(struct store *s, int64_t keep, int64_t *ids, size_t most, size_t *count,
                      struct error *e);

/* Deletes rows of the removed job with the lowest id for this time, or little longer, in one
 * transaction. *id: which job that is, 0: there is none. *rows_left: it has more. */
int store_removal_go_on(struct store *s, double seconds, int64_t *id, bool *rows_left,
                        struct error *e);

/* Notes, or forgets, that something is left of a job that was removed. */
int store_removal_set(struct store *s, int64_t job_id, bool left, struct error *e);

/* The same of a job that is there, whose ended run left something that could not be removed yet
 * (daemon/job/run_dir_cleanup.h). A job that was removed has nothing so. */
int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e);

/* At most `most` of their ids. */
int store_leftover_list(struct store *s, int64_t *ids, size_t most, size_t *count, struct error *e);
