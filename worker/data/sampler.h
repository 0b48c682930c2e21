/* Selects the images of a rank's batches, in the order of loader.h. Stateless, thread-safe. */
#pragma once

#include "worker/data/loader_config.h"

struct sampler_batch {
    int n;               /* 0: there are no more batches */
    int64_t epoch, step; /* in evaluation: epoch 0, and the number of the group of images */
    int next_epoch_at;   /* first image of the next epoch, or n */
};

/* Fills indices (loader_max_images) with the images of the loader's batch k = 0, 1, ... */
struct sampler_batch sampler_batch(const struct loader_config *config, int64_t k, int64_t *indices);
