/* Speeds measured in finished jobs, forecasts for running jobs, and the cost of jobs. */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/predict.h"
#include "daemon/job/job.h"
#include "daemon/job/job_forecast.h"
#include "daemon/store/job_row.h"

/* Gets the measured speed of jobs of this kind on this processor, limited to what user `by` may see
 * (store_speed_find); zeroed if there is none. threads: per worker. */
int job_estimate_speed(struct store *s, const struct job_spec *spec, int64_t threads,
                       const char *by, struct plan_speed *speed, struct error *e);

/* Stores the speed of a job that has just succeeded and the accuracy of its forecasts. Errors are
 * logged. */
void job_estimate_finished(struct store *s, int64_t id, int64_t threads, double now);

/* Returns forecast_running of an active job, starting at the step its attempt resumed from. */
struct forecast_end job_estimate_end(struct store *s, const struct store_job *job,
                                     double elapsed_seconds);

/* Returns the seconds left of an active job as {"value", "low", "high"}, or null. If other jobs
 * wait for its slots, this is the forecast used for their start times. */
json_t *job_estimate_time_left(struct job_manager *m, const struct store_job *job, double now);

/* Forecasts when the run reaches eval.target_top1, from its evaluations so far; NULL if it has no
 * target. */
json_t *job_estimate_target(struct store *s, const struct store_job *job);

/* Energy, node-hours and price of a job. Energy counters measure whole machines; a job is charged
 * its node_share (job_node_share). */
enum job_energy_source {
    JOB_ENERGY_NONE,
    JOB_ENERGY_ESTIMATED, /* node_watts of traind.conf times the run time */
    JOB_ENERGY_MEASURED,  /* RAPL, read on every machine in every attempt */
    JOB_ENERGY_SOURCES
};
const char *job_energy_source_name(enum job_energy_source source);

/* NAN: unknown. */
struct job_cost {
    enum job_energy_source source; /* of joules */
    double joules, joules_per_image, kwh, node_hours, cost;
};

struct job_cost job_cost_of(const struct store_job *job, const struct plan_prices *prices,
                            double now);
