/*
 * Batches of decoded, augmented, normalised images for one rank, made ahead by prefetch threads.
 *
 * Which images: the sampler shuffles all N images globally by (seed, epoch); step s of an epoch
 * takes the positions [s B, (s+1) B) of that order, and rank r of them [r k b, (r+1) k b) in k
 * batches of b: so image i of a step goes to rank i / (k b), as its batch i / b % k, and B = world
 * k b; the last partial batch of an epoch is dropped. Thus the same B shared out over other ranks
 * is the same batches of b. Evaluation visits every image exactly once, rank r taking every
 * world-th run of a batch; the last batch may be short. Random numbers come from a counter-based
 * generator keyed by (seed, epoch, image), so a batch does not depend on threads or ranks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "worker/data/loader_config.h"
#include "worker/kernels/bf16/bf16.h"

struct loader_batch {
    const float *images; /* (n, image_size, image_size, channels), NHWC, normalised; valid until the
                            next call. NULL with bf16 */
    const bf16 *images_bf16; /* instead of them */
    int image_size;          /* of this batch */
    const int32_t *labels;   /* (n), 0-based */
    const int64_t *indices;  /* (n), positions in the data set: for predictions and messages */
    int n;                   /* training: == batch; evaluation: <= batch; 0: the end */
    int64_t epoch, step;
    int next_epoch_at; /* images from this one on are of epoch + 1; n: none */
    double lambda; /* mixup: the images are mixed by it, the labels are not (1: nor the images) */
    double wait_seconds; /* how long the caller waited for it */
};

struct loader;

int loader_create(const struct loader_config *config, struct loader **out, struct error *e);

/* The next batch. Errors: ERR_CORRUPT, ERR_NOT_FOUND or ERR_IO naming file and offset; ERR_INVALID
 * for a label outside [0, classes). A bad image is named in a log line and replaced by the next
 * good image of the batch (training) or counted as wrong (evaluation: label -1, image zero). */
int loader_next(struct loader *l, struct loader_batch *batch, struct error *e);

int64_t loader_bad_images(const struct loader *l); /* of the batches given so far */
int loader_threads(const struct loader *l);        /* prefetch threads by now */

/* ERR_INVALID if more than 1 % of the images that all ranks have seen do not decode. Fewer than 100
 * are judged only at the end. */
int loader_judge_bad(int64_t bad, int64_t seen, bool end, struct error *e);
void loader_destroy(struct loader *l); /* stops the threads; NULL is fine */
