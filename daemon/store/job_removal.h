/* Removal of jobs. The job's row is deleted at once; its events and series follow in small parts,
 * tracked by the table removal, so that other writers are not blocked for long. */
#pragma once

#include "daemon/store/store.h"

/* Durable. ERR_NOT_FOUND; ERR_CONFLICT: it has not ended. */
int store_job_delete(struct store *s, int64_t id, struct error *e);

/* Lists ended jobs beyond the newest `keep`, except imported ones and those whose result a sweep
 * still needs. */
int store_jobs_beyond(struct store *s, int64_t keep, int64_t *ids, size_t max, size_t *count,
                      struct error *e);

/* Deletes rows of the first removed job for about this time, in one transaction. *id is 0 if none
 * are left. */
int store_removal_go_on(struct store *s, double seconds, int64_t *id, bool *rows_left,
                        struct error *e);

/* Sets or clears the record that files of a removed job remain. */
int store_removal_set(struct store *s, int64_t job_id, bool left, struct error *e);

/* Sets or clears the record that an existing job has files that could not be removed
 * (daemon/job/run_dir_cleanup.h). */
int store_leftover_set(struct store *s, int64_t job_id, bool left, struct error *e);

int store_leftover_list(struct store *s, int64_t *ids, size_t max, size_t *count, struct error *e);
