/* Points that are spread evenly: Halton's sequence (1960), shifted by a seed as Cranley and
 * Patterson (1976) do. The first n points of a few dimensions leave smaller holes than n that are
 * drawn at random, for any n. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HALTON_DIMENSIONS 16 /* beyond that neighbouring ones go in step for many points */

/* Of point `index` (from 0) in a dimension: from 0, below 1. */
double halton(int64_t seed, int64_t index, size_t dimension);
