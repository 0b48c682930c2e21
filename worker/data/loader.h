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
#ifndef TRAIND_WORKER_DATA_LOADER_H
#define TRAIND_WORKER_DATA_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/job_spec.h"

struct loader_config {
    struct dataset *dataset; /* borrowed; must outlive the loader. NULL: synthetic */
    enum dataset_role role;
    enum job_preprocess preprocess;
    bool augment, shuffle;         /* training only */
    bool random_crop, random_flip; /* the parts of augment */
    int64_t images;       /* N: of the data set (fewer: its first N), or of synthetic ones */
    int64_t first_number; /* of the first image, for its random numbers: 0 unless other ranks have
                             another data set */
    int image_size, classes;
    int channels; /* 3, or 1: grey; 0 is 3 */
    int batch;    /* images a rank and step; of evaluation: at most */
    int rank, world;
    int64_t seed;
    int64_t first_step, steps; /* training: global step numbers [first_step, steps) */
    int64_t steps_per_epoch;
    int64_t epoch_images; /* N of steps_rounding exact: epochs follow each other within a step; 0:
                             an epoch is steps_per_epoch steps */
    int batches_per_step; /* k; 0 is 1. The loader gives them one after the other */
    int64_t first_epoch_shift; /* added to the positions of the epoch of first_step: a run that was
                                  resumed with another B goes on where it was, which may be inside
                                  one of its steps; -B < shift <= 0. With epoch_images of all
                                  positions */
    int threads;               /* prefetch threads, >= 1 */
    int depth;                 /* batches made ahead, >= 1 */
    double mixup;              /* alpha of mixup.h; 0: off. Training only */
};

struct loader_batch {
    const float *images; /* (n, image_size, image_size, channels), NHWC, normalised; valid until the
                            next call */
    const int32_t *labels;  /* (n), 0-based */
    const int64_t *indices; /* (n), positions in the data set: for predictions and messages */
    int n;                  /* training: == batch; evaluation: <= batch; 0: the end */
    int64_t epoch, step;
    int next_epoch_at; /* images from this one on are of epoch + 1; n: none */
    double lambda; /* mixup: the images are mixed by it, the labels are not (1: nor the images) */
    double wait_seconds; /* how long the caller waited for it */
};

static inline size_t loader_image_floats(const struct loader_config *c)
{
    size_t channels = c->channels ? (size_t)c->channels : 3;
    return (size_t)c->image_size * (size_t)c->image_size * channels;
}

struct loader;

int loader_create(const struct loader_config *config, struct loader **out, struct error *e);

/* The next batch. Errors: ERR_CORRUPT, ERR_NOT_FOUND or ERR_IO naming file and offset; ERR_INVALID
 * for a label outside [0, classes). A bad JPEG is named in a log line and replaced by the next good
 * image of the batch (training) or counted as wrong (evaluation: label -1, image zero). */
int loader_next(struct loader *l, struct loader_batch *batch, struct error *e);

int64_t loader_bad_images(const struct loader *l); /* of the batches given so far */

/* ERR_INVALID if more than 1 % of the JPEGs that all ranks have seen do not decode. Fewer than 100
 * are judged only at the end. */
int loader_judge_bad(int64_t bad, int64_t seen, bool end, struct error *e);
void loader_destroy(struct loader *l); /* stops the threads; NULL is fine */

#endif
