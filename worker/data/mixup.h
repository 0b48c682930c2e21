/*
 * Mixup (Zhang et al., arXiv:1710.09412): a batch is mixed with itself reversed, image i with image
 * n-1-i, by one weight for the whole global batch. The loss is that of the soft labels: lambda
 * CE(label of i) + (1 - lambda) CE(label of n-1-i) (model_mix).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The weight of a step, from Beta(alpha, alpha), alpha > 0: the same on every rank and in each of
 * accumulated batches. */
double mixup_lambda(double alpha, int64_t seed, int64_t epoch, int64_t step);

/* to[i] = lambda from[i] + (1 - lambda) from[n-1-i], images of so many floats; to may be from. */
void mixup_images(float *to, const float *from, int n, size_t floats, double lambda);
