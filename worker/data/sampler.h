/* Selects the images of a rank's batches (rules: loader.h). Stateless and thread-safe. */
#pragma once

#include "worker/data/loader_config.h"

struct sampler_batch {
    int n;               /* 0: after the last one */
    int64_t epoch, step; /* evaluation: epoch 0, number of the run of images */
    int next_epoch_at;   /* first image of epoch + 1, or n */
};

/* Fills indices (loader_max_images) with the images of batch k = 0, 1, ... of the loader. */
struct sampler_batch sampler_batch(const struct loader_config *config, int64_t k, int64_t *indices);
