/*
 * What a job took: energy, node-hours and money. Pure.
 *
 * Counters count whole machines. A job is charged node_share of them: its slots, by the cores of
 * this machine, or by the slots that its hosts are said to have; a job in Slurm, and one that has
 * its hosts to itself, the whole.
 */
#pragma once

#include "common/plan/predict.h"
#include "daemon/store/job_row.h"

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
