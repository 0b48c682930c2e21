#include "daemon/job/job_cost.h"

#include <math.h>

const char *job_energy_source_name(enum job_energy_source source)
{
    static const char *const names[JOB_ENERGY_SOURCES] = {[JOB_ENERGY_NONE] = "none",
                                                          [JOB_ENERGY_ESTIMATED] = "estimated",
                                                          [JOB_ENERGY_MEASURED] = "measured"};
    return names[source];
}

/* With the attempt that runs; of the job's share. NAN: it never ran, or an older version ran it. */
static double cost_node_hours(const struct store_job *job, double now)
{
    double seconds = job->node_seconds;

    if (job->active_since > 0)
        seconds =
            (isnan(seconds) ? 0 : seconds) + fmax(0, now - job->active_since) * (double)job->nodes;
    return seconds * job->node_share / 3600;
}

/* That were trained, or evaluated by a job that does not train. */
static double cost_images(const struct store_job *job)
{
    double images = job->train_steps > 0 ? (double)job->step * (double)job->global_batch
                                         : (double)job->evaluated_images;
    return images > 0 ? images : NAN;
}

static void cost_joules(const struct store_job *job, const struct plan_prices *prices,
                        struct job_cost *bill)
{
    double estimated = plan_prices_kwh(prices, bill->node_hours) * JOULES_PER_KWH;

    bill->joules = NAN;
    if (job->measured_joules > 0 && job->joules_whole) {
        bill->source = JOB_ENERGY_MEASURED;
        bill->joules = job->measured_joules * job->node_share;
    } else if (estimated > 0) {
        bill->source = JOB_ENERGY_ESTIMATED;
        bill->joules = estimated;
    }
}

struct job_cost job_cost_of(const struct store_job *job, const struct plan_prices *prices,
                            double now)
{
    struct job_cost bill = {.node_hours = cost_node_hours(job, now)};

    cost_joules(job, prices, &bill);
    bill.kwh = bill.joules / JOULES_PER_KWH;
    bill.joules_per_image = bill.joules / cost_images(job);
    bill.cost = plan_prices_cost(prices, bill.kwh, bill.node_hours);
    return bill;
}
