/* Random batches in the sizes of real ones, made once: the compute benchmark without input. */
#pragma once

#include "worker/data/loader_config.h"

/* Fills images (batch, size, size, 3) with mean 0 and deviation 1, as normalised ones have, and
 * labels (batch). Images of different numbers, ranks or seeds differ. */
void synthetic_fill(const struct loader_config *config, int number, float *images, int32_t *labels);
