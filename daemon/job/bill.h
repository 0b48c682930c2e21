/*
 * What a job took: energy, node-hours and money. Pure.
 *
 * Counters count whole machines. A job is charged node_share of them: its slots, by the cores of
 * this machine, or by the slots that its hosts are said to have; a job in Slurm, and one that has
 * its hosts to itself, the whole.
 */
#pragma once

#include "common/plan/predict/prices.h"
#include "daemon/store/store.h"

enum bill_source {
    BILL_NONE,
    BILL_ESTIMATED, /* node_watts of traind.conf, by the time */
    BILL_MEASURED,  /* RAPL, on every machine of every attempt */
    BILL_SOURCES
};
const char *bill_source_name(enum bill_source source);

/* NAN: not known. */
struct bill {
    enum bill_source source; /* of joules */
    double joules, joules_per_image, kwh, node_hours, cost;
};

struct bill bill_of(const struct store_job *job, const struct plan_prices *prices, double now);
