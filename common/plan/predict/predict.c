#include "common/plan/predict/predict.h"

#include <math.h>

#include "common/net/arch.h"
#include "common/plan/predict/threads.h"
#include "common/sum_levels.h"

const struct plan_network plan_network_default = {
    .hop_seconds = 20e-6,
    .bytes_per_second = 7.5e9,
    .add_bytes_per_second = 40e9,
    .node_bytes_per_second = 4e9,
    .jitter = 0.02,
};

#define BACKWARD_SHARE (2.0 / 3) /* of forward and backward */
#define BACKWARD_CALLS 161       /* that drive the sum: those of ResNet-50 */
#define SMALL_ROUNDS   3         /* of a tree: to agree up and down, and to gather */

/* ---- the slowest of n nodes */

#define REACH 8.0 /* beyond it there are no normal numbers */
#define FINE  0.01

/* The mean of the largest one's distribution, whose cumulative one is the normal one's power. */
double predict_slowest(int64_t nodes)
{
    double sum = 0, before = 0, below;

    for (double x = -REACH; x < REACH; x += FINE, before = below) {
        below = pow(erfc(-(x + FINE) * M_SQRT1_2) / 2, (double)nodes);
        sum += (x + FINE / 2) * (below - before);
    }
    return nodes > 1 ? sum : 0;
}

/* ---- a node */

/* How sure one may be of a speed that was measured elsewhere or once. */
#define SPREAD_MIN     0.03 /* runs differ by this from day to day */
#define SPREAD_ONE     0.08 /* of a single measurement */
#define SPREAD_BATCH   0.05 /* more: it was another batch */
#define SPREAD_WORKERS 0.15 /* more: fewer or more workers shared the node's memory */
#define NETWORK_SPREAD 1.5  /* times better or worse than said, its jitter too */

static double predict_spread_of(const struct job_spec *spec, const struct plan_speed *speed)
{
    double spread = speed->samples > 1 ? fmax(SPREAD_MIN, speed->spread) : SPREAD_ONE;

    if (speed->batch && speed->batch != spec->batch_per_worker)
        spread += SPREAD_BATCH;
    if (speed->workers && speed->workers != spec->cluster.workers_per_node)
        spread += SPREAD_WORKERS;
    return fmin(spread, 0.9);
}

static double predict_parameter_bytes(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);

    return 4.0 * (double)arch_parameters(&shape);
}

/* As they are sent. */
static double predict_gradient_bytes(const struct job_spec *spec)
{
    return predict_parameter_bytes(spec) / (spec->comm.dtype == JOB_PRECISION_BF16 ? 2 : 1);
}

/* Sent by each of n, by what is summed. */
static double predict_ring_share(int64_t n)
{
    return n > 1 ? 2.0 * (double)(n - 1) / (double)n : 0;
}

/* All-reduce among a node's workers: as measured, for another number of them by the share that each
 * sends. */
static double predict_node_exchange(const struct job_spec *spec, const struct plan_speed *speed,
                                    const struct plan_network *network)
{
    double share = predict_ring_share(spec->cluster.workers_per_node);

    if (speed->workers == 0 || speed->workers == spec->cluster.workers_per_node)
        return speed->exchange_seconds;
    if (speed->workers > 1)
        return speed->exchange_seconds * share / predict_ring_share(speed->workers);
    return speed->exchange_seconds +
           predict_gradient_bytes(spec) * share / network->node_bytes_per_second;
}

/* How many times as long an image takes as it did in the batch that was measured. */
static double predict_batch_times(const struct job_spec *spec, const struct plan_speed *speed)
{
    int64_t threads = spec->cluster.threads_per_worker;
    double measured = plan_threads_keep(spec, threads, speed->batch);
    double here = plan_threads_keep(spec, threads, spec->batch_per_worker);

    return measured > 0 && here > 0 ? measured / here : 1;
}

/* ---- the sum between machines, as libtraincomm has it */

/* Bytes through memory for each byte of the gradients: of a level, parts are read and their sum is
 * written. In bf16 it is one level, and all are rounded before and widened behind it. */
