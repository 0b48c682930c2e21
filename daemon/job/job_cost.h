/*
 * The energy, node-hours and money of a job. Counters count whole machines, of which a job is
 * charged node_share: its slots, divided by the cores of this machine or the slots of its hosts; a
 * job in Slurm, and one that has its hosts to itself, is charged the whole.
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
