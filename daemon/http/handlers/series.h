/* Metrics in an answer; more rows than points are down-sampled to mean, minimum and maximum over
 * equal steps, placed at the middle. */
#pragma once

#include <stdint.h>

#include "daemon/http/handlers/images_by_step.h"
#include "daemon/http/json_text.h"
#include "daemon/store/metric.h"

#define SERIES_POINTS_MAX 20000 /* of one answer: bounds its memory */

struct series;

struct series_shape {
    unsigned wanted; /* bits of event_metric_at */
    bool images;     /* the images seen, as a column of CSV; JSON has them always */
    int64_t points;  /* >= 2 */
    bool exact;      /* each part is a point; else down-sampled over these steps: */
    int64_t first_step, last_step;
};
struct series *series_create(const struct series_shape *shape); /* NULL without memory */

/* A store_metric_visit. Steps must rise. exact: rows behind the last point are left out. */
void series_add(void *context, const struct store_metric_part *part);

void series_end(struct series *s); /* all were added */

/* "rows", "points", "downsampled", "step": [], "images": [], "epoch": [], "t": [], each metric: [],
 * and down-sampled "min" and "max" objects; null without a number. Means have 12 digits. */
void series_members(struct json_text *t, const struct series *s, const struct images_by_step *seen);

/* RFC 4180 lines: step,epoch,t,METRICS,images, with METRIC_min,METRIC_max if down-sampled. The
 * caller frees it; NULL: no memory. */
char *series_to_csv(const struct series *s, const struct images_by_step *seen, size_t *bytes);

int64_t series_next(const struct series *s);

void series_destroy(struct series *s);
