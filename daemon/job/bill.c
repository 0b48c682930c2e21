#include "daemon/job/bill.h"

#include <math.h>

const char *bill_source_name(enum bill_source source)
{
    static const char *const names[BILL_SOURCES] = {
        [BILL_NONE] = "none", [BILL_ESTIMATED] = "estimated", [BILL_MEASURED] = "measured"};
    return names[source];
}

/* With the attempt that runs; of the job's share. NAN: it never ran, or an older version ran it. */
static double bill_node_hours(const struct store_job *job, double now)
{
    double seconds = job->node_seconds;

    if (job->active_since > 0)
        seconds =
            (isnan(seconds) ? 0 : seconds) + fmax(0, now - job->active_since) * (double)job->nodes;
    return seconds * job->node_share / 3600;
}

/* That were trained, or evaluated by a job that does not train. */
static double bill_images(const struct store_job *job)
{
    double images = job->train_steps > 0 ? (double)job->step * (double)job->global_batch
                                         : (double)job->evaluated_images;
    return images > 0 ? images : NAN;
}

static void bill_joules(const struct store_job *job, const struct plan_prices *prices,
                        struct bill *bill)
{
    double estimated = plan_prices_kwh(prices, bill->node_hours) * JOULES_PER_KWH;

    bill->joules = NAN;
    if (job->joules > 0 && job->joules_whole) {
        bill->source = BILL_MEASURED;
        bill->joules = job->joules * job->node_share;
    } else if (estimated > 0) {
        bill->source = BILL_ESTIMATED;
        bill->joules = estimated;
    }
}

struct bill bill_of(const struct store_job *job, const struct plan_prices *prices, double now)
{
    struct bill bill = {.node_hours = bill_node_hours(job, now)};

    bill_joules(job, prices, &bill);
    bill.kwh = bill.joules / JOULES_PER_KWH;
    bill.joules_per_image = bill.joules / bill_images(job);
    bill.cost = plan_prices_cost(prices, bill.kwh, bill.node_hours);
    return bill;
}
