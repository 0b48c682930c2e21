/* Tree-structured Parzen estimator (Bergstra et al., "Algorithms for Hyper-Parameter Optimization",
 * NIPS 2011), one parameter at a time, with the choices of Optuna's TPESampler but equal weights,
 * as in the paper. A parameter is in [0, 1] on its scale, or the index of a choice.
 *
 * The density of n earlier values is the mean of n + 1 kernels. Of a number: normal distributions
 * truncated to [0, 1], at each value with the larger distance to its neighbours (of the smallest
 * and the largest: to the only one) as standard deviation, at least 1/min(100, n + 2), and the
 * prior, with mean 0.5, also a neighbour, and standard deviation 1. Of a choice: its number of
 * occurrences, smoothed by 1/(n + 1) for each choice, and the prior, which is uniform. */
#pragma once

#include <stddef.h>

#include "common/rng.h"

#define TPE_GOOD_MAX   25
#define TPE_CANDIDATES 24 /* values drawn, of which one is taken */

/* Returns how many of the results, best first, count as good. */
size_t tpe_good(size_t results, double gamma);

/* choices: 0 for a number. */
double tpe_density(size_t choices, const double *values, size_t count, double x);

/* Draws candidates from the density of the good values and returns the one with the largest ratio
 * of it to the density of the others, which is the one with the largest expected improvement. */
double tpe_choose(size_t choices, const double *good, size_t good_count, const double *others,
                  size_t other_count, struct rng *r);
