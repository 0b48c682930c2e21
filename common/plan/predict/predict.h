/*
 * Throughput and time to train of a job on so many nodes: from what was measured of one worker, a
 * model of the exchange of gradients, and published epochs to a target. Pure; random numbers are
 * counted from PREDICT_SEED, so the same question has the same answer everywhere.
 *
 * One step of n nodes takes
 *     node(n) x (1 + jitter x m(n)) + 2 (n-1) hop_seconds + wire that backward does not hide
 * node = batch_per_worker x accumulate_steps x image_seconds + update_seconds + exchange within the
 * node, m(n) the expected largest of n standard normal numbers (simulated), wire = 2 (n-1)/n x
 * gradient bytes / bytes_per_second (a ring; all but the last bucket may hide behind backward, two
 * thirds of the computing). An image that was measured in another batch takes so much less or more
 * as the worker's threads keep of their speed with this one (threads.h).
 */
#ifndef TRAIND_COMMON_PLAN_PREDICT_PREDICT_H
#define TRAIND_COMMON_PLAN_PREDICT_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/job/job_spec.h"

#define PREDICT_EVAL_COST (1.0 / 3) /* of an evaluated image, by a trained one: a forward pass */

struct plan_band {
    double value, low, high;
};

/* What was measured of one worker; zeroed: nothing was. */
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

/* The newest measurements differ by more than their median: nothing can be told by them. */
bool plan_speed_scatters(const struct plan_speed *speed);

/* Images per second of the node that was measured, with its own batch; 0: not known. */
double plan_speed_rate(const struct plan_speed *speed);

/* One measured run, as `trainctl bench` and finished jobs leave it. */
struct plan_sample {
    double image_seconds, update_seconds, exchange_seconds;
    int64_t workers, batch;
};

#define PLAN_SAMPLES_MAX 5
/* Medians of the newest PLAN_SAMPLES_MAX samples (the newest first), of those with as many workers
 * as wanted if there are such ones, and of these with the same batch likewise. */
struct plan_speed plan_speed_of(const struct plan_sample *samples, size_t count, int64_t workers,
                                int64_t batch);

/* Between nodes. */
struct plan_network {
    double hop_seconds;           /* of each of a ring's 2 (n-1) messages, with all software */
    double bytes_per_second;      /* of a node's link, as an all-reduce reaches it */
    double node_bytes_per_second; /* all-reduce in a node's memory, where it was not measured */
    double jitter;                /* standard deviation of a node's step, by the step */
};

/*
 * What is fitted, and what is checked. hop_seconds is fitted: with the other three it gives
 * SURFsara's 81 % at 256 nodes (2018). The others are assumptions, which one number cannot tell
 * apart from it: bytes_per_second is 60 % of their 100 Gbit/s Omni-Path, jitter and
 * node_bytes_per_second are of the size that is common. So for SURFsara's nodes the model is right
 * by construction, and at other numbers of nodes it is a guess of the shape.
 * Checked without fitting: Intel Caffe's 93.5 % from 64 to 128 nodes. (Its 69 images/s a node too,
 * but with SURFsara's 79 in the place of its own speed alone, which was not published.)
 * tests/unit/common/plan/predict/predict.c prints these errors. tests/system/commands/predict.sh
 * prints those of real runs of 1 and 2 ranks, on one machine: they check the times of an image, an
 * update and an exchange in memory, and nothing between nodes.
 */
extern const struct plan_network plan_network_default;

#define PREDICT_SEED 1

/* The expected largest of n standard normal numbers: n >= 1. */
double predict_slowest(int64_t nodes);

/* Seconds of a step, with what bounds it; low is the quicker. False: the speed is not known. */
bool predict_step(const struct job_spec *spec, const struct plan_speed *speed,
                  const struct plan_network *network, struct plan_band *seconds);

/* Epochs to 75.9 % top-1 of ResNet-50 on ImageNet by global batch: MLPerf's reference convergence
 * points (LARS), between two of them by the logarithm of the batch. Below the first point that
 * one's epochs; false beyond the last, 67840: nothing was published. */
bool predict_epochs_to_target(int64_t global_batch, struct plan_band *epochs);

/* Why these epochs are less certain than the table's, in some words; NULL: they are not. */
const char *predict_epochs_doubt(int64_t global_batch);

/* That table is about this job: ResNet-50, 1000 classes at 224, as many images as ImageNet has. */
bool predict_table_applies(const struct job_spec *spec, int64_t train_images);

#define PREDICT_TARGET_LOW  0.74 /* targets that the table's 75.9 % stands for */
#define PREDICT_TARGET_HIGH 0.765

#endif
