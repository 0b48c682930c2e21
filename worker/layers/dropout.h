/*
 * Dropout (Srivastava et al. 2014), inverted: training sets a part of the values to 0 and divides
 * the others by 1 - rate, so that evaluation has nothing to do. Which ones are dropped is counted
 * from an image's stream of random numbers, hence the same in backward, in a resumed run and for
 * any number of threads, and no mask is kept.
 */
#pragma once

#include <stddef.h>

#include "common/rng.h"

/* In place, of one image: of its values forward, of their gradients backward. 0 <= rate < 1. */
void dropout_apply(float *x, size_t count, double rate, struct rng stream);
