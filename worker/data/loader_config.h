/* Configuration of the loader and its parts. loader.h describes the order of the images. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/dataset/dataset.h"
#include "common/job/job_spec.h"
#include "worker/data/distort.h"

enum { LOADER_SIZES_MAX = JOB_SIZES_MAX + 1 };

struct loader_config {
    struct dataset *dataset; /* borrowed; must outlive the loader. NULL: synthetic images */
    enum dataset_role role;
    enum job_preprocess preprocess;
    bool augment, shuffle;         /* only valid for training */
    bool random_crop, random_flip; /* which random parts augment has */
    enum job_flip flip;
    int64_t images; /* N: the number of images to use, at most that of the data set; or of synthetic
                       images */
    int64_t first_number; /* added to the image numbers that key the random numbers; 0 unless other
                             ranks have another data set */
    int resize; /* in evaluation: shorter side before the centre is cut; 0: preprocess's */
    int image_size, classes; /* image_size: the largest one, if sizes vary */
    struct loader_size {
        int64_t step; /* global step from which on images have this size */
        int size;
    } sizes[LOADER_SIZES_MAX]; /* training only; ascending */
    int size_count;            /* 0: always image_size */
    struct loader_phase {
        int64_t step;            /* global step from which on batches have this size */
        int batch;               /* same meaning as batch below */
        int64_t first_epoch;     /* epoch at the start of the phase */
        int64_t first_image;     /* position at the start of the phase, counted over all epochs */
        int64_t steps_per_epoch; /* same meaning as below */
    } phases[LOADER_SIZES_MAX];  /* training only; ascending, the first one at step 0 */
    int phase_count;             /* 0: batch and steps_per_epoch apply to all steps */
    int channels;                /* 3, or 1 for grey; 0 means 3 */
    int batch; /* images per rank and step (in evaluation at most); with phases, the one at
                  image_size */
    int rank, world;
    int64_t seed;
    int64_t first_step, steps; /* training only: global step numbers [first_step, steps) */
    int64_t steps_per_epoch;
    int64_t epoch_images;      /* N if data.steps_rounding is "exact", where epochs may end within a
                                  step; 0: an epoch has steps_per_epoch steps */
    int batches_per_step;      /* k; 0 means 1. The batches are returned one by one */
    int64_t first_epoch_shift; /* -B < shift <= 0, added to the positions in the epoch of first_step
                                  (with epoch_images: to all), because a run resumed with another B
                                  may start inside a step */
    int threads;     /* number of prefetch threads; 0: start with one and add more while the caller
                        waits for data */
    int max_threads; /* limit if threads is 0; 0 means 1 */
    int depth;       /* number of batches prepared ahead, >= 1 */
    struct distort_config distort; /* with augment */
    double mixup, cutmix;          /* alpha; 0: off. Only valid for training */
    bool bf16; /* round images to bf16; not valid if they are mixed, which would round twice */
};

static inline int loader_channels(const struct loader_config *c)
{
    return c->channels ? c->channels : 3;
}

static inline bool loader_mixes(const struct loader_config *c)
{
    return c->mixup > 0 || c->cutmix > 0;
}

static inline size_t loader_floats_of(const struct loader_config *c, int size)
{
    return (size_t)size * (size_t)size * (size_t)loader_channels(c);
}

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

static inline int loader_max_images(const struct loader_config *c)
{
    int max = c->batch;

    for (int i = 0; i < c->phase_count; i++)
        max = c->phases[i].batch > max ? c->phases[i].batch : max;
    return max;
}

static inline int loader_size_at(const struct loader_config *c, int64_t step)
{
    int size = c->image_size;

    for (int i = 0; i < c->size_count && c->sizes[i].step <= step; i++)
        size = c->sizes[i].size;
    return size;
}

static inline size_t loader_max_floats(const struct loader_config *c)
{
    size_t max = (size_t)c->batch * loader_image_floats(c);

    for (int i = 0; i < c->phase_count; i++) {
        int size = loader_size_at(c, c->phases[i].step);
        size_t floats = (size_t)c->phases[i].batch * loader_floats_of(c, size);
        max = floats > max ? floats : max;
    }
    return max;
}
