/* What a rank's batches are made of: for the loader (loader.h has the rules) and its parts. */
#ifndef TRAIND_WORKER_DATA_LOADER_CONFIG_H
#define TRAIND_WORKER_DATA_LOADER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/job/job_spec.h"

enum { LOADER_SIZES_MAX = 32 };

struct loader_config {
    struct dataset *dataset; /* borrowed; must outlive the loader. NULL: synthetic */
    enum dataset_role role;
    enum job_preprocess preprocess;
    bool augment, shuffle;         /* training only */
    bool random_crop, random_flip; /* the parts of augment */
    int64_t images;       /* N: of the data set (fewer: its first N), or of synthetic ones */
    int64_t first_number; /* of the first image, for its random numbers: 0 unless other ranks have
                             another data set */
    int image_size, classes; /* image_size: with sizes the largest */
    struct loader_size {
        int64_t step; /* global, from which on images have this size */
        int size;
    } sizes[LOADER_SIZES_MAX]; /* training; rising */
    int size_count;            /* 0: image_size always */
    int channels;              /* 3, or 1: grey; 0 is 3 */
    int batch;                 /* images a rank and step; of evaluation: at most */
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
    int threads;      /* prefetch threads; 0: one, and more while the caller waits for data */
    int most_threads; /* of 0: at most so many; 0 is 1 */
    int depth;        /* batches made ahead, >= 1 */
    double mixup;     /* alpha of mixup.h; 0: off. Training only */
    bool bf16;        /* images are rounded to bf16; not with mixup, which would round twice */
};

static inline size_t loader_floats_of(const struct loader_config *c, int size)
{
    size_t channels = c->channels ? (size_t)c->channels : 3;
    return (size_t)size * (size_t)size * channels;
}

/* Of the largest image. */
static inline size_t loader_image_floats(const struct loader_config *c)
{
    return loader_floats_of(c, c->image_size);
}

static inline int loader_size_at(const struct loader_config *c, int64_t step)
{
    int size = c->image_size;

    for (int i = 0; i < c->size_count && c->sizes[i].step <= step; i++)
        size = c->sizes[i].size;
    return size;
}

#endif
