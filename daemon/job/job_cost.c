#include "daemon/job/job_cost.h"

#include <math.h>

const char *job_energy_source_name(enum job_energy_source source)
{
    static const char *const names[JOB_ENERGY_SOURCES] = {[JOB_ENERGY_NONE] = "none",
                                                          [JOB_ENERGY_ESTIMATED] = "estimated",
                                                          [JOB_ENERGY_MEASURED] = "measured"};
    return names[source];
}

struct job_cost job_cost_of(const struct store_job *job, const struct plan_prices *prices,
                            double now)
{
    struct job_cost cost = {.source = JOB_ENERGY_NONE, .joules = NAN};
    double seconds = job->node_seconds; /* NAN: it never ran, or an older version ran it */
    double images = job->train_steps > 0 ? (double)job->step * (double)job->global_batch
                                         : (double)job->evaluated_images;

    if (job->active_since > 0)
        seconds =
            (isnan(seconds) ? 0 : seconds) + fmax(0, now - job->active_since) * (double)job->nodes;
    cost.node_hours = seconds * job->node_share / 3600;
    double estimated = plan_prices_kwh(prices, cost.node_hours) * JOULES_PER_KWH;
    if (job->measured_joules > 0 && job->joules_whole) {
        cost.source = JOB_ENERGY_MEASURED;
        cost.joules = job->measured_joules * job->node_share;
    } else if (estimated > 0) {
        cost.source = JOB_ENERGY_ESTIMATED;
        cost.joules = estimated;
    }
    cost.kwh = cost.joules / JOULES_PER_KWH;
    cost.joules_per_image = cost.joules / (images > 0 ? images : NAN);
    cost.cost = plan_prices_cost(prices, cost.kwh, cost.node_hours);
    return cost;
}
