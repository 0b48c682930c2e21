/* What energy and nodes cost, and what a run of some length comes to. Pure. */
#pragma once

#include <math.h>

#define JOULES_PER_KWH 3.6e6

/* 0: not known. */
struct plan_prices {
    double node_watts; /* of a node under load */
    double per_kwh, per_node_hour;
    const char *currency; /* borrowed; NULL: not said */
};

/* kWh that so many node-hours are estimated to take; NAN: the watts are not known. */
static inline double plan_prices_kwh(const struct plan_prices *p, double node_hours)
{
    return p->node_watts > 0 ? p->node_watts / 1000 * node_hours : NAN;
}

/* NAN: there are no prices, or energy has one and kwh (NAN) is not known. */
static inline double plan_prices_cost(const struct plan_prices *p, double kwh, double node_hours)
{
    double energy = p->per_kwh > 0 ? p->per_kwh * kwh : 0;

    return p->per_kwh > 0 || p->per_node_hour > 0 ? energy + p->per_node_hour * node_hours : NAN;
}
