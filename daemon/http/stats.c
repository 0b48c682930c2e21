#include "daemon/http/stats.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/http/routes.h"

#define ROUTES_MAX 96 /* the last is for requests without a route and dashboard files */

static const int statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406,
                               409, 413, 415, 422, 429, 500, 501, 503, 507, 0};
static const double limits[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5};
#define STATUS_COUNT (sizeof statuses / sizeof statuses[0])
#define LIMIT_COUNT  (sizeof limits / sizeof limits[0])

static struct {
    atomic_uint_fast64_t by_status[STATUS_COUNT];
    atomic_uint_fast64_t below[LIMIT_COUNT + 1]; /* the last counts all durations */
    atomic_uint_fast64_t microseconds;
} routes[ROUTES_MAX];

void stats_count(const struct route *route, int status, double seconds)
{
    size_t r = 0, s = 0, l = 0;

    while (r < ROUTES_MAX - 1 && (!route || route_at(r) != route))
        r++;
    while (statuses[s] && statuses[s] != status)
        s++;
    while (l < LIMIT_COUNT && seconds > limits[l])
        l++;
    atomic_fetch_add(&routes[r].by_status[s], 1);
    atomic_fetch_add(&routes[r].below[l], 1);
    atomic_fetch_add(&routes[r].microseconds, (uint_fast64_t)(seconds * 1e6));
}

static const char *stats_method_of(size_t r)
{
    return r < ROUTES_MAX - 1 ? route_at(r)->method : "any";
}

static const char *stats_pattern_of(size_t r)
{
    return r < ROUTES_MAX - 1 ? route_at(r)->pattern : "other";
}

static void stats_print_statuses(FILE *out, size_t r)
{
    for (size_t s = 0; s < STATUS_COUNT; s++) {
        unsigned long long count = atomic_load(&routes[r].by_status[s]);
        if (count == 0)
            continue;
        fprintf(out, "traind_http_requests_total{route=\"%s\",method=\"%s\",status=\"",
                stats_pattern_of(r), stats_method_of(r));
        if (statuses[s])
            fprintf(out, "%d\"} %llu\n", statuses[s], count);
        else
            fprintf(out, "other\"} %llu\n", count);
    }
}

static void stats_print_durations(FILE *out, size_t r)
{
    unsigned long long sum = 0;
    const char *const name = "traind_http_request_duration_seconds";

    for (size_t l = 0; l <= LIMIT_COUNT; l++) {
        sum += atomic_load(&routes[r].below[l]);
        fprintf(out, "%s_bucket{route=\"%s\",method=\"%s\",le=\"", name, stats_pattern_of(r),
                stats_method_of(r));
        if (l < LIMIT_COUNT)
            fprintf(out, "%g\"} %llu\n", limits[l], sum);
        else
            fprintf(out, "+Inf\"} %llu\n", sum);
    }
    fprintf(out, "%s_sum{route=\"%s\",method=\"%s\"} %.6f\n", name, stats_pattern_of(r),
            stats_method_of(r), (double)atomic_load(&routes[r].microseconds) / 1e6);
    fprintf(out, "%s_count{route=\"%s\",method=\"%s\"} %llu\n", name, stats_pattern_of(r),
            stats_method_of(r), sum);
}

static bool stats_has(size_t r)
{
    for (size_t l = 0; l <= LIMIT_COUNT; l++)
        if (atomic_load(&routes[r].below[l]))
            return true;
    return false;
}

void stats_print(FILE *out)
{
    fputs("# HELP traind_http_requests_total Requests answered.\n"
          "# TYPE traind_http_requests_total counter\n",
          out);
    for (size_t r = 0; r < ROUTES_MAX; r++)
        if (stats_has(r))
            stats_print_statuses(out, r);
    fputs("# HELP traind_http_request_duration_seconds Time to an answer, without sending it.\n"
          "# TYPE traind_http_request_duration_seconds histogram\n",
          out);
    for (size_t r = 0; r < ROUTES_MAX; r++)
        if (stats_has(r))
            stats_print_durations(out, r);
}
