#include "common/plan/predict.h"

#include <math.h>
#include <string.h>

#include "common/net/arch.h"
#include "common/net/network.h"
#include "common/number.h"
#include "common/sum_levels.h"

const struct plan_network plan_network_default = {
    .hop_seconds = 20e-6,
    .bytes_per_second = 7.5e9,
    .add_bytes_per_second = 40e9,
    .node_bytes_per_second = 4e9,
    .jitter = 0.02,
};

/* Calls during backward that advance the sum; those of ResNet-50 */
#define BACKWARD_CALLS 161
#define SMALL_ROUNDS   3 /* of a tree: agreement up and down, and a gather */

#define REACH 8.0 /* in standard deviations; the density beyond is negligible */
#define FINE  0.01

/* Returns the mean of the maximum of n standard normal numbers, whose cumulative distribution is
 * the n-th power of the normal one. */
double predict_slowest(int64_t nodes)
{
    double sum = 0, before = 0, below;

    for (double x = -REACH; x < REACH; x += FINE, before = below) {
        below = pow(erfc(-(x + FINE) * M_SQRT1_2) / 2, (double)nodes);
        sum += (x + FINE / 2) * (below - before);
    }
    return nodes > 1 ? sum : 0;
}

#define SPREAD_MIN   0.03 /* difference between runs on different days */
#define SPREAD_ONE   0.08 /* of a single measurement */
#define SPREAD_BATCH 0.05 /* added if measured with another batch */
/* Added if measured with another number of workers, which share the node's memory */
#define SPREAD_WORKERS 0.15
/* Factor by which network and jitter may be better or worse than assumed */
#define NETWORK_SPREAD 1.5

static double predict_spread_of(const struct job_spec *spec, const struct plan_speed *speed)
{
    double spread = speed->samples > 1 ? fmax(SPREAD_MIN, speed->spread) : SPREAD_ONE;

    if (speed->batch && speed->batch != spec->batch_per_worker)
        spread += SPREAD_BATCH;
    if (speed->workers && speed->workers != spec->cluster.workers_per_node)
        spread += SPREAD_WORKERS;
    return fmin(spread, 0.9);
}

/* Of the weights that are trained */
static double predict_parameter_bytes(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);

    return 4.0 * (double)arch_trained_parameters(&shape);
}

/* Of the time of forward and backward: two thirds, less with frozen parts */
static double predict_backward_share(const struct job_spec *spec)
{
    struct arch_shape shape = arch_shape_of(spec);

    return 1 - arch_forward_macs(&shape) / arch_training_macs(&shape);
}

static double predict_gradient_bytes(const struct job_spec *spec)
{
    return predict_parameter_bytes(spec) / (spec->comm.dtype == JOB_PRECISION_BF16 ? 2 : 1);
}

static double predict_ring_share(int64_t n)
{
    return n > 1 ? 2.0 * (double)(n - 1) / (double)n : 0;
}

/* Exchange among a node's workers, scaled by what each sends if their number differs. */
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

static double predict_batch_times(const struct job_spec *spec, const struct plan_speed *speed)
{
    int64_t threads = spec->cluster.threads_per_worker;
    double measured = plan_threads_keep(spec, threads, speed->batch);
    double here = plan_threads_keep(spec, threads, spec->batch_per_worker);

    return measured > 0 && here > 0 ? measured / here : 1;
}

/* Bytes through memory per byte of gradients: each level reads its parts and writes their sum. bf16
 * has one level, with rounding before and widening after it. */
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

/* Returns the seconds from the end of backward, during which buckets become ready, until all are
 * summed. Buckets share the link. During backward each round waits for one of its polls. backward
 * 0: the sum starts after backward. */
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
    double backward = predict_backward_share(spec) * (double)spec->batch_per_worker * image_seconds;
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

/* The measured ranks of one node shared the update; on several nodes each makes all of it. */
static double predict_update(const struct job_spec *spec, const struct plan_speed *speed)
{
    bool shared = spec->comm.dtype != JOB_PRECISION_BF16 && speed->workers > 1 &&
                  !job_optimizer_norms_first(&spec->optimizer);

    return speed->update_seconds * (shared && spec->cluster.nodes > 1 ? (double)speed->workers : 1);
}

