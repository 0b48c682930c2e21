/* A trace's spans, added up by layer. */
#pragma once

#include <stddef.h>

#include "common/run/trace.h"

/* Text for a person: a line a layer (spans of the categories forward and backward, in the order
 * they were first seen), with milliseconds of a step, GFLOP/s and their share of peak_gflops (of
 * one rank of so many threads; 0: not known), the shares of a layer's parts, and a line of sums.
 * The caller frees it; NULL without memory. */
char *layer_table(const struct trace_span *spans, size_t count, int threads, double peak_gflops);
