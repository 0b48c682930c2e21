/*
 * Throughput and time to train of a job on a number of nodes, predicted from measurements of one
 * worker, the schedule by which libtraincomm sums gradients, and published epochs to a target. Pure
 * functions.
 *
 * One step of n nodes takes
 *     node x e^(jitter x m(n)) + additions + the part of the sum that backward does not hide
 * where node = batch_per_worker x accumulate_steps x image_seconds + update + exchange
 * within the node, update is update_seconds, times the workers of a node where they had shared it,
 * and m(n) is the expected maximum of n standard normal numbers. Gradients are summed between nodes
 * (common/sum_levels.h) in buckets, each with some rounds of messages and 2 (n-1)/n times its
 * bytes. Buckets use the link one after the other, during and after backward. Backward is two
 * thirds of the computation and is assumed to produce gradients at a constant rate; a round waits
 * for the next of its calls. The computing threads do the additions. In addition, 3 log2(n) rounds
 * agree on the step and gather the times of the ranks. If an image was measured in another batch,
 * its time is scaled by the ratio of the speeds that the worker's threads keep (plan_threads_keep).
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

/* Cost of evaluating an image, relative to training it: a forward pass */
#define PREDICT_EVAL_COST (1.0 / 3)

struct plan_band {
    double value, low, high;
};

struct plan_speed {
    double image_seconds;    /* data, forward and backward of one image; 0: unknown */
    double update_seconds;   /* optimizer, per step */
    double exchange_seconds; /* all-reduce among the node's workers, per step */
    int64_t workers;         /* number per node when measured; 0: irrelevant */
    int64_t batch;           /* per worker when measured; 0: irrelevant */
    double spread;           /* half the range of the measurements, relative to their median */
    int64_t samples;         /* number of measured runs */
    double slowest_times; /* time of the slowest of the job's nodes relative to a usual one of its
                             kind; 0 or 1: none is known to be slower */
    char slowest[65];     /* name of the slowest node */
};

/* Returns whether the measurements differ by more than their median and predict nothing. */
bool plan_speed_scatters(const struct plan_speed *speed);

/* Images per second of the measured node with its batch; 0: unknown. */
double plan_speed_rate(const struct plan_speed *speed);

struct plan_sample {
    double image_seconds, update_seconds, exchange_seconds;
    int64_t workers, batch;
};

#define PLAN_SAMPLES_MAX 5
/* Medians of the newest PLAN_SAMPLES_MAX samples (which are sorted newest first), preferring those
 * with the given number of workers, and then those with the given batch. */
struct plan_speed plan_speed_of(const struct plan_sample *samples, size_t count, int64_t workers,
                                int64_t batch);

struct plan_network {
    double hop_seconds;           /* of a round of messages, including software */
    double bytes_per_second;      /* of a node's link, usable by a sum */
    double add_bytes_per_second;  /* memory bandwidth of a node while adding received data */
    double node_bytes_per_second; /* of an all-reduce in a node's memory, if not measured */
    double jitter; /* standard deviation of a node's step time, relative to the step time */
};

/* Assumptions for a network of 100 Gbit/s: a sum can use 60 % of it, a round of 15 messages takes
 * 20 us, four cores add with 10 GB/s each; the other values are typical. `trainctl scale --nodes`
 * measures the first two. None is fitted to a published run, because those used other software.
 * tests/unit/common/plan/predict/predict.c compares predictions with the simulation of libtraincomm
 * (doc/scaling.md), within 3 points of efficiency. tests/system/commands/predict.sh compares them
 * with runs of 1 and 2 ranks on one machine, which checks the times of an image, an update and an
 * exchange in memory, but nothing between nodes. */
extern const struct plan_network plan_network_default;

double predict_slowest(int64_t nodes);

struct predict_exchange {
    int rounds;             /* consecutive rounds of messages of a bucket */
    double bytes;           /* that a node sends, and also receives */
    double add_seconds;     /* never hidden */
    double seconds;         /* of the messages alone, without additions */
    double exposed_seconds; /* part not hidden by backward, and the small rounds */
};
/* image_seconds: time of forward and backward. */
struct predict_exchange predict_exchange(const struct job_spec *spec,
                                         const struct plan_network *network, double image_seconds);

/* Predicts the seconds of a step with bounds; low is faster. False: the speed is unknown. */
bool predict_step(const struct job_spec *spec, const struct plan_speed *speed,
                  const struct plan_network *network, struct plan_band *seconds);

/* Predicts the epochs to 75.9 % top-1 of ResNet-50 on ImageNet from MLPerf's reference convergence
 * points (LARS), interpolated by the logarithm of the batch. Smaller batches get the value of the
 * first point; returns false above the last one, 67840. */
bool predict_epochs_to_target(int64_t global_batch, struct plan_band *epochs);

/* Returns why the prediction is less certain than the table; NULL: it is not. */
const char *predict_epochs_doubt(int64_t global_batch);

/* Returns whether the table applies: ResNet-50, 1000 classes at 224, as many images. */
bool predict_table_applies(const struct job_spec *spec, int64_t train_images);

#define PREDICT_TARGET      0.759
#define PREDICT_TARGET_LOW  0.74 /* lowest target to which the table's 75.9 % is applied */
#define PREDICT_TARGET_HIGH 0.765

#define JOULES_PER_KWH 3.6e6

struct plan_prices {
    double node_watts; /* power of a node under load */
    double per_kwh, per_node_hour;
    const char *currency; /* borrowed; NULL: not configured */
};

/* Estimated kWh; NAN: node_watts is unknown. */
static inline double plan_prices_kwh(const struct plan_prices *p, double node_hours)
{
    return p->node_watts > 0 ? p->node_watts / 1000 * node_hours : NAN;
}

/* Estimated cost; NAN: no prices are known, or energy has a price but kWh is NAN. */
static inline double plan_prices_cost(const struct plan_prices *p, double kwh, double node_hours)
{
    double energy = p->per_kwh > 0 ? p->per_kwh * kwh : 0;

    return p->per_kwh > 0 || p->per_node_hour > 0 ? energy + p->per_node_hour * node_hours : NAN;
}

/*
 * Estimates the speed that a worker's threads lose because their shares are uneven, by the batch
 * they share:
 *     keep = 1 / (1 + fixed + first x threads^t / (images^n x (size / 224)^s)), 1 for one thread
 * The five parameters are fitted, for each kind of block in fp32 and bf16, to the engine's own
 * shares, counted by the code that divides the work (worker/team/dry_run.h), for networks of 64 and
 * 224 pixels (the small CNN: 28 and 56), 1 to 96 images and 2 to 96 threads. Where the result is at
 * least 0.6, its error is usually 0.03 and at most 0.15 (compared by
 * tests/unit/worker/model/shares.c). The counts in fp32 are those of AVX-512's register tile; with
 * AVX2's smaller one 48 threads keep up to 0.09 more than predicted.
 * This does not include barriers, nor caches and memory shared by cores; speeds measured with the
 * same number of threads include them.
 */

#define PLAN_THREADS_KEEP 0.85

/* Returns the fraction of their speed that these threads keep; 0: unknown. */
double plan_threads_keep(const struct job_spec *spec, int64_t threads, int64_t images);

/* Returns the minimum number of images to keep PLAN_THREADS_KEEP; 0: unknown, or unreachable. */
int64_t plan_threads_images(const struct job_spec *spec, int64_t threads);
