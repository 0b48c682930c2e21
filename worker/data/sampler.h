/* Which images make up a batch of a rank (the rules stand in loader.h). Holds no state between
 * calls: any thread may ask for any batch, and a run may start at any step. */
#pragma once

#include "worker/data/loader_config.h"

struct sampler_batch {
    int n;               /* 0: behind the last one */
    int64_t epoch, step; /* evaluation: epoch 0, the number of the run */
    int next_epoch_at;   /* the images from here on are of epoch + 1; n: none are */
};

/* Fills indices (loader_most_images) with the images of batch k = 0, 1, ... the loader gives. */
struct sampler_batch sampler_batch(const struct loader_config *config, int64_t k, int64_t *indices);
