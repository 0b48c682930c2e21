#include "common/plan/predict/predict.h"

#include <math.h>

#include "common/net/arch.h"
#include "common/plan/predict/threads.h"
#include "common/rng.h"

const struct plan_network plan_network_default = {
    .hop_seconds = 0.4e-3,
    .bytes_per_second = 7.5e9,
    .node_bytes_per_second = 4e9,
    .jitter = 0.02,
};

#define BACKWARD_SHARE 2.0 / 3 /* of forward and backward */

/* ---- the slowest of n nodes */

#define DRAWS_MAX 262144
#define STEPS_MIN 24
#define STEPS_MAX 2048
#define NODES_MAX 65536 /* beyond it m(n) hardly grows: 4.4 */

static double largest_normal(struct rng *r, int64_t n)
{
    double largest = -INFINITY;

    for (int64_t i = 0; i < n; i += 2) { /* Box and Muller give two at a time */
        double radius = sqrt(-2 * log(1 - rng_unit(r))), angle = 2 * M_PI * rng_unit(r);
        largest = fmax(largest, radius * cos(angle));
        if (i + 1 < n)
            largest = fmax(largest, radius * sin(angle));
    }
    return largest;
}

double predict_slowest(int64_t nodes)
{
    int64_t n = nodes < NODES_MAX ? nodes : NODES_MAX, steps = DRAWS_MAX / (n > 0 ? n : 1);
    double sum = 0;

    if (n <= 1)
        return 0;
    steps = steps < STEPS_MIN ? STEPS_MIN : steps > STEPS_MAX ? STEPS_MAX : steps;
    for (int64_t step = 0; step < steps; step++) {
        struct rng r = rng_stream(PREDICT_SEED, 0, step, RNG_JITTER);
        sum += largest_normal(&r, n);
    }
    return sum / (double)steps;
}

/* ---- a step */

/* How sure one may be of a speed that was measured elsewhere or once. */
#define SPREAD_MIN     0.03 /* runs differ by this from day to day */
#define SPREAD_ONE     0.08 /* of a single measurement */
#define SPREAD_BATCH   0.05 /* more: it was another batch */
#define SPREAD_WORKERS 0.15 /* more: fewer or more workers shared the node's memory */

static double spread_of(const struct job_spec *spec, const struct plan_speed *speed)
{
    double spread = speed->samples > 1 ? fmax(SPREAD_MIN, speed->spread) : SPREAD_ONE;

    if (speed->batch && speed->batch != spec->batch_per_worker)
        spread += SPREAD_BATCH;
    if (speed->workers && speed->workers != spec->cluster.workers_per_node)
        spread += SPREAD_WORKERS;
    return fmin(spread, 0.9);
}

static double gradient_bytes(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);

    return (spec->comm.dtype == JOB_PRECISION_BF16 ? 2.0 : 4.0) * (double)arch_parameters(&shape);
}

static double ring_share(int64_t n)
{
    return n > 1 ? 2.0 * (double)(n - 1) / (double)n : 0;
}

/* All-reduce among a node's workers: as measured, for another number of them by a ring's share. */
static double node_exchange(const struct job_spec *spec, const struct plan_speed *speed,
                            const struct plan_network *network)
{
    double share = ring_share(spec->cluster.workers_per_node);

    if (speed->workers == 0 || speed->workers == spec->cluster.workers_per_node)
        return speed->exchange_seconds;
    if (speed->workers > 1)
        return speed->exchange_seconds * share / ring_share(speed->workers);
    return speed->exchange_seconds + gradient_bytes(spec) * share / network->node_bytes_per_second;
}

/* What backward cannot hide of the bytes between nodes. */
static double wire_seconds(const struct job_spec *spec, const struct plan_network *network,
                           double image_seconds)
{
    double bytes = gradient_bytes(spec);
    double wire = bytes * ring_share(spec->cluster.nodes) / network->bytes_per_second;
    double last = fmin(1, (double)spec->comm.fusion_bytes / bytes);
    double backward = BACKWARD_SHARE * (double)spec->batch_per_worker * image_seconds;

    return spec->comm.overlap ? wire - fmin(wire * (1 - last), backward) : wire;
}

/* How many times as long an image takes as it did in the batch that was measured. */
static double batch_times(const struct job_spec *spec, const struct plan_speed *speed)
{
    int64_t threads = spec->cluster.threads_per_worker;
    double measured = plan_threads_keep(spec, threads, speed->batch);
    double here = plan_threads_keep(spec, threads, spec->batch_per_worker);

    return measured > 0 && here > 0 ? measured / here : 1;
}

/* scale: of the image's time; hops: messages behind each other; noise: of the jitter. */
static double step_seconds(const struct job_spec *spec, const struct plan_speed *speed,
                           const struct plan_network *network, double scale, double hops,
                           double slowdown)
{
    double images = (double)spec->batch_per_worker * (double)spec->accumulate_steps;
    double image, node;

    scale *= fmax(speed->slowest_times, 1); /* all wait for it in every step */
    image = speed->image_seconds * scale * batch_times(spec, speed);
    node = images * image + scale * (speed->update_seconds + node_exchange(spec, speed, network));

    if (spec->cluster.nodes <= 1)
        return node;
    return node * (1 + slowdown) + hops * network->hop_seconds + wire_seconds(spec, network, image);
}

bool predict_step(const struct job_spec *spec, const struct plan_speed *speed,
                  const struct plan_network *network, struct plan_band *seconds)
{
    double spread = spread_of(spec, speed);
    double nodes = (double)spec->cluster.nodes, ring = 2 * (nodes - 1);
    double slowest = predict_slowest(spec->cluster.nodes) * network->jitter;

    if (!(speed->image_seconds > 0))
        return false;
    seconds->value = step_seconds(spec, speed, network, 1, ring, slowest);
    /* At best the messages go up and down a tree, and the nodes are twice as steady. */
    seconds->low = step_seconds(spec, speed, network, 1 - spread, fmin(ring, 2 * ceil(log2(nodes))),
                                slowest / 2);
    seconds->high = step_seconds(spec, speed, network, 1 + spread, 1.5 * ring, slowest * 1.5);
    return true;
}

/* ---- the plan */
