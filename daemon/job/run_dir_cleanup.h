/* Removes jobs, on request and beyond keep_runs, and checkpoints and logs of ended runs. To remove
 * a job, its directory is renamed and its row deleted; the loop then deletes its events, its series
 * and the directory, a part in each round. If the daemon is killed in between, the next one
 * continues, or restores the directory's name if the row still exists. */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct active_job;
struct job_manager;

/* Removes an ended job. The requesting user is logged, because the job's events are deleted with
 * it. ERR_NOT_FOUND; ERR_CONFLICT: it has not ended. Thread-safe. */
int job_remove(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Before recovery: completes or undoes removals that an earlier daemon had begun. */
void cleanup_finish_removals(struct job_manager *m);

/* After recovery: retries unfinished checkpoints that an earlier daemon could not remove. */
void cleanup_start(struct job_manager *m);
void cleanup_stop(struct job_manager *m); /* frees the list made by cleanup_start and cleanup_run */

/* Applies keep_audit_days at once and keep_runs in the following rounds. */
void cleanup_keep_limits(struct job_manager *m);

/* At the end of a run: applies log_limit_bytes and keep_checkpoints, removes its unfinished
 * checkpoint and measures its size. */
void cleanup_run(struct job_manager *m, const struct active_job *a);

/* Tasks of the loop. Each returns the monotonic time of its next call. They remove part of the data
 * of removed jobs and runs beyond keep_runs; retry removing unfinished checkpoints; and measure the
 * next run left unmeasured by an older version. */
double cleanup_remove_some(struct job_manager *m);
double cleanup_retry(struct job_manager *m);
double cleanup_measure_next(struct job_manager *m);
