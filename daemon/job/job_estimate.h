/* What a finished job teaches: the speed that later predictions are made from, and how good its own
 * were. */
#pragma once

#include "common/job/job_spec.h"
#include "daemon/job/job.h"
#include "daemon/job/job_forecast.h"
#include "daemon/store/job_row.h"

/* The speed of jobs of this kind on this processor, as this user may know it (store_speed_find);
 * zeroed where none has ended. slots: of the node (threads_per_worker 0 shares them out). */
int job_estimate_speed(struct store *s, const struct job_spec *spec, int64_t slots, const char *by,
                       struct plan_speed *speed, struct error *e);

/* Of a job that has just succeeded: stores both. Best effort: what goes wrong is logged. */
void job_estimate_finished(struct store *s, int64_t id, int64_t slots, double now);

/* When an active job will have ended: forecast_running, from where its attempt goes on. */
struct forecast_end job_estimate_end(struct store *s, const struct store_job *job,
                                     double elapsed_seconds);

/* {"value", "low", "high"} of the seconds left, or null: of an active job. Where others wait for
 * its slots, what these were told. */
json_t *job_estimate_time_left(struct job_manager *m, const struct store_job *job, double now);

/* When the run will meet eval.target_top1, by its evaluations so far; NULL: it has no target. */
json_t *job_estimate_target(struct store *s, const struct store_job *job);
