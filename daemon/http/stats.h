/* Counts of the requests answered, by route, method and status, with their durations: for
 * GET /metrics. One set for the process; thread-safe. */
#pragma once

#include <stdio.h>

struct route;

/* route: NULL where the request had none. */
void stats_count(const struct route *route, int status, double seconds);

/* In the text format of Prometheus. */
void stats_print(FILE *out);
