/*
 * Batches of decoded, augmented, normalised images for one rank, prepared by prefetch threads.
 *
 * Order of the images: the sampler shuffles all N images globally by (seed, epoch). Step s of an
 * epoch takes the positions [s B, (s+1) B) of that order, and rank r of them [r k b, (r+1) k b) in
 * k batches of b. So image i of a step goes to rank i / (k b), in its batch i / b % k, and B =
 * world k b; the last partial batch of an epoch is dropped. The same B on another number of ranks
 * yields the same batches of b. Evaluation visits every image exactly once; consecutive groups of b
 * images go to the ranks in turn, and the last batch may be short. Random numbers come from a
 * counter-based generator keyed by (seed, epoch, image), so a batch does not depend on threads or
 * ranks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "worker/data/loader_config.h"
#include "worker/kernels/bf16.h"

struct loader_batch {
    const float *images; /* (n, image_size, image_size, channels), NHWC, normalised; valid until the
                            next call. NULL with bf16 */
    const bf16 *images_bf16; /* with bf16, used instead of images */
    int image_size;          /* of this batch */
    const int32_t *labels;   /* (n), 0-based */
    const int64_t *indices;  /* (n), positions of the images in the data set */
    int n;                   /* training: batch; evaluation: at most batch; 0: the end */
    int64_t epoch, step;
    int next_epoch_at;   /* first image that belongs to the next epoch, or n */
    double lambda;       /* weight with which the images, but not the labels, have been mixed; 1:
                            not mixed */
    double wait_seconds; /* time the caller waited in loader_next */
    int threads;         /* current number of prefetch threads */
};

struct loader;

int loader_create(const struct loader_config *config, struct loader **out, struct error *e);

/* Gets the next batch. Returns ERR_CORRUPT, ERR_NOT_FOUND or ERR_IO with the file and offset, or
 * ERR_INVALID for a label outside [0, classes). A bad image is logged; training uses the next good
 * image of the batch instead, evaluation counts it as wrong (label -1, image zero). */
int loader_next(struct loader *l, struct loader_batch *batch, struct error *e);

int64_t loader_bad_images(const struct loader *l); /* bad images in the batches returned so far */

/* Returns ERR_INVALID if over 1 % of the images read by all ranks could not be decoded. With fewer
 * than 100 images read, this is checked only at the end. */
int loader_judge_bad(int64_t bad, int64_t seen, bool end, struct error *e);
void loader_destroy(struct loader *l); /* stops the threads; accepts NULL */