/* scale: factor of the image's time. noise: factor of network times and the slowest's excess. */
static double predict_step_seconds(const struct job_spec *spec, const struct plan_speed *speed,
                                   const struct plan_network *network, double scale, double noise,
                                   double slowest)
{
    double images = (double)spec->batch_per_worker * (double)spec->accumulate_steps;
    struct plan_network times = *network;
    double image, node;

    scale *= fmax(speed->slowest_times, 1); /* all nodes wait for the slowest one in each step */
    image = speed->image_seconds * scale * predict_batch_times(spec, speed);
    node = images * image +
           scale * (predict_update(spec, speed) + predict_node_exchange(spec, speed, network));
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

static bool predict_speed_fits(const struct plan_sample *s, int64_t workers, int64_t batch)
{
    return (workers == 0 || s->workers == workers) && (batch == 0 || s->batch == batch);
}

static bool predict_speed_any(const struct plan_sample *samples, size_t count, int64_t workers,
                              int64_t batch)
{
    for (size_t i = 0; i < count; i++)
        if (predict_speed_fits(&samples[i], workers, batch))
            return true;
    return false;
}

struct plan_speed plan_speed_of(const struct plan_sample *samples, size_t count, int64_t workers,
                                int64_t batch)
{
    double image[PLAN_SAMPLES_MAX], update[PLAN_SAMPLES_MAX], exchange[PLAN_SAMPLES_MAX];
    struct plan_speed speed = {0};
    size_t n = 0;

    if (count == 0)
        return speed;
    if (!predict_speed_any(samples, count, workers, 0))
        workers =
            samples[0]
                .workers; /* exchange among another number of workers would not be comparable */
    if (!predict_speed_any(samples, count, workers, batch))
        batch = 0;
    for (size_t i = 0; i < count && n < PLAN_SAMPLES_MAX; i++) {
        if (!predict_speed_fits(&samples[i], workers, batch))
            continue;
        if (n == 0) {
            speed.workers = samples[i].workers;
            speed.batch = samples[i].batch;
        }
        image[n] = samples[i].image_seconds;
        update[n] = samples[i].update_seconds;
        exchange[n++] = samples[i].exchange_seconds;
    }
    speed.image_seconds = number_median(image, n);
    speed.update_seconds = number_median(update, n);
    speed.exchange_seconds = number_median(exchange, n);
    speed.spread = (image[n - 1] - image[0]) / 2 / speed.image_seconds;
    speed.samples = (int64_t)n;
    return speed;
}

bool plan_speed_scatters(const struct plan_speed *speed)
{
    return speed->samples > 1 && speed->spread > 0.5;
}

double plan_speed_rate(const struct plan_speed *speed)
{
    double batch = speed->batch > 0 ? (double)speed->batch : 1;
    double workers = speed->workers > 0 ? (double)speed->workers : 1;

    if (!(speed->image_seconds > 0))
        return 0;
    return workers * batch /
           (batch * speed->image_seconds + speed->update_seconds + speed->exchange_seconds);
}

/* mlcommons/logging, rcp_checker/training_4.0.0/rcps_resnet.json. Large batches need more epochs:
 * 65536 takes 2.4 times those of 1632. */

static const struct {
    double batch, fewest, mean, most;
} points[] = {
    {1632,  33, 35.0, 37},
    {3264,  34, 35.2, 37},
    {4096,  39, 40.0, 42},
    {8192,  41, 42.0, 44},
    {13056, 44, 45.4, 46},
    {32768, 55, 56.0, 57},
    {49152, 67, 68.0, 69},
    {58880, 78, 79.9, 81},
    {65536, 83, 84.5, 86},
    {67840, 85, 85.9, 87},
};
#define NEAR_POINT 1.3
#define POINTS     (sizeof points / sizeof points[0])

bool predict_epochs_to_target(int64_t global_batch, struct plan_band *epochs)
{
    double batch = fmax((double)global_batch, points[0].batch);
    size_t i = 1;

    if (batch > points[POINTS - 1].batch)
        return false;
    while (i < POINTS - 1 && batch > points[i].batch)
        i++;
    double share = log(batch / points[i - 1].batch) / log(points[i].batch / points[i - 1].batch);
    epochs->low = points[i - 1].fewest + share * (points[i].fewest - points[i - 1].fewest);
    epochs->high = points[i - 1].most + share * (points[i].most - points[i - 1].most);
    epochs->value = points[i - 1].mean + share * (points[i].mean - points[i - 1].mean);
    return true;
}

const char *predict_epochs_doubt(int64_t global_batch)
{
    double batch = (double)global_batch;

    if (batch < points[0].batch)
        return "epochs of batch 1632, the smallest published";
    if (batch > points[POINTS - 1].batch)
        return "the largest published batch is 67840";
    for (size_t i = 0; i < POINTS; i++)
        if (fmax(batch, points[i].batch) <= NEAR_POINT * fmin(batch, points[i].batch))
            return NULL;
    return "no published batch is near: epochs between two of them";
}

bool predict_table_applies(const struct job_spec *spec, int64_t train_images)
{
    return strcmp(spec->model.arch, "resnet50") == 0 && spec->model.width == 1 &&
           spec->model.classes == 1000 && spec->model.image_size == 224 &&
           spec->model.sizes.count < 2 && train_images > 1200000 && train_images < 1300000;
}

#define IMAGES_MAX 4096

struct threads_fit {
    double fixed, first, threads, images, size;
};

static const struct threads_fit basic = {0.015, 0.0104, 1.13, 0.52, 1.00};
static const struct threads_fit bottleneck = {0.015, 0.0234, 0.93, 0.71, 1.37};
static const struct threads_fit grouped = {0.008, 0.0474, 0.67, 0.98, 1.75};
static const struct threads_fit cnn = {0, 0.057, 1.18, 1.02, 1.95};
static const struct threads_fit basic_bf16 = {0, 0.0216, 1.192, 0.754, 1.39};
static const struct threads_fit bottleneck_bf16 = {0, 0.0224, 1.087, 0.676, 1.29};
static const struct threads_fit grouped_bf16 = {0, 0.0220, 1.131, 0.761, 1.48};

static const struct threads_fit *predict_threads_fit_of(const struct job_spec *spec,
                                                        const struct arch *arch)
{
    bool bf16 = spec->precision == JOB_PRECISION_BF16;

    if (arch->family == ARCH_CNN)
        return bf16 ? NULL : &cnn;
    if (arch->groups > 1)
        return bf16 ? &grouped_bf16 : &grouped;
    if (arch->bottleneck)
        return bf16 ? &bottleneck_bf16 : &bottleneck;
    return bf16 ? &basic_bf16 : &basic;
}

enum { SIZE = 224, CNN_SIZE = 28 }; /* sizes of the networks' published inputs */

static double predict_threads_size_behind_stem(const struct arch_shape *shape)
{
    struct network network;

    if (shape->arch->family == ARCH_CNN)
        return (double)shape->image_size * SIZE / CNN_SIZE;
    network_make(shape, &network);
    return 4.0 * network.pooled_size;
}

double plan_threads_keep(const struct job_spec *spec, int64_t threads, int64_t images)
{
    struct arch_shape shape = arch_shape_of(spec);
    const struct threads_fit *f = predict_threads_fit_of(spec, shape.arch);

    if (!f || threads < 1 || images < 1)
        return 0;
    if (threads == 1)
        return 1;
    double lost = f->first * pow((double)threads, f->threads) /
                  (pow((double)images, f->images) *
                   pow(predict_threads_size_behind_stem(&shape) / SIZE, f->size));
    return 1 / (1 + f->fixed + lost);
}

int64_t plan_threads_images(const struct job_spec *spec, int64_t threads)
{
    int64_t low = 1, high = IMAGES_MAX;

    if (plan_threads_keep(spec, threads, high) < PLAN_THREADS_KEEP)
        return 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (plan_threads_keep(spec, threads, middle) < PLAN_THREADS_KEEP)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