static double predict_add_passes(int64_t nodes, bool bf16)
{
    int digits[SUM_LEVELS_MAX], levels = sum_levels_find((int)nodes, digits);
    double passes = 0, part = 1;

    if (bf16)
        return 1 + 1 / (double)nodes + 2 * 3;
    for (int i = 0; i < levels; i++) {
        part /= digits[i];
        passes += part * (digits[i] + 1);
    }
    return passes;
}

/* Seconds from the end of backward, which makes buckets ready one behind the other, until all are
 * summed. They share the link; a round takes a look of backward's calls, as long as there are any.
 * 0: after backward. */
static double predict_buckets_seconds(const struct job_spec *spec,
                                      const struct plan_network *network,
                                      const struct predict_exchange *x, double backward)
{
    double whole = predict_parameter_bytes(spec), bucket = (double)spec->comm.fusion_bytes,
           done = 0;
    double look = fmax(network->hop_seconds, backward / BACKWARD_CALLS);

    for (double ready = 0; ready < whole;) {
        double n = fmin(bucket, whole - ready), wire = x->bytes * n / whole;
        wire /= network->bytes_per_second;
        ready += n;
        double since = backward * ready / whole, left = backward - since;
        double rounds = fmin(x->rounds * look, left + x->rounds * network->hop_seconds);
        done = fmax(since + rounds + wire, done + fmax(wire, rounds / SUM_LEVELS_BUCKETS));
    }
    return done - backward;
}

struct predict_exchange predict_exchange(const struct job_spec *spec,
                                         const struct plan_network *network, double image_seconds)
{
    int64_t n = spec->cluster.nodes;
    bool bf16 = spec->comm.dtype == JOB_PRECISION_BF16;
    double backward = BACKWARD_SHARE * (double)spec->batch_per_worker * image_seconds;
    struct predict_exchange x = {0};

    if (n <= 1)
        return x;
    x.rounds = sum_levels_rounds((int)n, bf16);
    x.bytes = predict_gradient_bytes(spec) * predict_ring_share(n);
    x.add_seconds =
        predict_gradient_bytes(spec) * predict_add_passes(n, bf16) / network->add_bytes_per_second;
    x.seconds = x.exposed_seconds = predict_buckets_seconds(spec, network, &x, 0);
    if (spec->comm.overlap)
        x.exposed_seconds = fmin(x.seconds, predict_buckets_seconds(spec, network, &x, backward));
    x.exposed_seconds += SMALL_ROUNDS * ceil(log2((double)n)) * network->hop_seconds;
    return x;
}

/* ---- a step */

/* scale: of the image's time; noise: of the network's times, and of slowest: what the slowest node
 * takes longer. */
static double predict_step_seconds(const struct job_spec *spec, const struct plan_speed *speed,
                                   const struct plan_network *network, double scale, double noise,
                                   double slowest)
{
    double images = (double)spec->batch_per_worker * (double)spec->accumulate_steps;
    struct plan_network times = *network;
    double image, node;

    scale *= fmax(speed->slowest_times, 1); /* all wait for it in every step */
    image = speed->image_seconds * scale * predict_batch_times(spec, speed);
    node = images * image +
           scale * (speed->update_seconds + predict_node_exchange(spec, speed, network));
    times.hop_seconds *= noise;
    times.bytes_per_second /= noise;
    times.add_bytes_per_second /= noise;
    struct predict_exchange x = predict_exchange(spec, &times, image);
    return node * exp(noise * slowest) + x.add_seconds + x.exposed_seconds;
}

bool predict_step(const struct job_spec *spec, const struct plan_speed *speed,
                  const struct plan_network *network, struct plan_band *seconds)
{
    double slowest = predict_slowest(spec->cluster.nodes) * network->jitter;
    double spread = predict_spread_of(spec, speed), more = NETWORK_SPREAD;

    if (!(speed->image_seconds > 0))
        return false;
    seconds->value = predict_step_seconds(spec, speed, network, 1, 1, slowest);
    seconds->low = predict_step_seconds(spec, speed, network, 1 - spread, 1 / more, slowest);
    seconds->high = predict_step_seconds(spec, speed, network, 1 + spread, more, slowest);
    return true;
}
