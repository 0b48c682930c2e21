/*
 * Batches of decoded, augmented, normalised images for one rank, prepared by prefetch threads.
 *
 * Order of the images: the sampler shuffles all N images globally by (seed, epoch). Step s of an
 * epoch takes the positions [s B, (s+1) B) of that order, and rank r of them [r k b, (r+1) k b) in
 * k batches of b. So image i of a step goes to rank i / (k b), as its batch i / b % k, and B =
 * world k b; the last partial batch of an epoch is dropped. The same B on another number of ranks
 * yields the same batches of b. Evaluation visits every image exactly once, rank r taking every
 * world-th run of a batch; the last batch may be short. Random numbers come from a counter-based
 * generator keyed by (seed, epoch, image), so a batch does not depend on threads or ranks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "worker/data/loader_config.h"
#include "worker/kernels/bf16.h"

struct loader_batch {
    const float *images; /* (n, image_size, image_size, channels), NHWC, normalised; valid until the
                            next call. NULL with bf16 */
    const bf16 *images_bf16; /* instead of images, with bf16 */
    int image_size;          /* of this batch */
    const int32_t *labels;   /* (n), 0-based */
    const int64_t *indices;  /* (n), positions in the data set */
    int n;                   /* training: == batch; evaluation: <= batch; 0: the end */
    int64_t epoch, step;
    int next_epoch_at; /* first image that belongs to epoch + 1, or n */
    double lambda; /* of mixup: weight with which the images are already mixed, but not the labels;
                      1: not mixed */
    double wait_seconds; /* time that the caller waited */
};

struct loader;

int loader_create(const struct loader_config *config, struct loader **out, struct error *e);

/* Gets the next batch. ERR_CORRUPT, ERR_NOT_FOUND or ERR_IO naming file and offset; ERR_INVALID for
 * a label outside [0, classes). A bad image is logged, and replaced by the next good image of the
 * batch (training) or counted as wrong (evaluation: label -1, image zero). */
int loader_next(struct loader *l, struct loader_batch *batch, struct error *e);

int64_t loader_bad_images(const struct loader *l); /* in the batches returned so far */
int loader_threads(const struct loader *l);        /* current number of prefetch threads */

/* ERR_INVALID if over 1 % of the images seen by all ranks do not decode; with fewer than 100 seen
 * only at the end. */
int loader_judge_bad(int64_t bad, int64_t seen, bool end, struct error *e);
void loader_destroy(struct loader *l); /* stops the threads; NULL is fine */
