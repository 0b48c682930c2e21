/* Of two sizes the smaller, and the larger. */
#pragma once

#include <stddef.h>

static inline size_t extent_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t extent_max(size_t a, size_t b)
{
    return a > b ? a : b;
}
