/* Configuration of the loader (rules: loader.h) and its parts */
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
    bool random_crop, random_flip; /* parts of augment */
    int64_t images;          /* N: of the data set (fewer: its first N), or of synthetic images */
    int64_t first_number;    /* offset of the image numbers that key random numbers: 0 unless other
                                ranks have another data set */
    int image_size, classes; /* image_size: the largest, if sizes vary */
    struct loader_size {
        int64_t step; /* global; images have this size from it on */
        int size;
    } sizes[LOADER_SIZES_MAX]; /* training; ascending */
    int size_count;            /* 0: always image_size */
    struct loader_phase {
        int64_t step;            /* global; batches have this size from it on */
        int batch;               /* as below */
        int64_t first_epoch;     /* that the phase starts with */
        int64_t first_image;     /* position, counted over all epochs, that it starts at */
        int64_t steps_per_epoch; /* as below */
    } phases[LOADER_SIZES_MAX];  /* training; ascending, the first at step 0 */
    int phase_count;             /* 0: batch and steps_per_epoch apply to all steps */
    int channels;                /* 3, or 1 for grey; 0 means 3 */
    int batch; /* images per rank and step; evaluation: at most; with phases, at image_size */
    int rank, world;
    int64_t seed;
    int64_t first_step, steps; /* training: global step numbers [first_step, steps) */
    int64_t steps_per_epoch;
    int64_t epoch_images; /* N with steps_rounding "exact", where epochs end within steps; 0: an
                             epoch is steps_per_epoch steps */
    int batches_per_step; /* k; 0 means 1. Returned one by one */
    int64_t first_epoch_shift; /* added to the positions in the epoch of first_step (with
                                  epoch_images: to all), because a run resumed with another B may
                                  start inside a step; -B < shift <= 0 */
    int threads;     /* prefetch threads; 0: one, and more while the caller waits for data */
    int max_threads; /* limit for threads = 0; 0 means 1 */
    int depth;       /* batches prepared ahead, >= 1 */
    double mixup;    /* alpha; 0: off. Training only */
    bool bf16;       /* round images to bf16; not with mixup, which would round twice */
};

static inline size_t loader_floats_of(const struct loader_config *c, int size)
{
    size_t channels = c->channels ? (size_t)c->channels : 3;
    return (size_t)size * (size_t)size * channels;
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

/* Size of the batch that takes most memory. */
static inline size_t loader_max_floats(const struct loader_config *c)
{
    size_t most = (size_t)c->batch * loader_image_floats(c);

    for (int i = 0; i < c->phase_count; i++) {
        int size = loader_size_at(c, c->phases[i].step);
        size_t floats = (size_t)c->phases[i].batch * loader_floats_of(c, size);
        most = floats > most ? floats : most;
    }
    return most;
}
