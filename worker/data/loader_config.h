/* What a rank's batches are made of: for the loader (loader.h has the rules) and its parts. */
#pragma once

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
    struct loader_phase {
        int64_t step;            /* global, from which on batches have so many images */
        int batch;               /* as below */
        int64_t first_epoch;     /* the phase's, which begins with it; or with epoch_images */
        int64_t first_image;     /* of all epochs behind each other, at which it begins */
        int64_t steps_per_epoch; /* as below */
    } phases[LOADER_SIZES_MAX];  /* training; rising, the first at step 0 */
    int phase_count;             /* 0: batch and steps_per_epoch are those of all steps */
    int channels;                /* 3, or 1: grey; 0 is 3 */
    int batch;                   /* images a rank and step; of evaluation: at most; with phases that
                                    of image_size */
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

static inline struct loader_phase loader_phase_at(const struct loader_config *c, int64_t step)
{
    struct loader_phase p = {.batch = c->batch, .steps_per_epoch = c->steps_per_epoch};

    for (int i = 0; i < c->phase_count && c->phases[i].step <= step; i++)
        p = c->phases[i];
    return p;
}

/* Images of the largest batch. */
static inline int loader_most_images(const struct loader_config *c)
{
    int most = c->batch;

    for (int i = 0; i < c->phase_count; i++)
        most = c->phases[i].batch > most ? c->phases[i].batch : most;
    return most;
}

static inline int loader_size_at(const struct loader_config *c, int64_t step)
{
    int size = c->image_size;

    for (int i = 0; i < c->size_count && c->sizes[i].step <= step; i++)
        size = c->sizes[i].size;
    return size;
}

/* Of the batch that takes most memory. */
static inline size_t loader_most_floats(const struct loader_config *c)
{
    size_t most = (size_t)c->batch * loader_image_floats(c);

    for (int i = 0; i < c->phase_count; i++) {
        int size = loader_size_at(c, c->phases[i].step);
        size_t floats = (size_t)c->phases[i].batch * loader_floats_of(c, size);
        most = floats > most ? floats : most;
    }
    return most;
}
