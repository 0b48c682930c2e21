/*
 * Removes jobs, on request and beyond keep_runs, and checkpoints and logs of ended runs. A removed
 * job's directory is renamed, then its row is deleted; its events, its series and the directory
 * follow in the loop, a little in each round. If a daemon is killed in between, the next one
 * restores the directory's name if the row is still there, or continues.
 */
#pragma once

#include <stdint.h>

#include "common/error.h"

struct active_job;
struct job_manager;

/* Removes an ended job: it is no longer found. Who asked is in the log, as its events are removed.
 * ERR_NOT_FOUND; ERR_CONFLICT: it has not ended. Thread-safe. */
int job_remove(struct job_manager *m, int64_t id, const char *by, struct error *e);

/* Before recovery: completes or undoes removals that an earlier daemon left half done. */
void cleanup_finish_removals(struct job_manager *m);

/* After recovery: takes over unfinished checkpoints that an earlier daemon could not remove. */
void cleanup_start(struct job_manager *m);
void cleanup_stop(struct job_manager *m); /* frees what cleanup_start and cleanup_run made */

/* Applies keep_audit_days now, keep_runs in the next rounds. */
void cleanup_keep_limits(struct job_manager *m);

/* At the end of a run: log_limit_bytes, keep_checkpoints, its unfinished checkpoint, its size. */
void cleanup_run(struct job_manager *m, const struct active_job *a);

/* Tasks of the loop, which return the monotonic time they are wanted at again. Removes some of what
 * removed jobs left and some runs beyond keep_runs; retries to remove unfinished checkpoints;
 * measures the next run that an older version left unmeasured. */
double cleanup_remove_some(struct job_manager *m);
double cleanup_retry(struct job_manager *m);
double cleanup_measure_next(struct job_manager *m);
