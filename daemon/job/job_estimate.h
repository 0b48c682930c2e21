/* Speeds learned from finished jobs, forecasts of running ones, and what jobs cost. */
#pragma once

#include "common/job/job_spec.h"
#include "common/plan/predict.h"
#include "daemon/job/job.h"
#include "daemon/job/job_forecast.h"
#include "daemon/store/job_row.h"

/* The speed of jobs of this kind on this processor, as this user may know it (store_speed_find);
 * zeroed if none has ended. threads: per worker. */
int job_estimate_speed(struct store *s, const struct job_spec *spec, int64_t threads,
                       const char *by, struct plan_speed *speed, struct error *e);

/* Stores the speed of a job that has just succeeded, and how good its forecasts were. Errors are
 * logged. */
void job_estimate_finished(struct store *s, int64_t id, int64_t threads, double now);

/* forecast_running of an active job, from where its attempt continues. */
struct forecast_end job_estimate_end(struct store *s, const struct store_job *job,
                                     double elapsed_seconds);

/* {"value", "low", "high"} of the seconds left of an active job, or null. If others wait for its
 * slots, what they were told. */
json_t *job_estimate_time_left(struct job_manager *m, const struct store_job *job, double now);

/* When the run will meet eval.target_top1, by its evaluations so far; NULL: it has no target. */
json_t *job_estimate_target(struct store *s, const struct store_job *job);

/* The energy, node-hours and money of a job. Counters count whole machines, of which a job is
 * charged node_share (job_node_share). */
enum job_energy_source {
    JOB_ENERGY_NONE,
    JOB_ENERGY_ESTIMATED, /* node_watts of traind.conf, by the time */
    JOB_ENERGY_MEASURED,  /* RAPL, on every machine of every attempt */
    JOB_ENERGY_SOURCES
};
const char *job_energy_source_name(enum job_energy_source source);

/* NAN: not known. */
struct job_cost {
    enum job_energy_source source; /* of joules */
    double joules, joules_per_image, kwh, node_hours, cost;
};

struct job_cost job_cost_of(const struct store_job *job, const struct plan_prices *prices,
                            double now);
