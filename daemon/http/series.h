/*
 * Down-sampling of a job's metrics. The first and the last row stay exactly as they are; the rows
 * between them are shared out evenly over the buckets between, and of each bucket the mean, the
 * minimum and the maximum of every metric are told, at the bucket's last step. Where the rows fit,
 * nothing is averaged.
 */
#ifndef TRAIND_DAEMON_HTTP_SERIES_H
#define TRAIND_DAEMON_HTTP_SERIES_H

#include <jansson.h>
#include <stdint.h>

#define SERIES_POINTS_MAX 20000 /* of one answer: bounds its memory */

struct series;

/* wanted: bits of event_metric_at; rows: how many will come; points >= 2. NULL without memory. */
struct series *series_create(unsigned wanted, int64_t rows, int64_t points);

/* A store_metric_row; context is the series. Rows beyond those announced are left out. */
void series_add(void *context, int64_t step, double epoch, double t, const double *values);

/* {"rows", "points", "downsampled", "step": [], "epoch": [], "t": [], "loss": [], ...}, and where
 * it was down-sampled "min" and "max": {"loss": [], ...}. null where a step had no such number. */
json_t *series_to_json(const struct series *s);

/* The step behind the last one taken: where to go on. */
int64_t series_next(const struct series *s);

void series_destroy(struct series *s);

#endif
