/* Request counts and durations by route, method and status, for GET /metrics. One set per process;
 * thread-safe. */
#pragma once

#include <stdio.h>

struct route;

/* route: NULL if no route matched. */
void stats_count(const struct route *route, int status, double seconds);

void stats_print(FILE *out);
