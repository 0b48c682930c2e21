/*
 * Throughput and time to train of a job on so many nodes: from what was measured of one worker, the
 * schedule by which libtraincomm sums gradients, and published epochs to a target. Pure.
 *
 * One step of n nodes takes
 *     node x e^(jitter x m(n)) + additions + what backward does not hide of the sum
 * node = batch_per_worker x accumulate_steps x image_seconds + update_seconds + exchange within the
 * node, m(n) the expected largest of n standard normal numbers. The sum between nodes
 * (common/sum_levels.h) is of buckets, each some rounds of messages and 2 (n-1)/n times its bytes.
 * They follow each other on the link, behind backward, two thirds of the computing, which is taken
 * to make gradients evenly; a round waits for the next of backward's calls. The threads that
 * compute add up. Beside it 3 log2(n) rounds agree on the step and gather what each rank took. An
 * image that was measured in another batch takes so much less or more as the worker's threads keep
 * of their speed with this one (plan_threads_keep).
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

#define PREDICT_EVAL_COST (1.0 / 3) /* of an evaluated image, by a trained one: a forward pass */

struct plan_band {
    double value, low, high;
};

struct plan_speed {
    double image_seconds;    /* data, forward and backward of one image; 0: not known */
    double update_seconds;   /* the optimizer, once a step */
    double exchange_seconds; /* all-reduce among the node's workers, once a step */
    int64_t workers;         /* of the node when it was measured; 0: does not matter */
    int64_t batch;           /* of a worker then; 0: does not matter */
    double spread;           /* half of the range of the measurements, by their median */
    int64_t samples;         /* runs it comes from */
    double slowest_times;    /* how many times as long the slowest of the job's nodes takes as the
                                usual one of its kind; 0 or 1: none is known to be slower */
    char slowest[65];        /* its name */
};

/* Whether they differ by more than their median, and thus predict nothing. */
bool plan_speed_scatters(const struct plan_speed *speed);

/* Images per second of the measured node with its own batch; 0: not known. */
double plan_speed_rate(const struct plan_speed *speed);

struct plan_sample {
    double image_seconds, update_seconds, exchange_seconds;
    int64_t workers, batch;
};

#define PLAN_SAMPLES_MAX 5
/* Medians of the newest PLAN_SAMPLES_MAX samples (sorted newest first), preferring the wanted
 * number of workers, and then the wanted batch. */
struct plan_speed plan_speed_of(const struct plan_sample *samples, size_t count, int64_t workers,
                                int64_t batch);

struct plan_network {
    double hop_seconds;           /* of a round of messages, with all software */
    double bytes_per_second;      /* of a node's link, as a sum reaches it */
    double add_bytes_per_second;  /* through a node's memory, as it adds up what it received */
    double node_bytes_per_second; /* all-reduce in a node's memory, where it was not measured */
    double jitter;                /* standard deviation of a node's step, by the step */
};

/* Assumptions, of 100 Gbit/s: 60 % of them reach a sum, a round of 15 messages takes 20 us, four
 * cores of 10 GB/s add; the others are of the size that is common. `trainctl scale --nodes`
 * measures the first two. None is fitted to a published run, as these had other software.
 * tests/unit/common/plan/predict/predict.c compares with the simulation of libtraincomm
 * (doc/scaling.md), within 3 points of efficiency, and tests/system/commands/predict.sh with runs
 * of 1 and 2 ranks on one machine, which check the times of an image, an update and an exchange in
 * memory, and nothing between nodes. */
extern const struct plan_network plan_network_default;

double predict_slowest(int64_t nodes);

struct predict_exchange {
    int rounds;             /* of messages, one behind the other, of a bucket */
    double bytes;           /* that a node sends, and receives */
    double add_seconds;     /* never hidden */
    double seconds;         /* by itself, without additions */
    double exposed_seconds; /* what backward does not hide of it, and the small rounds */
};
/* image_seconds: forward and backward. */
struct predict_exchange predict_exchange(const struct job_spec *spec,
                                         const struct plan_network *network, double image_seconds);

/* Seconds of a step with bounds; low is faster. False: the speed is not known. */
bool predict_step(const struct job_spec *spec, const struct plan_speed *speed,
                  const struct plan_network *network, struct plan_band *seconds);

/* Epochs to 75.9 % top-1 of ResNet-50 on ImageNet: MLPerf's reference convergence points (LARS),
 * interpolated by the logarithm of the batch. Smaller batches get the first point's; false above
 * the last, 67840. */
bool predict_epochs_to_target(int64_t global_batch, struct plan_band *epochs);

/* Why they are less certain than the table's; NULL: they are not. */
const char *predict_epochs_doubt(int64_t global_batch);

/* Whether the table applies: ResNet-50, 1000 classes at 224, the size of ImageNet. */
bool predict_table_applies(const struct job_spec *spec, int64_t train_images);

#define PREDICT_TARGET_LOW  0.74 /* targets that the table's 75.9 % stands for */
#define PREDICT_TARGET_HIGH 0.765

#define JOULES_PER_KWH 3.6e6

struct plan_prices {
    double node_watts; /* of a node under load */
    double per_kwh, per_node_hour;
    const char *currency; /* borrowed; NULL: not said */
};

/* Estimated kWh; NAN: the watts are not known. */
static inline double plan_prices_kwh(const struct plan_prices *p, double node_hours)
{
    return p->node_watts > 0 ? p->node_watts / 1000 * node_hours : NAN;
}

/* NAN: no prices, or energy has a price and kWh is NAN. */
static inline double plan_prices_cost(const struct plan_prices *p, double kwh, double node_hours)
{
    double energy = p->per_kwh > 0 ? p->per_kwh * kwh : 0;

    return p->per_kwh > 0 || p->per_node_hour > 0 ? energy + p->per_node_hour * node_hours : NAN;
}

/*
 * What a worker's threads lose of their speed to shares that are not even, by the batch they share:
 *     keep = 1 / (1 + fixed + first x threads^t / (images^n x (size / 224)^s)), 1 for one thread
 * The engine's own shares, counted by the code that shares (worker/team/dry_run.h), are what the
 * five numbers are fitted to for each kind of block, in fp32 and bf16: networks of 64 and 224
 * pixels (the small CNN: 28 and 56), 1 to 96 images, 2 to 96 threads. Where the threads keep at
 * least 0.6 it is off by 0.03 usually, 0.15 at most (tests/unit/worker/model/shares.c compares).
 * The counts in fp32 are those of AVX-512's register tile: with AVX2's smaller one 48 threads keep
 * up to 0.09 more than planned.
 * Not in it: what a barrier costs, caches and memory that cores share; speeds measured with so many
 * threads have all of these in them.
 */

#define PLAN_THREADS_KEEP 0.85

/* The share of their speed that these threads keep; 0: not known. */
double plan_threads_keep(const struct job_spec *spec, int64_t threads, int64_t images);

/* The fewest images to keep PLAN_THREADS_KEEP; 0: not known, or unreachable. */
int64_t plan_threads_images(const struct job_spec *spec, int64_t threads);
